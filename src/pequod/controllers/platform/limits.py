"""How much one namespace may ask for."""

from dataclasses import dataclass

from pequod.api import reasons
from pequod.api.platform import ResourceGraph
from pequod.kube.cache import Cache
from pequod.runtime.verdicts import Waiting

INDEX = "namespace"
AGAIN = 60.0
"""Seconds after which room is looked for again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NamespaceLimits:
    """What the operator's flags say; 0 is no limit."""

    graphs: int = 0
    objects: int = 0


def require_room(
    graph: ResourceGraph, graphs: Cache[ResourceGraph], limits: NamespaceLimits
) -> None:
    """Refuse a graph for which its namespace has no room; those that were there first stay."""
    if not limits.graphs and not limits.objects:
        return
    namespace = graph.metadata.namespace or ""
    before = [other for other in _others(graph, graphs) if _rank(other) < _rank(graph)]
    if limits.graphs and len(before) >= limits.graphs:
        raise Waiting(
            reasons.LIMIT_EXCEEDED,
            f"namespace {namespace} may have {limits.graphs} graphs and has {len(before)} older "
            "ones; delete one, or ask the platform team for more",
            after=AGAIN,
        )
    asked = sum(len(other.spec.nodes) for other in before)
    if limits.objects and asked + len(graph.spec.nodes) > limits.objects:
        raise Waiting(
            reasons.LIMIT_EXCEEDED,
            f"namespace {namespace} may have {limits.objects} objects of graphs; older graphs ask "
            f"for {asked}, this one for {len(graph.spec.nodes)}; delete some, or ask for more",
            after=AGAIN,
        )


def _others(graph: ResourceGraph, graphs: Cache[ResourceGraph]) -> list[ResourceGraph]:
    keys = graphs.by(INDEX, graph.metadata.namespace or "")
    found = [graphs.get(key) for key in keys]
    return [
        other
        for other in found
        if isinstance(other, ResourceGraph) and other.metadata.uid != graph.metadata.uid
    ]


def _rank(graph: ResourceGraph) -> tuple[str, str]:
    created = graph.metadata.creation_timestamp
    return (created.isoformat() if created is not None else "", graph.metadata.name)
