"""Types -> CRDs and reference pages, controllers -> RBAC. Used at development time only.

`python -m pequod.crd` (by way of `make generate`) rewrites `deploy/crds/`, `deploy/rbac/` and
`docs/reference/`; with `--check` it writes nothing and fails when a file is out of date. It reads
`pequod.api` and what `pequod.operator` is composed of, and is imported by nothing.
"""
