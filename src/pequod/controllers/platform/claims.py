"""Which graphs ask for which objects: what one graph lets go of, another one may want."""

from collections.abc import Iterator
from datetime import UTC, datetime

from pequod.api.platform import ResourceGraph
from pequod.controllers.frontend.following import condition, is_stalled
from pequod.graph.model import Ref
from pequod.kube.cache import Cache
from pequod.runtime.controller import is_suspended

INDEX = "claims"
UID = "uid"
"""The index that finds a graph by what its objects carry."""
HOPE = 45.0
"""Seconds for which a graph that fails may be about to succeed: it looks for rights every 30 s."""


def uids(graph: ResourceGraph) -> tuple[str, ...]:
    """What the objects of a graph carry."""
    return (graph.metadata.uid,)


def claims(graph: ResourceGraph) -> Iterator[str]:
    """The words by which a graph is found that asks for an object.

    Whether a kind has namespaces is not known here: an object is found with and without one. A
    graph that mirrors objects asks only for those that it has meant to make.
    """
    namespace = graph.metadata.namespace or ""
    cluster = _cluster(graph)
    mirrors = graph.spec.adopt is not None and graph.spec.adopt.strategy == "Mirror"
    intended = {entry.id for entry in graph.status.inventory} if mirrors else set[str]()
    for node in graph.spec.nodes:
        metadata = node.object.get("metadata")
        if node.apply_policy.mode == "Observe" or not isinstance(metadata, dict):
            continue
        group = str(node.object.get("apiVersion", "")).rpartition("/")[0]
        kind, name = str(node.object.get("kind", "")), str(metadata.get("name", ""))
        for place in {str(metadata.get("namespace") or namespace), ""}:
            ref = Ref(group, kind, place, name)
            if not mirrors or ref.id in intended:
                yield _word(cluster, ref)


def heir(graph: ResourceGraph, ref: Ref, graphs: Cache[ResourceGraph]) -> str:
    """The UID of another graph that asks for an object and may have it; empty when there is none.

    The object stands in its inventory then: it was found to be allowed, and is meant.
    """
    for other in _rivals(graph, ref, graphs):
        if any(entry.id == ref.id for entry in other.status.inventory):
            return other.metadata.uid
    return ""


def suitor(graph: ResourceGraph, ref: Ref, graphs: Cache[ResourceGraph]) -> str:
    """The name of a graph beside this one that asks for an object and may still get to it.

    It was not looked at since, or has just begun to fail: its rights may be on their way.
    """
    for other in _rivals(graph, ref, graphs):
        beside = other.metadata.namespace == graph.metadata.namespace
        if beside and (not _was_looked_at(other) or _fails_lately(other)):
            return other.metadata.name
    return ""


def _was_looked_at(graph: ResourceGraph) -> bool:
    return graph.status.observed_generation == graph.metadata.generation


def _fails_lately(graph: ResourceGraph) -> bool:
    ready = condition(graph, "Ready")
    if ready is None or ready.status != "False" or ready.last_transition_time is None:
        return False
    return (datetime.now(UTC) - ready.last_transition_time).total_seconds() < HOPE


def is_claimed(graph: ResourceGraph, ref: Ref, graphs: Cache[ResourceGraph]) -> bool:
    """Whether another graph is to have an object, or may be."""
    return bool(heir(graph, ref, graphs) or suitor(graph, ref, graphs))


def _rivals(
    graph: ResourceGraph, ref: Ref, graphs: Cache[ResourceGraph]
) -> Iterator[ResourceGraph]:
    """Other graphs that ask for an object, and are executed."""
    for key in sorted(graphs.by(INDEX, _word(_cluster(graph), ref))):
        other = graphs.get(key)
        if not isinstance(other, ResourceGraph) or other.metadata.uid == graph.metadata.uid:
            continue
        if other.metadata.deletion_timestamp is not None or is_suspended(other):
            continue
        if is_stalled(other):
            continue
        yield other


def _cluster(graph: ResourceGraph) -> str:
    reference = graph.spec.cluster_ref
    return f"{graph.metadata.namespace}/{reference.name}" if reference is not None else ""


def _word(cluster: str, ref: Ref) -> str:
    return f"{cluster}|{ref.group}|{ref.kind}|{ref.namespace}|{ref.name}"
