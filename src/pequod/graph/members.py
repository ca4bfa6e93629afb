"""The nodes of a graph as the executor works on them, and what it gets to see of their objects."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from pequod.api.graph import Node
from pequod.graph.child import Child
from pequod.graph.desired import Desired
from pequod.graph.model import Ref
from pequod.graph.record import Record
from pequod.graph.values import Template
from pequod.kube.kinds import Kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A node with everything that its apply needs."""

    node: Node
    kind: Kind
    ref: Ref
    digest: str
    """Of what it asks for, as far as that is known without values of other nodes."""
    body: Callable[[], Awaitable[Desired]]
    """What is sent for it; made when it is sent, since its sensitive part is read for that."""
    sensitive: bool = False
    also_after: tuple[str, ...] = ()
    """Nodes that it has to wait for besides those that it names."""
    template: Template | None = None
    """Where values of other nodes stand in it; without them, what it asks for is not known."""
    judge: Callable[[Mapping[str, Any]], str] | None = None
    """The digest of what it asks for with values; raises UnusableObjectError."""
    joins: bool | None = None
    """Whether the graph adopts its object, if there is one; None where the node itself says so."""
    mirrored: bool = False
    """Whether its object stays with others, and how it differs is only told."""

    @property
    def adopts(self) -> bool:
        """Whether an object that exists already may become the graph's."""
        return self.node.apply_policy.mode == "Adopt" if self.joins is None else self.joins

    @property
    def sources(self) -> tuple[str, ...]:
        """The nodes that it takes values from."""
        return self.template.sources if self.template is not None else ()

    def asks_for(self, record: Record) -> str:
        """The digest of what it asks for, with the values that were last filled in."""
        if self.template is None:
            return self.digest
        return record.filled.digest if record.filled is not None else ""

    @property
    def after(self) -> tuple[str, ...]:
        """Everything that must be ready before it is applied."""
        return (*self.node.depends_on, *self.also_after)


class View(Protocol):
    """What is known of live objects."""

    def get(self, member: Member) -> Child | None:
        """The object of a node; None when there is none that is known to be the graph's."""

    def put(self, member: Member, child: Child) -> None:
        """The object of a node as an answer has just shown it."""


def dependents(members: Mapping[str, Member]) -> dict[str, list[str]]:
    """Who waits for each node."""
    found: dict[str, list[str]] = {}
    for id_, member in members.items():
        for other in member.after:
            found.setdefault(other, []).append(id_)
    return found


def takers(members: Mapping[str, Member]) -> dict[str, list[str]]:
    """Who takes values from each node."""
    found: dict[str, list[str]] = {}
    for id_, member in members.items():
        for other in member.sources:
            found.setdefault(other, []).append(id_)
    return found
