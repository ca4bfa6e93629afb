"""From a node and what is observed to what to do next. Pure: the heart of the engine.

Rules 2 to 5 of `docs/architecture.md` are here: nothing is taken over by accident, one write for a
change and none without, drift and conflict, every node as soon as its own dependencies are ready.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum, auto
from typing import Literal

from pequod.api import reasons
from pequod.api.graph import ApplyPolicy, ReadyWhen
from pequod.base.backoff import Backoff
from pequod.graph.child import Child
from pequod.graph.model import Ref
from pequod.graph.readiness import deadline, judged, to_be_asked
from pequod.graph.record import RECREATIONS, RETAKE_WINDOW, RETAKES, Problem, Record

RETRY = Backoff(first=0.5, limit=300.0)


@dataclass(frozen=True, slots=True)
class Moment:
    """Now, by the clock that measures and by the one for people."""

    clock: float
    wall: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """A node, and everything that is known about it."""

    record: Record
    policy: ApplyPolicy
    predicates: Sequence[ReadyWhen] = ()
    uid: str
    """Of the object, by the inventory; empty until it was applied."""
    digest: str
    """Of what the node asks for now."""
    child: Child | None
    """The live object; None when there is none that carries our label."""
    blocked_by: tuple[str, ...] = ()
    """Dependencies that are not ready."""
    mirror: str | None = None
    """How an object differs that is only mirrored; None when it is not."""
    unread: bool = False
    """Whether values of other nodes are to be filled in that were not read as they are now."""


class Act(Enum):
    """What to do about a node."""

    REST = auto()
    """Nothing, until something is heard or the time comes."""
    APPLY = auto()
    FILL = auto()
    """Read the values that it takes from other nodes."""
    ASK = auto()
    """Evaluate the predicates that need I/O."""
    EXPLAIN = auto()
    """Find out what its pods say about why it is not ready."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What to do about a node, and when to look again at the latest."""

    act: Act
    force: bool = False
    """Take fields back that others have taken from us."""
    wake: float | None = None
    """By the loop's clock."""


REST = Decision(Act.REST)


def decide(seen: Situation, now: Moment) -> Decision:
    """What to do about a node now; moves its record to where it stands."""
    record = seen.record
    if _is_patient(seen, now):
        return Decision(Act.REST, wake=record.retry_at)
    if seen.mirror is not None:
        return _mirrored(seen, seen.mirror, now)
    if seen.policy.mode == "Observe":
        return _looked_at(seen, now)
    if seen.policy.mode == "Create" and _is_made(seen):
        return _kept(seen, now)
    return _unfilled(seen, now) or _wanted(seen, now)


def _wanted(seen: Situation, now: Moment) -> Decision:
    """What a node asks for is known: see to it that it is so."""
    record = seen.record
    if _is_made(seen):
        return _kept(seen, now)
    if seen.blocked_by:
        return _blocked(seen, now)
    if seen.child is not None and seen.child.deleting:
        record.moves("Pending", now.wall)
        record.problem = None
        record.details = "waits until the object that somebody deletes is gone"
        return REST
    return Decision(Act.APPLY, force=seen.policy.conflict_policy == "Force")


def _is_patient(seen: Situation, now: Moment) -> bool:
    """Whether what failed is not to be tried again yet; an object that has become ours is."""
    record = seen.record
    handed_over = (
        record.problem is not None
        and record.problem.reason == reasons.ALREADY_EXISTS
        and not seen.uid
        and seen.child is not None
        and not seen.child.deleting
    )
    return (
        record.apply_failed
        and record.failed_digest == seen.digest
        and now.clock < record.retry_at
        and not handed_over
    )


def wants_write(seen: Situation, now: Moment) -> bool:
    """Whether a node may come to be written in a pass: at once, or after its dependencies."""
    if seen.policy.mode == "Observe":
        return False
    return not _is_made(seen) or decide(seen, now).act is Act.APPLY


def _is_made(seen: Situation) -> bool:
    """Whether what the node asks for was applied; what is made once stays as it is."""
    if seen.policy.mode == "Observe":
        return seen.record.phase in {"Applied", "Ready"}
    if not seen.uid:
        return False
    if seen.policy.mode == "Create":
        # A node that has got another id has no record of what it has made.
        return bool(seen.record.desired) or _is_alive(seen)
    return bool(seen.record.desired) and seen.record.desired == seen.digest


def _is_alive(seen: Situation) -> bool:
    """Whether the object that the inventory means is there."""
    return seen.child is not None and seen.child.metadata.uid == seen.uid


def _looked_at(seen: Situation, now: Moment) -> Decision:
    """An object that others provide: it is there and ready, or it is waited for."""
    if seen.child is not None:
        return _healthy(seen, seen.child, now)
    seen.record.moves("Pending", now.wall)
    seen.record.problem = None
    seen.record.details = "waits for somebody to create it"
    return REST


