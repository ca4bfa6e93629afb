"""Which graphs ask for which objects: what one graph lets go of, another one may want."""

from collections.abc import Iterator

from pequod.api.platform import ResourceGraph
from pequod.graph.model import Ref
from pequod.kube.cache import Cache

INDEX = "claims"


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
    """The UID of another graph that asks for an object; empty when there is none.

    One in another namespace counts only when it was found to be allowed to: then the object stands
    in its inventory already.
    """
    for key in sorted(graphs.by(INDEX, _word(_cluster(graph), ref))):
        other = graphs.get(key)
        if not isinstance(other, ResourceGraph) or other.metadata.uid == graph.metadata.uid:
            continue
        if other.metadata.deletion_timestamp is not None or other.spec.suspend:
            continue
        if any(condition.type == "Stalled" for condition in other.status.conditions):
            continue
        known = other.metadata.namespace == graph.metadata.namespace or any(
            entry.id == ref.id for entry in other.status.inventory
        )
        if known:
            return other.metadata.uid
    return ""


def _cluster(graph: ResourceGraph) -> str:
    reference = graph.spec.cluster_ref
    return f"{graph.metadata.namespace}/{reference.name}" if reference is not None else ""


def _word(cluster: str, ref: Ref) -> str:
    return f"{cluster}|{ref.group}|{ref.kind}|{ref.namespace}|{ref.name}"
