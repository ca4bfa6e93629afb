"""One folder for each family of kinds; siblings never import each other.

`<kind>.py` holds the reconciler and nothing else; a step that is not trivial has a file of its own,
named for what it yields. What they need of the outside world is handed to them by `operator.py`.
"""
