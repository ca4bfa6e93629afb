"""An artifact and an input become a graph.

Everything that comes out of a module is checked for its shape here, so that nobody behind this
package meets anything but a `Graph`. Nothing here fetches, judges or applies.
"""
