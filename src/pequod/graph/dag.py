"""The order of nodes: who waits for whom, and how deep."""

from collections.abc import Iterable, Mapping
from graphlib import CycleError, TopologicalSorter

Edges = Mapping[str, Iterable[str]]
"""Each node, and those that it depends on."""


class CycleFoundError(ValueError):
    """Nodes that wait for each other."""

    def __init__(self, cycle: tuple[str, ...]) -> None:
        super().__init__(" → ".join(cycle))
        self.cycle = cycle


def ordered(edges: Edges) -> tuple[str, ...]:
    """The nodes, each after those that it depends on; a cycle is named as it would be walked."""
    try:
        return tuple(TopologicalSorter(edges).static_order())
    except CycleError as error:
        # graphlib walks from a dependency to its dependents.
        raise CycleFoundError(tuple(reversed(error.args[1]))) from error


def has_cycle(edges: Edges) -> bool:
    """Whether nodes wait for each other."""
    try:
        ordered(edges)
    except CycleFoundError:
        return True
    return False


def levels(edges: Edges) -> dict[str, int]:
    """How many others stand one after the other before each node."""
    found: dict[str, int] = {}
    for node in ordered(edges):
        found[node] = 1 + max((found[other] for other in edges.get(node, ())), default=-1)
    return found


def reversed_edges(edges: Edges) -> dict[str, tuple[str, ...]]:
    """Each node, and those that depend on it."""
    found: dict[str, list[str]] = {node: [] for node in edges}
    for node, others in edges.items():
        for other in others:
            found.setdefault(other, []).append(node)
    return {node: tuple(others) for node, others in found.items()}
