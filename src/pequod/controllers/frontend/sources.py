"""What every front end is to its graph: its source, woken by it, and allowed to write it."""

from collections.abc import Iterable
from typing import Any

from pequod.api.meta import ObjectReference, Resource
from pequod.api.platform import ResourceGraph
from pequod.controllers.frontend.naming import graph_name
from pequod.controllers.frontend.storing import GRAPHS, Source
from pequod.kube.cache import Projection
from pequod.kube.objects import Key
from pequod.runtime.reconciler import Permission
from pequod.runtime.triggers import Lookup, Trigger

WRITES_GRAPHS = Permission(
    group=GRAPHS.group,
    resources=(GRAPHS.plural,),
    verbs=("get", "list", "watch", "create", "patch", "delete"),
)


def source_of(object_: Resource[Any, Any], cluster: str | None = None) -> Source:
    """An object as what a graph is made for, on a cluster of that name."""
    metadata, definition = object_.metadata, type(object_).definition
    namespace = metadata.namespace or ""
    return Source(
        reference=ObjectReference(
            api_version=definition.api_version,
            kind=definition.kind,
            name=metadata.name,
            namespace=namespace,
            uid=metadata.uid,
        ),
        namespace=namespace,
        graph=graph_name(definition.kind, metadata.name, cluster),
    )


def woken_by_graphs(kind: type[Resource[Any, Any]]) -> Trigger[ResourceGraph]:
    """Changes of a graph wake the object that it was made for."""
    own = (kind.definition.api_version, kind.definition.kind)

    def source(graph: ResourceGraph, _lookup: Lookup) -> Iterable[Key]:
        known = graph.spec.source_ref
        if known is None or (known.api_version, known.kind) != own:
            return ()
        return (Key(known.namespace or "", known.name),)

    return Trigger(GRAPHS, Projection(ResourceGraph), source)