def _mirrored(seen: Situation, differs: str, now: Moment) -> Decision:
    """An object that stays with others: how it differs is told, and whether it is ready."""
    record, child = seen.record, seen.child
    record.desired = record.owned = ""
    if child is None:
        record.current = False
        return _looked_at(seen, now)
    if to_be_asked(seen.predicates, child, record.answers):
        return Decision(Act.ASK)
    if record.current or record.phase != "Adopted":
        record.waits_since = now.clock
    record.moves("Adopted", now.wall)
    waited = now.clock - record.waits_since
    verdict = judged(seen.predicates, child, record.answers, waited=waited)
    record.current, record.problem, record.details = verdict.ready, None, differs
    if verdict.ready:
        return REST
    record.details = f"{verdict.detail}; {differs}"
    if verdict.failed:
        said = _said(record, verdict.detail)
        record.problem = Problem(reasons.NOT_HEALTHY, said, applying=False)
        return REST
    return Decision(Act.REST, wake=record.waits_since + deadline(seen.predicates, waited))


def _unfilled(seen: Situation, now: Moment) -> Decision | None:
    """What to do about a node that lacks values of others; None when it has them, or needs none.

    What was never applied waits for its turn before values are read. A value that is not there
    yet, or cannot be used, changes only with what it is taken from.
    """
    record, filled = seen.record, seen.record.filled
    if seen.unread:
        waits = seen.blocked_by and not (seen.uid and record.desired)
        return _blocked(seen, now) if waits else Decision(Act.FILL)
    if filled is None or filled.digest:
        return None
    if filled.problem is not None:
        _fails(record, filled.problem, now)
    else:
        record.moves("Pending", now.wall)
        record.problem, record.details = None, filled.lacks
    return REST


def _blocked(seen: Situation, now: Moment) -> Decision:
    record = seen.record
    record.moves("Pending", now.wall)
    record.problem = None
    record.details = f"waits for {_listed(seen.blocked_by)}"
    return REST


def _listed(names: Sequence[str], most: int = 5) -> str:
    shown = ", ".join(names[:most])
    return f"{shown} and {len(names) - most} more" if len(names) > most else shown


def _kept(seen: Situation, now: Moment) -> Decision:
    """An object that was made: see to it that it stays so, and look at its health."""
    child, record = seen.child, seen.record
    if seen.policy.mode == "Create":
        if child is None or child.deleting:
            return _vanished(record, now)
        record.desired, record.owned = record.desired or seen.digest, record.owned or child.owned
        return _healthy(seen, child, now)
    if _is_a_fight(seen, now):
        return _given_up(record, now)
    return _repaired(seen, now)


def _repaired(seen: Situation, now: Moment) -> Decision:
    """What was undone is done again; what was not is looked at."""
    child, record = seen.child, seen.record
    if child is None or child.metadata.uid != seen.uid:
        if seen.blocked_by:
            return _blocked(seen, now)
        _unready(record, "it is gone, or lost its label; it is applied again", now)
        return Decision(Act.APPLY, force=_may_retake(seen, now))
    if child.deleting:
        _unready(record, "somebody deletes it; it is made anew when it is gone", now)
        return REST
    if child.owned != record.owned:
        return Decision(Act.APPLY, force=_may_retake(seen, now))
    return _healthy(seen, child, now)


def _is_a_fight(seen: Situation, now: Moment) -> bool:
    """Whether what we do is undone again and again, in a way that names nobody."""
    child, record = seen.child, seen.record
    absent = child is None or child.metadata.uid != seen.uid
    if not absent and child is not None and (child.deleting or child.owned == record.owned):
        return False
    # Once more than fields are taken back: that one asks who does it.
    limit = RECREATIONS if absent else RETAKES + 1
    return record.repairs(now.clock) >= limit


def _given_up(record: Record, now: Moment) -> Decision:
    place = f"{Ref.of(record.ref_id)}: " if record.ref_id else ""
    message = f"{place}somebody keeps undoing what is applied; find out who, and stop one of us"
    _fails(record, Problem(reasons.OWNERSHIP_CONFLICT, message), now)
    return Decision(Act.REST, wake=record.retakes[0] + RETAKE_WINDOW)


def _may_retake(seen: Situation, now: Moment) -> bool:
    """Whether fields that were ours are taken back; not when somebody keeps taking them.

    By force it is not found out who that is.
    """
    return seen.record.retakes_left(now.clock) > 0


