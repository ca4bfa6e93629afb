"""Types -> CRD YAML, types -> reference pages. Used at development time only.

`python -m pequod.crd` (by way of `make generate`) rewrites `deploy/crds/` and `docs/reference/`;
with `--check` it writes nothing and fails when a file is out of date. It reads `pequod.api` and is
imported by nothing.
"""
