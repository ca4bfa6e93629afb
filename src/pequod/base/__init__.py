"""What could be in the standard library: backoff, durations, tasks, logs.

Nothing here knows Kubernetes or Pequod, and nothing here imports anything else of ours: each module
could be a library of its own.
"""
