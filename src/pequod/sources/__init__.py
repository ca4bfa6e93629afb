"""References become immutable trees on disk, named by the digest of their content.

A source resolves a reference (git, jj, OCI, ConfigMap, inline, embedded) and puts what it finds
into the store; everybody else sees an `Artifact`. Nothing here renders, judges or applies, and
nothing that was fetched is ever run.
"""
