"""A graph that can be executed: everything that is wrong with one is found before the first write.

What the schema of the API cannot say is checked here: ids that are unique, dependencies that exist
and do not go round in circles, objects that are named once and bring nothing that is not theirs to
bring. Whoever takes values from another node depends on it, without having to say so.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import msgspec

from pequod.api.graph import MAX_NODES, Node
from pequod.graph import values
from pequod.graph.dag import CycleFoundError, has_cycle, levels, ordered, reversed_edges
from pequod.graph.foundations import foundations
from pequod.graph.values import Template

GRAPH_LABEL = "pequod.io/graph"
RELEASED = "pequod.io/released-by"
"""The graph that has let go of an object: nobody's, but that one may take it back."""
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
MANAGED_BY = "app.kubernetes.io/managed-by"

MAX_SPEC_BYTES = 768 * 1024
MAX_OBJECT_BYTES = 512 * 1024
MAX_STATUS_BYTES = 384 * 1024
WARN_FROM = 0.8
"""Of a limit: from here on it is worth a warning."""
MAX_DEPTH = 64
_API_VERSION = re.compile(r"([a-z0-9][a-z0-9.-]*/)?[a-z][a-z0-9-]*")
_KIND = re.compile(r"[A-Za-z][A-Za-z0-9]*")
_NAME = re.compile(r"(?!\.{1,2}\Z)[^/%$\s]{1,253}")
_NAMESPACE = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_MOST_PROBLEMS = 20
_A_NAMESPACE = "a-namespace-of-a-team"
_STATUS_BYTES_OF_A_NODE = 265
"""What phase, digests, times and UIDs take, without the names."""


class Ref(NamedTuple):
    """An object of a cluster, whichever version it is written in."""

    group: str
    kind: str
    namespace: str
    """Empty for cluster-scoped objects."""
    name: str

    @property
    def id(self) -> str:
        """As inventories have it."""
        return f"{self.namespace}_{self.name}_{self.group}_{self.kind}"

    @classmethod
    def of(cls, id: str) -> "Ref":  # noqa: A002 -- the inventory's own word
        """The object of an entry; only names of objects may hold an underscore."""
        namespace, rest = id.split("_", 1)
        name, group, kind = rest.rsplit("_", 2)
        return cls(group, kind, namespace, name)

    def __str__(self) -> str:
        place = f"{self.namespace}/" if self.namespace else ""
        return f"{self.kind}/{place}{self.name}"


def graph_of(live: Mapping[str, Any]) -> str:
    """The UID of the graph that an object says it belongs to."""
    return str((live["metadata"].get("labels") or {}).get(GRAPH_LABEL) or "")


def released_by(live: Mapping[str, Any]) -> str:
    """The UID of the graph that has let go of an object, if it is nobody's since then."""
    if graph_of(live):
        return ""
    return str((live["metadata"].get("annotations") or {}).get(RELEASED) or "")


class InvalidGraphError(ValueError):
    """A graph that cannot be executed, and everything that is wrong with it."""

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        shown = "; ".join(self.problems[:_MOST_PROBLEMS])
        more = len(self.problems) - _MOST_PROBLEMS
        super().__init__(f"{shown}; and {more} more" if more > 0 else shown)


