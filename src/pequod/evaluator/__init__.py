"""The languages that exist only in Go, behind processes that can be killed.

CUE, Helm, kustomize, Rego, CEL, CRD schemas and OCI registries are asked through framed JSON.
Nothing here knows what a graph, a policy or a source is; it hands over files by path and gets JSON
back, or an error that says whose fault it was.
"""
