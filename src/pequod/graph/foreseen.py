"""Values between nodes that a plan knows already: those of objects that stay as they are."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from pequod.api.graph import Node
from pequod.graph.applying import RefusedError
from pequod.graph.desired import Desired, UnusableObjectError
from pequod.graph.filling import evaluated, visible
from pequod.graph.model import Ref, object_problems
from pequod.graph.plan import Wanted
from pequod.graph.probes import Probes
from pequod.graph.record import Filled
from pequod.graph.values import Template
from pequod.kube.kinds import Kind
from pequod.kube.objects import Object


@dataclass(frozen=True, slots=True)
class Steady:
    """The object of a node that would not change."""

    live: Object
    sensitive: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class _Taker:
    node: Node
    kind: Kind
    ref: Ref
    sensitive: bool
    template: Template | None
    judge: Callable[[Mapping[str, Any]], str]
    digest: str = ""


async def foreseen(
    wanted: Wanted, body: Desired, steady: Mapping[str, Steady], probes: Probes
) -> Wanted:
    """A node with its values, as far as they are known before anything is done.

    Raises RefusedError when an execution would refuse them, or nobody could evaluate them.
    """
    if not steady.keys() >= {*wanted.sources}:
        return wanted
    taker = _Taker(
        node=wanted.node,
        kind=body.kind,
        ref=body.ref,
        sensitive=wanted.sensitive,
        template=wanted.template,
        judge=lambda values: _judged(wanted, values),
    )
    sources = {id_: steady[id_] for id_ in wanted.sources}
    found = await evaluated(
        taker,
        {id_: visible(one.live, sensitive=one.sensitive) for id_, one in sources.items()},
        frozenset(id_ for id_, one in sources.items() if one.sensitive),
        probes,
        Filled("", {}),
    )
    if found.problem is not None:
        raise RefusedError(found.problem)
    if found.values is None:
        return replace(wanted, waits=found.lacks)
    return wanted.filled(found.values)


def _judged(wanted: Wanted, values: Mapping[str, Any]) -> str:
    """Be sure that an object can be applied with its values; there is no digest of it in a plan."""
    object_ = wanted.filled(values).object
    for problem in object_problems(msgspec.structs.replace(wanted.node, object=dict(object_))):
        raise UnusableObjectError(problem)
    return ""
