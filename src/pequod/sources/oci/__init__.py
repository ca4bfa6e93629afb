"""Artifacts of OCI registries: modules of CUE, Flux and Timoni, charts, archives and single files.

A tag is resolved once, to a digest; everything after that is asked for, and verified, by digest.
Registries are spoken to by workers of the evaluator, which check each address that they dial.
"""
