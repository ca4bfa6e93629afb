"""What every object that we ship has in common."""

from typing import Any

_LABELS = {"app.kubernetes.io/name": "pequod", "app.kubernetes.io/part-of": "pequod"}


def manifest(
    api_version: str,
    kind: str,
    *,
    name: str,
    namespace: str | None = None,
    labels: dict[str, str] | None = None,
) -> dict[str, Any]:
    """An object without its content, labelled as ours."""
    metadata: dict[str, Any] = {"name": name}
    if namespace is not None:
        metadata["namespace"] = namespace
    metadata["labels"] = _LABELS | (labels or {})
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata}