@dataclass(frozen=True, slots=True)
class Plan:
    """The nodes of a graph in an order in which they can be applied."""

    nodes: Mapping[str, Node]
    order: tuple[str, ...]
    dependents: Mapping[str, tuple[str, ...]]
    levels: Mapping[str, int]
    size: int = 0
    """Bytes that the nodes take."""
    warnings: tuple[str, ...] = ()
    edges: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Each node, and those that it depends on: named, taken values from, or stood upon."""
    templates: Mapping[str, Template] = field(default_factory=dict)
    """Where values of others stand in the objects of nodes, for those that have such places."""

    @property
    def sources(self) -> frozenset[str]:
        """The nodes that others take values from."""
        return frozenset(id_ for one in self.templates.values() for id_ in one.sources)

    def __iter__(self) -> Iterator[Node]:
        return (self.nodes[id_] for id_ in self.order)

    def over(self, nodes: Sequence[Node]) -> "Plan":
        """The same plan for nodes of the same generation, read anew."""
        return replace(self, nodes={node.id: node for node in nodes})


def checked(nodes: Sequence[Node]) -> Plan:
    """The plan of a graph; raises InvalidGraphError with everything that is wrong."""
    templates = {node.id: made for node in nodes if (made := values.template(node.object))}
    problems = [*_ids(nodes), *_dependencies(nodes), *_objects(nodes)]
    problems += values.problems(nodes, templates)
    size = len(msgspec.json.encode(nodes))
    problems += _sizes(nodes, size)
    edges = _edges(nodes, templates)
    order: tuple[str, ...] = ()
    try:
        order = ordered(edges)
    except CycleFoundError as error:
        ways = "dependsOn or ${nodes.…}" if templates.keys() & set(error.cycle) else "dependsOn"
        problems.append(
            f"nodes wait for each other in a circle: {error}; remove one {ways} of these"
        )
    if problems:
        raise InvalidGraphError(problems)
    return Plan(
        nodes={node.id: node for node in nodes},
        order=order,
        dependents=reversed_edges(edges),
        levels=levels(edges),
        size=size,
        warnings=tuple(_warnings(nodes, size)),
        edges=edges,
        templates=templates,
    )


def _edges(nodes: Sequence[Node], templates: Mapping[str, Template]) -> dict[str, tuple[str, ...]]:
    """Who depends on whom; what nobody has said does not count where it leads in a circle."""
    for grounds in (foundations(nodes), {}):
        edges = {
            node.id: _needed(node, templates.get(node.id), grounds.get(node.id, ()))
            for node in nodes
        }
        if not grounds or not has_cycle(edges):
            break
    return edges


def _needed(node: Node, template: Template | None, grounds: tuple[str, ...]) -> tuple[str, ...]:
    """Those that a node depends on; that it takes values from itself is told as such."""
    sources = template.sources if template is not None else ()
    others = (id_ for id_ in sources if id_ != node.id)
    return tuple(dict.fromkeys((*node.depends_on, *others, *grounds)))


def _ids(nodes: Sequence[Node]) -> Iterator[str]:
    for id_, count in Counter(node.id for node in nodes).items():
        if count > 1:
            yield f"{count} nodes have the id {id_}: give each its own"


def _dependencies(nodes: Sequence[Node]) -> Iterator[str]:
    known = {node.id for node in nodes}
    for node in nodes:
        for other in node.depends_on:
            if other not in known:
                yield f"node {node.id} depends on {other}, which is no node of the graph"


def _sizes(nodes: Sequence[Node], size: int) -> Iterator[str]:
    if len(nodes) > MAX_NODES:
        yield f"the graph has {len(nodes)} nodes and may have {MAX_NODES}: split it"
    if size > MAX_SPEC_BYTES:
        yield f"the nodes take {_kib(size)} KiB and may take {_kib(MAX_SPEC_BYTES)}: split them up"
    if (status := _status_size(nodes)) > MAX_STATUS_BYTES:
        yield (
            f"what the status would have to say takes {_kib(status)} KiB and may take "
            f"{_kib(MAX_STATUS_BYTES)}: split the graph, or use shorter names"
        )


def _warnings(nodes: Sequence[Node], size: int) -> Iterator[str]:
    for what, value, limit in (
        ("nodes", len(nodes), MAX_NODES),
        ("KiB of nodes", _kib(size), _kib(MAX_SPEC_BYTES)),
        ("KiB of status", _kib(_status_size(nodes)), _kib(MAX_STATUS_BYTES)),
    ):
        if value >= WARN_FROM * limit:
            yield f"the graph has {value} of {limit} {what}: split it before it reaches the limit"


def _kib(size: int) -> int:
    return -(-size // 1024)


def _status_size(nodes: Sequence[Node]) -> int:
    return sum(_STATUS_BYTES_OF_A_NODE + 2 * len(node.id) + _id_size(node) for node in nodes)


def _id_size(node: Node) -> int:
    """How long the id of its inventory entry is, about: its namespace may be the graph's."""
    metadata = _metadata(node)
    group = str(node.object.get("apiVersion", "")).rpartition("/")[0]
    parts = (metadata.get("name", ""), metadata.get("namespace") or _A_NAMESPACE, group)
    return len(str(node.object.get("kind", ""))) + sum(len(str(part)) for part in parts)


