"""How long a model takes, and against others: each engine in a process of its own, taking turns.

`measuring` asks and gathers, `workers` are the processes, `engines` what runs in them, `cold` times whole processes.
Nothing is imported here: a worker for another engine loads none of this package.
"""
