"""The only door to an API server.

Nothing outside this package speaks HTTP to one. It knows addresses, credentials and plain objects,
never a kind of ours.
"""