def _metadata(node: Node) -> Mapping[str, Any]:
    metadata = node.object.get("metadata")
    return metadata if isinstance(metadata, dict) else {}


def _objects(nodes: Sequence[Node]) -> Iterator[str]:
    seen: dict[tuple[str, str, str, str], str] = {}
    for node in nodes:
        yield from (f"node {node.id}: {problem}" for problem in object_problems(node))
        metadata = _metadata(node)
        group = str(node.object.get("apiVersion", "")).rpartition("/")[0]
        place = (
            group,
            str(node.object.get("kind", "")),
            str(metadata.get("namespace", "")),
            str(metadata.get("name", "")),
        )
        if (other := seen.setdefault(place, node.id)) != node.id:
            yield f"nodes {other} and {node.id} are the same object: remove one of them"


def object_problems(node: Node) -> Iterator[str]:
    """Why the object of a node cannot be applied, before or after values were filled in."""
    object_ = node.object
    api_version, kind = object_.get("apiVersion"), object_.get("kind")
    metadata = object_.get("metadata")
    if not _fits(_API_VERSION, api_version) or not _fits(_KIND, kind):
        yield "apiVersion and kind must be those of a kind, without expressions"
    elif str(kind).endswith("List") and isinstance(object_.get("items"), list):
        yield f"{kind} is a list: make a node of each of its items"
    if not isinstance(metadata, dict) or not _fits(_NAME, metadata.get("name")):
        yield "metadata.name must be a plain name; generateName is not for objects that are kept"
        return
    if metadata.get("namespace") and not _fits(_NAMESPACE, metadata["namespace"]):
        yield "metadata.namespace must be the plain name of a namespace"
    yield from _reserved(metadata)
    yield from _secret(node)
    yield from _shape(object_)


def _fits(pattern: re.Pattern[str], value: object) -> bool:
    return isinstance(value, str) and pattern.fullmatch(value) is not None


def _reserved(metadata: Mapping[str, Any]) -> Iterator[str]:
    if metadata.get("ownerReferences"):
        yield "metadata.ownerReferences is not allowed: graphs keep and remove their own objects"
    if metadata.get("finalizers"):
        yield "metadata.finalizers is not allowed: nobody would take them off again"
    if metadata.get("generateName"):
        yield "metadata.generateName is not allowed: give the object a name"
    for part in ("labels", "annotations"):
        pairs = metadata.get(part)
        if pairs is None:
            continue
        if not isinstance(pairs, dict) or not all(isinstance(v, str) for v in pairs.values()):
            yield f"metadata.{part} must be a map of strings"
        elif part == "labels" and GRAPH_LABEL in pairs:
            yield f"the label {GRAPH_LABEL} is ours: remove it"


def _secret(node: Node) -> Iterator[str]:
    object_ = node.object
    if object_.get("apiVersion") == "v1" and object_.get("kind") == "Secret":
        for part in ("data", "stringData"):
            if object_.get(part):
                yield (
                    f"{part} of a Secret must not stand in a graph: put it into a Secret as JSON "
                    "and name that in objectFrom.secretRef"
                )
        if LAST_APPLIED in (_metadata(node).get("annotations") or {}):
            yield f"the annotation {LAST_APPLIED} of a Secret holds its data: remove it"


def _shape(object_: Mapping[str, Any]) -> Iterator[str]:
    if len(msgspec.json.encode(object_)) > MAX_OBJECT_BYTES:
        yield f"the object is larger than {_kib(MAX_OBJECT_BYTES)} KiB"
    if _too_deep(object_, MAX_DEPTH):
        yield f"the object is nested deeper than {MAX_DEPTH} levels"


def _too_deep(value: object, left: int) -> bool:
    if left == 0:
        return True
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return any(_too_deep(one, left - 1) for one in inner if isinstance(one, (dict, list)))
