"""What an execution would do, as a value. `planning` finds it out.

`spec.dryRun` puts it into a status, `pequod plan` prints it.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from pequod.api import reasons
from pequod.api.graph import Adopt, DeletionPolicy, InventoryEntry, Node
from pequod.graph.adopt import adopts
from pequod.graph.differences import Difference, described
from pequod.graph.model import Ref, graph_of, released_by
from pequod.graph.prune import listed
from pequod.graph.reach import Reach
from pequod.graph.record import Problem
from pequod.graph.values import Template
from pequod.kube.objects import Object

Action = Literal["Create", "Update", "Delete", "Adopt", "Recreate"]
_WORDS: dict[Action, str] = {
    "Create": "to create",
    "Update": "to change",
    "Recreate": "to delete and make anew",
    "Adopt": "to adopt",
    "Delete": "to delete",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A node, with everything that would be sent for it."""

    node: Node
    object: Mapping[str, Any]
    """With its sensitive part."""
    template: Template | None = None
    """Where values of other nodes are still to be filled in."""
    waits: str = ""
    """Which of them is not there yet, for a person."""

    @property
    def later(self) -> bool:
        """Whether it is known only when it is applied."""
        return self.template is not None

    @property
    def sources(self) -> tuple[str, ...]:
        """The nodes that values are taken from."""
        return self.template.sources if self.template is not None else ()

    def filled(self, values: Mapping[str, Any]) -> "Wanted":
        """With values, by the text of their expressions; raises UnfitValueError."""
        assert self.template is not None, "asked for by those that have one"
        return replace(self, object=self.template.filled(self.object, values), template=None)

    @property
    def sensitive(self) -> bool:
        """Whether its values are nobody's business."""
        object_ = self.object
        secret = (object_.get("apiVersion"), object_.get("kind")) == ("v1", "Secret")
        return secret or self.node.object_from is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What would happen to one object."""

    action: Action
    ref: Ref
    api_version: str
    node: str = ""
    differences: tuple[Difference, ...] = ()
    note: str = ""
    """What else there is to know."""
    refused: Problem | None = None
    """Why it would not come to it."""

    @property
    def is_held(self) -> bool:
        """Whether it only needs somebody's agreement."""
        return self.refused is not None and self.refused.reason == reasons.PRUNE_BLOCKED

    @property
    def verdict(self) -> str:
        """Why it would not come to it, in a sentence; empty when it would."""
        if self.refused is None:
            return ""
        return f"{'is held back' if self.is_held else 'would be refused'}: {self.refused.message}"

    @property
    def message(self) -> str:
        """All of it, in a sentence."""
        shown = described(self.differences, longest=2000) if self.differences else ""
        return "; ".join(part for part in (self.verdict, shown, self.note) if part)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Everything that an execution would do, in its order."""

    changes: tuple[Change, ...] = ()
    unchanged: int = 0
    left: tuple[Ref, ...] = ()
    """Objects that would be let go of, and live on."""
    awaited: tuple[Ref, ...] = ()
    """Objects that somebody else has to make."""

    @property
    def refused(self) -> tuple[Change, ...]:
        """What would not come to it."""
        return tuple(one for one in self.changes if one.refused is not None)

    @property
    def summary(self) -> str:
        """The plan in half a line."""
        counts = {
            words: sum(1 for one in self.changes if one.action == action and not one.refused)
            for action, words in _WORDS.items()
        }
        parts = [f"{count} {words}" for words, count in counts.items() if count]
        held = sum(1 for one in self.changes if one.is_held)
        refused = len(self.refused) - held
        parts += [f"{refused} would be refused"] if refused else []
        parts += [f"{held} to delete if somebody agrees"] if held else []
        parts += [f"{len(self.left)} left behind ({listed(self.left)})"] if self.left else []
        parts += [f"{len(self.awaited)} waited for ({listed(self.awaited)})"] * bool(self.awaited)
        parts += [f"{self.unchanged} unchanged"] if self.unchanged or not parts else []
        return ", ".join(parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """The graph that a plan is for: as it is asked for, with what has become of it so far."""

    namespace: str
    reach: Reach
    """How far its objects may reach."""
    uid: str = ""
    """Empty while there is none."""
    inventory: tuple[InventoryEntry, ...] = ()
    deletion_policy: DeletionPolicy = "Delete"
    adopt: Adopt | None = None
    """Which objects that are not ours would join the graph."""
    settled: frozenset[str] = frozenset()
    """Nodes that were applied as they are asked for: their fields are ours to take back."""
    lives: Callable[[str], Awaitable[bool]]
    """Whether there is a graph of a UID."""
    heir: Callable[[Ref], str]
    """The UID of another graph that asks for an object; empty when none does."""
    emptied: bool = False
    """Whether it has no nodes, and may have none."""
    agreed: bool = False
    """Whether somebody has agreed to what it would delete."""
    way_out: str
    """How to agree."""

    def owns(self, ref: Ref, live: Object) -> bool:
        """Whether an object is the graph's already."""
        metadata = live["metadata"]
        if any(one.id == ref.id and one.uid == metadata.get("uid") for one in self.inventory):
            return True
        return bool(self.uid) and self.uid in {graph_of(live), released_by(live)}

    def joins(self, node: Node, ref: Ref, live: Object) -> bool:
        """Whether an object that is not ours would be adopted for a node."""
        if self.adopt is None:
            return False
        labels = live["metadata"].get("labels") or {}
        return adopts(self.adopt, node, ref, labels, namespace=self.namespace)

    def mirrors(self, node: Node, ref: Ref, live: Object | None) -> bool:
        """Whether an object would stay with others, and only be looked at."""
        if self.adopt is None or self.adopt.strategy != "Mirror":
            return False
        if self.adopt.mode == "LabelSelector":
            return live is not None and not self.owns(ref, live) and self.joins(node, ref, live)
        return adopts(self.adopt, node, ref, {}, namespace=self.namespace)
