"""The loop: what is common to every controller, written once.

It knows `Reconciler`, never a concrete one, and `api.meta`, never a family's types. A reconciler
looks at one object and returns; the frame around it (`controller.py`) owns everything else:
suspending, finalizers, conditions, the status patch, events, retries, metrics, traces.
"""
