"""Pequod: one Kubernetes operator platform, five API families in front of one engine."""
