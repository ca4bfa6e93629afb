"""What somebody has to agree to before a change deletes much: to that very change, and no other."""

import hashlib
from collections.abc import Mapping

import msgspec

from pequod.api.platform import ACKNOWLEDGE_PRUNE, ResourceGraph


def revision(graph: ResourceGraph) -> str:
    """What an agreement is bound to: the digest of the rendering, or of the nodes."""
    known = graph.spec.metadata.render_hash
    if known:
        return known
    body = msgspec.json.encode(graph.spec.nodes, order="deterministic")
    return hashlib.sha256(body).hexdigest()[:16]


def agreed(graph: ResourceGraph, annotations: Mapping[str, str]) -> bool:
    """Whether the annotations of a graph, or of its source, agree to what it asks for now."""
    return annotations.get(ACKNOWLEDGE_PRUNE) == revision(graph)


def way_out(graph: ResourceGraph) -> str:
    """How to agree."""
    metadata, source = graph.metadata, graph.spec.source_ref
    kind, name, namespace = "resourcegraph", metadata.name, metadata.namespace
    if source is not None:
        kind, name, namespace = source.kind.lower(), source.name, source.namespace
    place = f"-n {namespace} " if namespace else ""
    return (
        f"if that is meant, run `kubectl annotate --overwrite {kind} {place}{name} "
        f"{ACKNOWLEDGE_PRUNE}={revision(graph)}`"
    )
