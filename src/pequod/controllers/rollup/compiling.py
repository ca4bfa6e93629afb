"""A chain as a graph: the nodes of each program that is enabled. Pure."""

from collections.abc import Callable, Mapping

from pequod.api.graph import Node
from pequod.controllers.rollup.components.batcher import batcher
from pequod.controllers.rollup.components.chain import COMPONENTS, Chain, Component
from pequod.controllers.rollup.components.geth import geth
from pequod.controllers.rollup.components.node import node
from pequod.controllers.rollup.components.proposer import proposer

Parts = Mapping[Component, tuple[Node, ...]]
"""The nodes of a graph by the program that they belong to."""

_MAKERS: dict[Component, Callable[[Chain], tuple[Node, ...]]] = {
    "geth": geth,
    "node": node,
    "batcher": batcher,
    "proposer": proposer,
}


def parts_of(chain: Chain) -> Parts:
    """Everything that a chain consists of."""
    return {component: _MAKERS[component](chain) for component in chain.enabled()}


def parts_in(nodes: tuple[Node, ...]) -> Parts:
    """The nodes of a stored graph, as they were compiled."""
    found: dict[Component, tuple[Node, ...]] = {}
    for component in COMPONENTS:
        own = tuple(one for one in nodes if one.id.partition("-")[0] == component)
        if own:
            found[component] = own
    return found


def nodes_of(parts: Parts) -> tuple[Node, ...]:
    """The nodes of all programs, in the order in which they start."""
    return tuple(one for component in COMPONENTS for one in parts.get(component, ()))
