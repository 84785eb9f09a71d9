"""The paper's evaluation: data sets as their owners distribute them, the metric, tables, figures.

datasets  ->  run (jobs that share passes, a durable record)  ->  metric  ->  result (JSON)
                                                               `-> tables, figures, compare
"""
