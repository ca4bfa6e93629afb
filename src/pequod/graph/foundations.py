"""What objects cannot be made without: their kind, and their namespace.

Where nodes of the same graph make these, the others wait for them without being told to.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from pequod.api.graph import Node

_DEFINITIONS = "apiextensions.k8s.io"


def foundations(nodes: Sequence[Node]) -> dict[str, tuple[str, ...]]:
    """The nodes that make the kind or the namespace of other nodes, by the ids of these."""
    kinds = {kind: node.id for node in nodes if (kind := _defines(node.object))}
    namespaces = {name: node.id for node in nodes if (name := _opens(node.object))}
    if not kinds and not namespaces:
        return {}
    found = {}
    for node in nodes:
        makers = (kinds.get(_kind(node.object)), namespaces.get(_namespace(node.object)))
        found[node.id] = tuple(id_ for id_ in makers if id_ is not None and id_ != node.id)
    return found


def is_defined_by(node: Node, other: Node) -> bool:
    """Whether another node defines the kind of a node's object."""
    return _defines(other.object) == _kind(node.object)


def _kind(object_: Mapping[str, Any]) -> tuple[str, str]:
    group = str(object_.get("apiVersion", "")).rpartition("/")[0]
    return (group, str(object_.get("kind", "")))


def _defines(object_: Mapping[str, Any]) -> tuple[str, str] | None:
    """The kind that an object defines."""
    if _kind(object_) != (_DEFINITIONS, "CustomResourceDefinition"):
        return None
    spec = _part(object_, "spec")
    return (str(spec.get("group", "")), str(_part(spec, "names").get("kind", "")))


def _opens(object_: Mapping[str, Any]) -> str:
    """The name of the namespace that an object is."""
    return _name(object_, "name") if _kind(object_) == ("", "Namespace") else ""


def _namespace(object_: Mapping[str, Any]) -> str:
    return _name(object_, "namespace")


def _name(object_: Mapping[str, Any], part: str) -> str:
    return str(_part(object_, "metadata").get(part) or "")


def _part(object_: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    part = object_.get(name)
    return part if isinstance(part, dict) else {}
