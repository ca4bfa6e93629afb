"""What is remembered of a node between passes, and how it may change.

A record is made from a status and goes back into it; what it holds besides (retries, answers of
probes) may be lost with the process.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Literal

from pequod.api.graph import NodeDigests, NodeStatus
from pequod.api.reasons import Reason
from pequod.base.logs import one_line
from pequod.graph.readiness import Answer
from pequod.kube.client import FIELD_MANAGER

Phase = Literal["Pending", "Applied", "Ready", "Error", "Adopted"]

LEGAL: dict[Phase, frozenset[Phase]] = {
    "Pending": frozenset({"Applied", "Error", "Adopted"}),
    "Applied": frozenset({"Ready", "Error", "Pending", "Adopted"}),
    "Ready": frozenset({"Applied", "Error", "Pending", "Adopted"}),
    "Error": frozenset({"Pending", "Applied", "Adopted"}),
    "Adopted": frozenset({"Pending", "Error", "Applied"}),
}
"""Where a node may go from where it is: ready is only what was applied.

Adopted is what is only mirrored; a graph may change its mind about that in both directions.
"""

LONGEST_TEXT = 512
RETAKES = 3
"""How often fields of ours are taken back within the window before we call it a fight."""
RECREATIONS = 10
"""How often an object is made again, or labelled again, within the window."""
RETAKE_WINDOW = 600.0


class IllegalTransitionError(AssertionError):
    """A bug: a node went where it cannot go."""


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a node is in error, for conditions and for the next try."""

    reason: Reason
    message: str
    transient: bool = False
    """Whether it may be gone the next time without anybody doing anything."""
    applying: bool = True
    """Whether it was the apply that failed, rather than the object afterwards."""


Versions = Mapping[str, str | None]
"""The resource versions of objects that values are taken from, by the ids of their nodes.

Empty where there is no object, None where that is not known.
"""


@dataclass(frozen=True, slots=True)
class Filled:
    """What values of other nodes have made of what a node asks for."""

    of: str
    """Digest of what they were filled into."""
    known: Versions
    """The objects as they were known when they were read."""
    read: Versions = field(default_factory=dict)
    """The same as they turned out to be: what is heard may lag behind."""
    digest: str = ""
    """Of what the node asks for; empty when that is not known."""
    values: Mapping[str, Any] | None = None
    """By the texts of their expressions; None when there are none, or none that were kept."""
    bulky: bool = False
    """Whether the values take too much room to be kept: they are read again when needed."""
    lacks: str = ""
    """Which value is not there yet, for a person."""
    problem: Problem | None = None
    """What is wrong with an expression, or with what it yields."""

    def covers(self, of: str, now: Versions) -> bool:
        """Whether the objects are those that were read; what is not known has not changed."""
        return of == self.of and all(
            version is None or version in {self.known.get(id_), self.read.get(id_)}
            for id_, version in now.items()
        )


@dataclass(slots=True)
class Record:
    """One node, as far as it has come."""

    ref_id: str = ""
    """The object that the digests are about."""
    phase: Phase = "Pending"
    desired: str = ""
    """Digest of what was last applied."""
    owned: str = ""
    """Digest of our fields in the answer to that."""
    problem: Problem | None = None
    details: str = ""
    since: datetime = field(default_factory=lambda: datetime.now(UTC).replace(microsecond=0))
    """When the phase last changed, for people."""
    ready_since: datetime | None = None
    """Since when it was ready before it lapsed within this pass, as nobody has heard yet."""
    waits_since: float = 0.0
    """When it began to wait for its readiness, by the loop's clock."""
    previous_managers: tuple[str, ...] = ()
    """Who managed the object before it joined the graph, or manages it still if it is mirrored."""
    current: bool = False
    """Whether an object that is only mirrored is ready."""
    failures: int = 0
    failed_digest: str = ""
    """What was asked for when it last failed."""
    retry_at: float = 0.0
    retakes: list[float] = field(default_factory=list)
    answers: dict[str, Answer] = field(default_factory=dict)
    explanation: str | None = None
    """What its pods say about why it is not ready; None until they were asked."""
    filled: Filled | None = None
    """What values of other nodes have come to; None when there are none, or until they are read."""

    def moves(self, to: Phase, now: datetime) -> None:
        """Be in a phase; only legal ways lead there."""
        if to == self.phase:
            return
        if to not in LEGAL[self.phase]:
            raise IllegalTransitionError(f"a node does not go from {self.phase} to {to}")
        lapsed = self.since if self.phase == "Ready" else self.ready_since
        self.phase = to
        self.since = now.replace(microsecond=0)
        if to == "Ready" and lapsed is not None:
            self.since = lapsed
        self.ready_since = lapsed if to == "Applied" else None

    def forget_lapse(self) -> None:
        """What it was before it lapsed does not count any more: it is another object, or told."""
        self.ready_since = None

    def forget_bulk(self) -> None:
        """Keep no more of what was filled in than is worth its room between passes."""
        if self.filled is not None and self.filled.bulky:
            self.filled = replace(self.filled, values=None)

    def repairs(self, now: float) -> int:
        """How often what was applied has been undone lately."""
        self.retakes = [at for at in self.retakes if now - at < RETAKE_WINDOW]
        return len(self.retakes)

    def retakes_left(self, now: float) -> int:
        """How often our fields may still be taken back."""
        return RETAKES - self.repairs(now)

    def knows_managers(self, names: Iterable[str]) -> bool:
        """Remember who managed the object, ourselves only if nobody else; whether that is news."""
        found = [name[:128] for name in names]
        if self.previous_managers and set(found) == {FIELD_MANAGER}:
            return False
        known = tuple(dict.fromkeys((*self.previous_managers, *found)))
        news, self.previous_managers = known[:16] != self.previous_managers, known[:16]
        return news

    @property
    def is_settled(self) -> bool:
        """Whether nobody has to wait for it."""
        return self.phase == "Ready" or (self.phase == "Adopted" and self.current)

    @property
    def apply_failed(self) -> bool:
        """Whether the last try to apply it failed."""
        return self.problem is not None and self.problem.applying

    def status(self) -> NodeStatus:
        """As the status of a graph has it."""
        digests = None
        if self.desired or self.owned:
            digests = NodeDigests(desired=self.desired or None, owned=self.owned or None)
        return NodeStatus(
            phase=self.phase,
            last_error=one_line(self.problem.message, LONGEST_TEXT) if self.problem else None,
            ready_details=one_line(self.details, LONGEST_TEXT) or None,
            digests=digests,
            previous_managers=self.previous_managers[:16],
            last_transition_time=self.since,
        )


def restored(status: NodeStatus, *, ref_id: str, clock: float, now: datetime) -> Record:
    """The record of a node from the status of its graph.

    An error is not restored as such: whether it still stands is found out anew.
    """
    digests = status.digests or NodeDigests()
    since = status.last_transition_time or now
    # How long what is mirrored has not been ready, its phase does not say.
    waited = 0.0 if status.phase == "Adopted" else max((now - since).total_seconds(), 0.0)
    return Record(
        ref_id=ref_id,
        phase=status.phase,
        desired=digests.desired or "",
        owned=digests.owned or "",
        details=status.ready_details or "",
        since=since,
        waits_since=clock - waited,
        previous_managers=status.previous_managers,
    )
