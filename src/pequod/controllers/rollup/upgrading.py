"""In which order a chain that runs becomes another one. Pure.

The batcher and the proposer stop first; then op-geth changes, then op-node; and when the chain
makes blocks again, the other two start. What the stored graph holds says how far that has come, so
that nothing is lost when the operator dies on the way.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import msgspec

from pequod.api.graph import Node
from pequod.controllers.rollup.compiling import Parts
from pequod.controllers.rollup.components.chain import Component
from pequod.controllers.rollup.components.senders import SENDERS, Sender

BASE: tuple[Component, ...] = ("geth", "node")
"""What the others build upon, in the order in which it changes."""

Step = Literal["whole", "stop", "geth", "node"]


@dataclass(frozen=True, slots=True)
class Stage:
    """What the graph holds for now."""

    parts: Parts
    step: Step = "whole"
    waits: str = ""
    """What must happen before the next stage; empty when this is the last one."""


@dataclass(frozen=True, slots=True)
class Situation:
    """What is known of the chain as it is stored."""

    is_ready: Callable[[Component], bool]
    """Whether the workload of a program is as the stored graph has it."""
    answers: bool
    """Whether op-geth has answered since the last stage began."""
    advances: bool
    """Whether the chain has made blocks since the last stage began."""


def next_stage(wanted: Parts, stored: Parts, now: Situation) -> Stage:
    """What the graph is to hold next, on the way to what is wanted."""
    late = [one for one in BASE if _differs(wanted, stored, one)]
    if late and "geth" in wanted and "geth" not in stored:
        late = ["geth", *late]
    stopped = all(_is_stopped(stored, one) for one in SENDERS)
    held = _held(wanted, stored)
    if not late:
        return Stage(wanted) if not stopped or not _sends(stored) else _started(wanted, held, now)
    if not stopped:
        return Stage(_stopped(held), "stop", "the batcher and the proposer stop")
    if not all(now.is_ready(one) for one in SENDERS if one in stored):
        return Stage(held, "stop", "the batcher and the proposer stop")
    if late[0] == "geth":
        return Stage({**held, "geth": wanted["geth"]}, "geth", "op-geth serves the new way")
    if _lasts("geth", wanted, held) and not (now.is_ready("geth") and now.answers):
        return Stage(held, "geth", "op-geth serves the new way")
    new = {**_without_gone(wanted, held), "node": wanted["node"]}
    return Stage(new, "node", "op-node makes blocks the new way")


def _started(wanted: Parts, held: Parts, now: Situation) -> Stage:
    """The batcher and the proposer start when there is something to send."""
    held = _without_gone(wanted, held)
    if _lasts("geth", wanted, held) and not (now.is_ready("geth") and now.answers):
        return Stage(held, "geth", "op-geth serves the new way")
    if _lasts("node", wanted, held) and not (now.is_ready("node") and now.advances):
        return Stage(held, "node", "op-node makes blocks the new way")
    return Stage(wanted)


def _held(wanted: Parts, stored: Parts) -> Parts:
    """What is stored, with everything that is wanted and changes no pod: a larger volume, say."""
    same = {
        one: wanted[one]
        for one in BASE
        if _lasts(one, wanted, stored) and not _differs(wanted, stored, one)
    }
    return {**stored, **same}


def _without_gone(wanted: Parts, held: Parts) -> Parts:
    """Without programs that are to go, and that nothing depends on any more."""
    return {one: nodes for one, nodes in held.items() if one in SENDERS or one in wanted}


def _lasts(component: Component, wanted: Parts, stored: Parts) -> bool:
    """Whether a program is there, and is to stay: nobody waits for one that is to go."""
    return component in stored and component in wanted


def is_stopped(nodes: Parts, sender: Sender) -> bool:
    """Whether a program that sends is there, and told not to run."""
    return sender in nodes and _is_stopped(nodes, sender)


def is_under_way(stored: Parts) -> bool:
    """Whether a graph is one of those on the way of an upgrade."""
    return any(is_stopped(stored, one) for one in SENDERS)


def _sends(parts: Parts) -> bool:
    return any(one in parts for one in SENDERS)


def _is_stopped(parts: Parts, sender: Sender) -> bool:
    workload = _workload(parts, sender)
    return workload is None or workload.object["spec"]["replicas"] == 0


def _stopped(parts: Parts) -> Parts:
    return {**parts, **{one: _without_pods(parts[one], one) for one in SENDERS if one in parts}}


def _without_pods(nodes: tuple[Node, ...], sender: Sender) -> tuple[Node, ...]:
    """Stopped at once, whatever the programs are doing that it otherwise comes after."""
    return tuple(_idle(node, sender) if node.id == sender else node for node in nodes)


def _idle(node: Node, sender: Sender) -> Node:
    object_ = {**node.object, "spec": {**node.object["spec"], "replicas": 0}}
    own = tuple(one for one in node.depends_on if one.startswith(f"{sender}-"))
    return msgspec.structs.replace(node, object=object_, depends_on=own)


def _differs(wanted: Parts, stored: Parts, component: Component) -> bool:
    """Whether other pods are wanted; a component that comes or goes is no upgrade."""
    new, old = _workload(wanted, component), _workload(stored, component)
    if new is None or old is None:
        return False
    return bool(new.object["spec"]["template"] != old.object["spec"]["template"])


def _workload(parts: Parts, component: Component) -> Node | None:
    return next((one for one in parts.get(component, ()) if one.id == component), None)
