"""What a platform allows: a graph, or an input, becomes a list of findings.

Policies are evaluated elsewhere (`evaluator`); what their findings mean after the overrides that
the platform lets people make is decided here. Nothing of this knows a family's kinds or an API
server.
"""
