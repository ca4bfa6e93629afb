"""Types -> CRDs and reference pages, controllers -> RBAC; and who may write what is the operator's.

`python -m pequod.crd` (by way of `make generate`) rewrites `deploy/crds/`, `deploy/rbac/`,
`deploy/admission/` and `docs/reference/`; with `--check` it writes nothing and fails when a file is
out of date. It reads `pequod.api` and what `pequod.operator` is composed of, and is imported by
nothing: it is used at development time only.
"""
