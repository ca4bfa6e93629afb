"""What every front end does with a graph that it has rendered: keep it, follow it, end it.

A front end turns its object into nodes. From there on all are alike: secrets are kept apart, the
graph is stored under the source's name, each rendering is a revision that can be returned to, and
the source says what its graph says. No family's own kinds are known here, except the graph.
"""
