"""What is remembered of one graph between passes: its records, its inventory, its plan."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from pequod.api.graph import InventoryEntry, Node, NodeStatus
from pequod.graph.adopt import Adoption
from pequod.graph.child import Child
from pequod.graph.inventory import Inventory
from pequod.graph.model import Plan, Ref, checked
from pequod.graph.record import Record, restored

PACE = 0.25
"""Seconds between two statuses of a graph that moves, at least."""


@dataclass(frozen=True, slots=True)
class Polled:
    """What asking for an object has shown."""

    at: float
    child: Child | None


@dataclass(frozen=True, slots=True)
class Compared:
    """How an object differed when it was last compared with what its node asks for."""

    version: str
    """Of the object."""
    digest: str
    """Of what was asked for."""
    differs: str
    """In words, for a person."""


@dataclass(frozen=True, slots=True)
class Judged:
    """What is known of what a node asks for."""

    version: str
    """Of its sensitive part."""
    digest: str
    maker: str
    """The node that makes the account that it runs as."""


@dataclass(slots=True)
class Untold:
    """What was done and is told together: when it has come to an end, or takes long."""

    since: float = 0.0
    refs: dict[str, list[Ref]] = field(default_factory=dict)
    """By what was done to them."""

    def add(self, what: str, refs: Iterable[Ref], clock: float) -> None:
        """Note that something was done."""
        refs = [*refs]
        if refs:
            self.since = self.since or clock
            known = self.refs.setdefault(what, [])
            known += [ref for ref in refs if ref not in known]

    def taken(self) -> dict[str, list[Ref]]:
        """Everything, to be told now."""
        refs, self.refs, self.since = self.refs, {}, 0.0
        return refs


@dataclass(slots=True)
class Run:
    """The execution of one graph."""

    graph: str
    """UID of the graph."""
    namespace: str
    inventory: Inventory
    records: dict[str, Record]
    known: list[tuple[InventoryEntry, ...]] = field(default_factory=list)
    """Inventories that the stored status may hold unless somebody else wrote it."""
    confirmed: bool = False
    """Whether the graph was seen alive by a read or a write of ours, not only by a watch."""
    stored: bool = True
    """Whether the inventory that is stored holds everything that this one holds."""
    stale_since: dict[str, float] = field(default_factory=dict)
    """When an object was first found to be wanted by nobody, by the loop's clock."""
    look_at: dict[str, float] = field(default_factory=dict)
    """When to look whether an object that is on its way out is gone, by the loop's clock."""
    failed_removals: int = 0
    """How often in a row something could not be deleted."""
    going: set[str] = field(default_factory=set)
    """Objects that were seen on their way out."""
    ending: bool = False
    """Whether an answer has shown that the graph is being deleted: that cannot be taken back."""
    untold: Untold = field(default_factory=Untold)
    """What was done and not yet told."""
    polled: dict[str, Polled] = field(default_factory=dict)
    """Objects that cannot be watched, as they were when they were last asked for."""
    compared: dict[str, Compared] = field(default_factory=dict)
    """Objects that are only mirrored, or whose adoption is rehearsed."""
    adoption: Adoption | None = None
    """What is known of the objects that join the graph."""
    judged: dict[str, Judged] = field(default_factory=dict)
    """What was found out about each node of this generation."""
    before: int = 0
    """How many objects there were before the change that has left some over, or are by now."""
    leftover: bool = False
    """Whether objects are there that no node asks for any more."""
    braked: bool = False
    """Whether the stored status says that somebody has to agree to a prune.

    How many objects there were before that change is not known any more.
    """
    refused_since: float | None = None
    """Since when nothing may be deleted any more, by the loop's clock."""
    unknown_since: dict[str, float] = field(default_factory=dict)
    """Since when the kind of an object is not served any more, by the loop's clock."""
    unserved: dict[str, float] = field(default_factory=dict)
    """Since when a node waits for nothing but its kind to be served, by the loop's clock."""
    _plan: tuple[int, Plan] | None = None

    def plan(self, generation: int, nodes: tuple[Node, ...]) -> Plan:
        """The plan of a generation of the graph; made once, and kept without the objects."""
        if self._plan is None or self._plan[0] != generation:
            made = checked(nodes)
            self._plan = (generation, made.over(()))
            self.records = {id_: self.records.get(id_) or Record() for id_ in made.order}
            for record in self.records.values():
                # Whatever was filled in may be what was changed.
                record.filled = None
            self.try_again()
            self.judged.clear()
            there = sum(1 for entry in self.inventory if entry.uid)
            self.before = min(self.before, there) if self.leftover else there
            return made
        return self._plan[1].over(nodes)

    def try_again(self) -> None:
        """Let nothing that has failed wait any longer: somebody may have mended it."""
        for record in self.records.values():
            record.retry_at, record.failures = 0.0, 0

    def left_over(self, stale: Iterable[InventoryEntry]) -> None:
        """Know what no node asks for; what came back is not on its way out any more."""
        ids = {entry.id for entry in stale}
        self.leftover = bool(ids)
        self.braked &= self.leftover
        self.going &= ids
        for times in (self.stale_since, self.look_at, self.unknown_since):
            for id_ in times.keys() - ids:
                del times[id_]

    @property
    def generation(self) -> int:
        """The generation that the plan was made for."""
        return self._plan[0] if self._plan else -1

    @property
    def kib(self) -> float:
        """How large the graph is, about: spec and status."""
        return (self._plan[1].size if self._plan else 0) / 1024 + 0.35 * len(self.inventory)

    @property
    def pace(self) -> float:
        """Seconds between two statuses while it moves: large ones are worth their bytes less."""
        return max(PACE, 0.01 * self.kib)

    def record(self, node: str, ref_id: str) -> Record:
        """The record of a node; a new one when it has become another object."""
        record = self.records.get(node)
        if record is None or record.ref_id not in {"", ref_id}:
            record = self.records[node] = Record()
        record.ref_id = ref_id
        return record


def resumed(
    graph: str,
    namespace: str,
    inventory: Iterable[InventoryEntry],
    statuses: Mapping[str, NodeStatus],
    *,
    clock: float,
    now: datetime,
) -> Run:
    """A run that goes on where a status says that the last one ended."""
    entries = Inventory(inventory)
    refs = {entry.node: entry.id for entry in entries if entry.node is not None}
    records = {
        id_: restored(status, ref_id=refs.get(id_, ""), clock=clock, now=now)
        for id_, status in statuses.items()
    }
    return Run(graph=graph, namespace=namespace, inventory=entries, records=records)
