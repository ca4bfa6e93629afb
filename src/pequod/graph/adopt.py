"""Which nodes of a graph are objects that exist already, and join it. Pure.

What is named or selected and is no node is reported and left alone: adoption never makes a node.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from pequod.api.graph import Adopt, AdoptedResource, Node
from pequod.api.meta import LabelSelector
from pequod.graph.model import Ref
from pequod.graph.record import Problem


@dataclass(frozen=True, slots=True)
class Chosen:
    """The nodes that are adopted, and what was asked for besides."""

    nodes: frozenset[str] = frozenset()
    left_alone: tuple[str, ...] = ()
    """Sentences about what was named or selected and is not adopted."""


@dataclass(slots=True)
class Adoption:
    """What is known of the adoption that one generation of a graph asks for."""

    generation: int
    chosen: Chosen
    members: frozenset[str]
    """The nodes that could be executed when it was found out."""
    at: float
    """When it was found out, by the loop's clock."""
    found: set[str] = field(default_factory=set)
    """Nodes whose objects were seen, and may be adopted."""
    refused: dict[str, Problem] = field(default_factory=dict)
    """Nodes whose objects may not be, or could not be looked at."""
    open: bool = False
    """Whether an object may still be found that is not the graph's yet."""
    said: str = ""
    """What was said of it before, where it did not have to be found out again."""


def named(
    adopt: Adopt, nodes: Mapping[str, Node], refs: Mapping[str, Ref], namespace: str
) -> Chosen:
    """The nodes that a list of objects stands for.

    `refs` has the objects of the nodes as far as their kinds are known; about a node whose kind is
    not, the node itself complains.
    """
    found: set[str] = set()
    left: list[str] = []
    by_ref = {ref: id_ for id_, ref in refs.items()}
    for resource in adopt.resources:
        ref = _ref(resource, namespace)
        id_ = resource.node_id or by_ref.get(ref) or by_ref.get(ref._replace(namespace=""))
        node = nodes.get(id_ or "")
        if id_ is None:
            if not _is_unknown(ref, nodes, refs):
                left.append(f"{ref} is no node and was left alone")
        elif node is None:
            left.append(f"{ref} was left alone: there is no node {id_}; correct its nodeId")
        elif id_ in refs and refs[id_] not in {ref, ref._replace(namespace="")}:
            other = refs[id_]
            left.append(f"{ref} was left alone: node {id_} is {other}; correct its nodeId")
        elif node.apply_policy.mode == "Observe":
            left.append(f"{ref} was left alone: node {id_} only observes it")
        else:
            found.add(id_)
    return Chosen(frozenset(found & refs.keys()), tuple(dict.fromkeys(left)))


def _ref(resource: AdoptedResource, namespace: str) -> Ref:
    group = resource.api_version.rpartition("/")[0]
    return Ref(group, resource.kind, resource.namespace or namespace, resource.name)


def _is_unknown(ref: Ref, nodes: Mapping[str, Node], refs: Mapping[str, Ref]) -> bool:
    """Whether a node may be meant whose kind is not known at the moment."""
    return any(
        str(node.object["apiVersion"]).rpartition("/")[0] == ref.group
        and node.object["kind"] == ref.kind
        and node.object["metadata"]["name"] == ref.name
        for id_, node in nodes.items()
        if id_ not in refs
    )


def selected(found: Iterable[Ref], refs: Mapping[str, Ref], *, also: Iterable[str] = ()) -> Chosen:
    """The nodes that selected objects stand for, besides those that were adopted before."""
    by_ref = {ref: id_ for id_, ref in refs.items()}
    known = [*dict.fromkeys(found)]
    nodes = {by_ref[ref] for ref in known if ref in by_ref}
    left = [f"{ref} is no node and was left alone" for ref in known if ref not in by_ref]
    return Chosen(frozenset(nodes | {*also}), tuple(left))


def adopts(
    adopt: Adopt, node: Node, ref: Ref, labels: Mapping[str, str], *, namespace: str
) -> bool:
    """Whether a live object joins the graph as a node, for those who look at one at a time."""
    if adopt.mode == "LabelSelector":
        return adopt.label_selector is not None and matches(adopt.label_selector, labels)
    return any(
        one.node_id in {None, node.id} and _ref(one, namespace) in {ref, _placed(ref, one)}
        for one in adopt.resources
    )


def _placed(ref: Ref, resource: AdoptedResource) -> Ref:
    """A cluster-scoped object is meant whatever namespace was named for it."""
    return ref if ref.namespace else ref._replace(namespace=resource.namespace or "")


def matches(selector: LabelSelector, labels: Mapping[str, str]) -> bool:
    """Whether an object of these labels is selected."""
    if any(labels.get(name) != value for name, value in selector.match_labels.items()):
        return False
    for one in selector.match_expressions:
        has = one.key in labels
        match one.operator:
            case "Exists" if not has:
                return False
            case "DoesNotExist" if has:
                return False
            case "In" if labels.get(one.key) not in one.values:
                return False
            case "NotIn" if has and labels[one.key] in one.values:
                return False
    return True


def query(selector: LabelSelector) -> str:
    """A label selector, as a list asks for it."""
    parts = [f"{name}={value}" for name, value in sorted(selector.match_labels.items())]
    for one in selector.match_expressions:
        match one.operator:
            case "Exists":
                parts.append(one.key)
            case "DoesNotExist":
                parts.append(f"!{one.key}")
            case _:
                word = "in" if one.operator == "In" else "notin"
                parts.append(f"{one.key} {word} ({','.join(one.values)})")
    return ",".join(parts)


def listed(sentences: Iterable[str], most: int = 10) -> str:
    """Sentences one after the other, if not too many."""
    known = [*sentences]
    more = len(known) - most
    return "; ".join(known[:most]) + (f"; and {more} more were left alone" if more > 0 else "")
