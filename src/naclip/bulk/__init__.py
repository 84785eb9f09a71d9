"""Many images: from a folder on one machine to a cluster, and killed at any moment.

    inputs   a folder, glob, list, tar or URL -> items, in an order that does not change
    lists    the paths in a text, a CSV file, a Parquet table
    chunks   consecutive items that go through the model together: the unit of work and of resuming
    many     pictures through the model together
    worker   a chunk -> masks, overlays, rows: what threads and Ray's actors alike do
    record   which chunks are done, durably; what failed, and why
    versions libraries that must be the same on all machines

    run      the job: words once, the record, machines, the table at the end
    local    one machine: threads that read, a model, threads that write
    cluster  many machines: actors on Ray Data
    rows     the same as a step of somebody's own pipeline

What is written depends on the items and the settings alone, never on the order in which chunks
were finished, nor on how often the run was killed: a chunk is encoded whole or not at all, because
floating-point sums may differ in the last bit between batches of different images.
"""
