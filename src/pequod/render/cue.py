"""A CUE module and an input become a graph, or the list of what is wrong with the input."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import msgspec

from pequod.api.graph import MAX_NODES, ApplyPolicy, Graph, GraphMetadata, Node, ReadyWhen
from pequod.evaluator.answers import Violation
from pequod.evaluator.errors import ModuleError, OverLimitError, Problem
from pequod.evaluator.evaluator import Evaluator, Tree
from pequod.render.contents import unreadable
from pequod.render.wording import in_words

MAX_BYTES = 768 * 1024
"""The largest graph that can be stored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rendering:
    """What became of an input."""

    graph: Graph | None
    """None when a violation forbids it."""
    violations: tuple[Violation, ...] = ()

    @property
    def refused(self) -> bool:
        """Whether there is a violation that blocks."""
        return any(violation.severity == "Error" for violation in self.violations)


async def render(
    evaluator: Evaluator,
    module: Tree,
    given: Mapping[str, Any],
    *,
    name: str,
    namespace: str,
    owner: str = "",
) -> Rendering:
    """Render an input; raises ModuleError when the module yields something that is no graph."""
    context = {"name": name, "namespace": namespace}
    answer = await evaluator.render(module, given, context, owner=owner)
    graph = None if answer.graph is None else graph_of(answer.graph)
    return Rendering(graph=graph, violations=answer.violations)


def graph_of(value: Mapping[str, Any]) -> Graph:
    """A graph, from what a module calls one."""
    nodes = value.get("nodes")
    if isinstance(nodes, list) and len(nodes) > MAX_NODES:
        raise OverLimitError(f"the graph has {len(nodes)} nodes and {MAX_NODES} are allowed")
    size = len(msgspec.json.encode(value))
    if size > MAX_BYTES:
        raise OverLimitError(f"the graph has {size} bytes and {MAX_BYTES} are allowed")
    problems = [*_oddities(value)]
    try:
        graph = msgspec.convert(value, Graph)
    except msgspec.ValidationError as error:
        message, _, path = str(error).partition(" - at ")
        place = f"graph{path.strip('`').removeprefix('$')}"
        problems.append(Problem(message=in_words(message, place), path=place))
    if problems:
        raise ModuleError("the module's graph is not valid", problems)
    return graph


def _oddities(graph: Mapping[str, Any]) -> Iterator[Problem]:
    """Fields that nobody would ever read, most often misspelt ones, and objects that are none."""
    yield from _unknown(graph, Graph, "graph")
    yield from _unknown(graph.get("metadata"), GraphMetadata, "graph.metadata")
    nodes = graph.get("nodes")
    for place, node in enumerate(nodes if isinstance(nodes, list) else ()):
        path = f"graph.nodes[{place}]"
        yield from _unknown(node, Node, path)
        if isinstance(node, Mapping):
            yield from _misshapen(node.get("object"), f"{path}.object")
            yield from unreadable(node)
            yield from _unknown(node.get("applyPolicy"), ApplyPolicy, f"{path}.applyPolicy")
            predicates = node.get("readyWhen")
            for number, one in enumerate(predicates if isinstance(predicates, list) else ()):
                yield from _unknown(one, ReadyWhen, f"{path}.readyWhen[{number}]")


def _misshapen(value: object, path: str) -> Iterator[Problem]:
    """What no object of Kubernetes is like; where it matters, the API server knows more."""
    if not isinstance(value, Mapping):
        return
    for name, kind in (("apiVersion", str), ("kind", str), ("metadata", Mapping)):
        if not isinstance(value.get(name), kind):
            yield Problem(message="is missing, or of another type", path=f"{path}.{name}")


@cache
def _fields(kind: type[msgspec.Struct]) -> tuple[str, ...]:
    """What a kind of value holds; finding that out takes a while."""
    return tuple(field.encode_name for field in msgspec.structs.fields(kind))


def _unknown(value: object, kind: type[msgspec.Struct], path: str) -> Iterator[Problem]:
    known = _fields(kind)
    for name in value if isinstance(value, Mapping) else ():
        if name not in known:
            message = f"is not known here; known are {', '.join(known)}"
            yield Problem(message=message, path=f"{path}.{name}")