def _vanished(record: Record, now: Moment) -> Decision:
    """What is made once is not made twice: a Job that ran must not run again."""
    if record.phase == "Ready":
        record.problem = None
        record.details = "was made once; it is gone by now, or has lost its label"
        return REST
    message = "is gone before it was ready, and is made only once; give the node another id"
    _fails(record, Problem(reasons.NOT_FOUND, message, applying=False), now)
    return REST


def _healthy(seen: Situation, child: Child, now: Moment) -> Decision:
    record = seen.record
    if to_be_asked(seen.predicates, child, record.answers):
        return Decision(Act.ASK)
    if record.phase in {"Ready", "Pending"}:
        # Whatever it lacks, it lacks it since now, not since we last looked.
        record.waits_since = now.clock
    waited = now.clock - record.waits_since
    verdict = judged(seen.predicates, child, record.answers, waited=waited)
    if verdict.ready:
        record.problem, record.details, record.failures = None, "", 0
        record.explanation = None
        if record.phase not in {"Applied", "Ready"}:
            record.moves("Applied", now.wall)
        record.moves("Ready", now.wall)
        return REST
    if verdict.failed:
        _fails(
            record, Problem(reasons.NOT_HEALTHY, _said(record, verdict.detail), applying=False), now
        )
        return Decision(Act.EXPLAIN if record.explanation is None else Act.REST)
    _unready(record, verdict.detail, now)
    return Decision(Act.REST, wake=record.waits_since + deadline(seen.predicates, waited))


def _said(record: Record, detail: str) -> str:
    """What is wrong with an object, with what its pods say about it."""
    place = f"{Ref.of(record.ref_id)}: " if record.ref_id else ""
    return f"{place}{detail}" + (f"; {record.explanation}" if record.explanation else "")


def _unready(record: Record, detail: str, now: Moment) -> None:
    if record.phase in {"Ready", "Pending"}:
        record.waits_since = now.clock
    record.moves("Applied", now.wall)
    record.problem, record.details = None, detail


def _fails(record: Record, problem: Problem, now: Moment) -> None:
    record.moves("Error", now.wall)
    record.problem, record.details = problem, ""


def applied(
    record: Record, digest: str, child: Child, now: Moment, *, before: Child | None, uid: str
) -> None:
    """The API server has taken what a node asks for; `before` is what we took the object for.

    `uid` is that of the object that we knew. It counts as a repair when it changed something:
    others may fill what we only hold as empty.
    """
    if record.desired == digest and (before is None or before.owned != child.owned):
        record.retakes.append(now.clock)
    if record.desired != digest or child.metadata.uid != uid:
        record.forget_lapse()
    if record.desired != digest or record.phase != "Ready":
        record.waits_since = now.clock
        record.moves("Applied", now.wall)
        record.since = now.wall.replace(microsecond=0)
    record.desired, record.owned = digest, child.owned
    record.problem, record.details, record.explanation = None, "", None
    record.failures, record.retry_at, record.failed_digest = 0, 0.0, ""


def refused(record: Record, digest: str, problem: Problem, now: Moment) -> None:
    """An apply has failed: try again later, and later each time."""
    if record.failed_digest != digest:
        record.failures, record.failed_digest = 0, digest
    record.failures += 1
    delay = RETRY.delay(record.failures)
    if problem.reason == reasons.OWNERSHIP_CONFLICT and record.retakes:
        delay = max(record.retakes[0] + RETAKE_WINDOW - now.clock, delay)
    record.retry_at = now.clock + delay
    if problem.transient and record.phase in {"Applied", "Ready", "Adopted"}:
        # An API server in trouble says nothing about the object.
        record.problem = problem
        return
    _fails(record, problem, now)


def awaits_end(record: Record, now: Moment) -> None:
    """The object is being deleted: it is made anew when it is gone, which is heard of."""
    record.moves("Pending", now.wall)
    record.problem, record.details = None, "waits until the object that is being deleted is gone"
    record.failures, record.retry_at = 0, 0.0


def unusable(record: Record, problem: Problem, now: datetime, *, once: bool) -> None:
    """A node cannot be executed as things are: its kind, its Secret or its cluster is missing.

    What is made once and was ready stays so: nobody would find out again that it was.
    """
    if once and record.phase == "Ready":
        return
    record.problem = problem
    if not problem.transient:
        record.moves("Error", now)
        record.details = ""


Stage = Literal["waiting", "failed", "unhealthy", "applied", "ready"]


def stage(seen: Situation) -> Stage:
    """How far a node has come, in one word."""
    problem = seen.record.problem
    if problem is not None:
        return "failed" if problem.applying else "unhealthy"
    if seen.mirror is not None:
        reached: Stage = "ready" if seen.record.current else "applied"
        return reached if seen.record.phase == "Adopted" else "waiting"
    if not _is_made(seen):
        return "waiting"
    return "ready" if seen.record.phase == "Ready" else "applied"
