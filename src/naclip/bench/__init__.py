"""`naclip bench`: time and memory on this machine, against a plain program of the same method.

plain.py    the authors' order of operations, with nothing shared with ours
cases.py    what is measured
worker.py   one process a case: runs when told to, says how long it took and what it held
run.py      starts the workers and lets them take turns, so that a noisy machine is noisy to all
report.py   JSON, Markdown and plots
"""
