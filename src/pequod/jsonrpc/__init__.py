"""JSON-RPC to servers that other people name: bounded in time and size, and in where it may lead.

Nothing that such a server says is trusted: an answer is a value, an error with a reason, or
garbage, and none of them takes longer or more memory than it may. Knows no methods of any chain.
"""
