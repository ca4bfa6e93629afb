"""The gitops family: Cluster."""
