"""What a graph says of itself: in its status, its conditions, its events."""

import asyncio
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Literal

import msgspec

from pequod.api import reasons
from pequod.api.platform import ResourceGraph, ResourceGraphStatus
from pequod.controllers.platform.views import POLL
from pequod.graph.executor import Outcome
from pequod.graph.model import MAX_STATUS_BYTES, Plan, Ref
from pequod.graph.prune import listed
from pequod.graph.record import Problem
from pequod.graph.removal import Removed
from pequod.graph.run import Run
from pequod.runtime.context import Context
from pequod.runtime.verdicts import Verdict, Waiting

_MANY = 200
"""Nodes from which on the size of a status is worth a look."""
_SHORT = 80
LATE = 10.0
"""Seconds after which what was done is told, whatever became of it."""


class NotAppliedError(Exception):
    """Objects that could not be applied, for reasons that may be gone the next time."""

    def __init__(self, reason: reasons.Reason, message: str, retry_after: float) -> None:
        super().__init__(message)
        self.reason = reason
        self.retry_after = retry_after


class Later:
    """How steps ended that do not keep the next step from being taken."""

    def __init__(self) -> None:
        self._ends: list[Verdict | NotAppliedError] = []

    @contextmanager
    def collect(self) -> Iterator[None]:
        """Take a step; how it ended counts when all were taken."""
        try:
            yield
        except (Verdict, NotAppliedError) as end:
            self._ends.append(end)

    def add(self, end: Verdict) -> None:
        """A step was not taken, for a reason that was known before."""
        self._ends.append(end)

    @property
    def clean(self) -> bool:
        """Whether every step so far has succeeded."""
        return not self._ends

    def raise_worst(self, wake: float | None) -> None:
        """End as the first step that waits for somebody; trouble that may pass comes last."""
        if not self._ends:
            return
        worst = min(self._ends, key=lambda end: isinstance(end, NotAppliedError))
        if isinstance(worst, Waiting):
            afters = [end.after for end in self._ends if isinstance(end, Waiting)]
            afters += [end.retry_after for end in self._ends if isinstance(end, NotAppliedError)]
            worst.after = min((after for after in (*afters, until(wake)) if after), default=None)
        raise worst


def require_applied(outcome: Outcome, plan: Plan) -> None:
    """Say what was not applied, and why; returns when everything was."""
    if outcome.complete:
        return
    after = until(outcome.wake)
    if not outcome.failed:
        raise Waiting(reasons.WAITING_FOR_NODES, _waiting(outcome, plan), after=until(outcome.wake))
    problem = _worst(outcome.failed.values())
    message = _described(outcome.failed, plan)
    if all(one.transient for one in outcome.failed.values()):
        raise NotAppliedError(problem.reason, message, after or 1.0)
    reason = problem.reason if len(outcome.failed) == 1 else _common(outcome.failed.values())
    raise Waiting(reason, message, after=after)


def applied(plan: Plan) -> str:
    """What `Applied` says when everything was."""
    return f"{_objects(len(plan.order))} applied" if plan.order else "the graph is empty"


def healthy(outcome: Outcome, plan: Plan) -> str:
    """What `Healthy` says; raises a verdict while something is not ready."""
    if outcome.unhealthy:
        raise Waiting(
            _common(outcome.unhealthy.values()),
            _described(outcome.unhealthy, plan),
            after=until(outcome.wake),
        )
    if text := _missing(outcome, plan):
        raise Waiting(reasons.WAITING_FOR_NODES, text, after=until(outcome.wake))
    ready = f"{_objects(len(plan.order))} ready"
    if outcome.unwatched:
        kinds = ", ".join(outcome.unwatched)
        return f"{ready}; {kinds} cannot be watched by the operator: asked for every {POLL:.0f} s"
    return ready


def phase(verdict: Waiting) -> Literal["Pending", "Executing", "Failed"]:
    """Whether a graph that waits is on its way, or waits for somebody to act."""
    if verdict.reason == reasons.DRY_RUN:
        return "Pending"
    on_its_way = {reasons.WAITING_FOR_NODES, reasons.PRUNING, reasons.CLUSTER_NOT_READY}
    return "Executing" if verdict.reason in on_its_way else "Failed"


def until(wake: float | None) -> float | None:
    """Seconds until a moment of the loop's clock."""
    if wake is None:
        return None
    return max(wake - asyncio.get_running_loop().time(), 0.05)


def _objects(count: int) -> str:
    return "1 object" if count == 1 else f"{count} objects"


def _described(problems: dict[str, Problem], plan: Plan) -> str:
    shown = "; ".join(problem.message for problem in [*problems.values()][:5])
    more = len(problems) - 5
    of = f"{len(problems)} of {len(plan.order)}: " if len(problems) > 1 else ""
    return f"{of}{shown}" + (f"; and {more} more" if more > 0 else "")


def _worst(problems: Iterable[Problem]) -> Problem:
    """The problem that somebody has to act upon, if there is one."""
    return min(problems, key=lambda problem: problem.transient)


def _common(problems: Iterable[Problem]) -> reasons.Reason:
    found = {problem.reason for problem in problems}
    return found.pop() if len(found) == 1 else reasons.NODES_FAILED


def _missing(outcome: Outcome, plan: Plan) -> str:
    """What is not ready for no fault of its own; what could not be repaired may still be."""
    if outcome.unready:
        return _unready(outcome, plan)
    if outcome.waiting:
        return _waiting(outcome, plan)
    failed = [id_ for id_, problem in outcome.failed.items() if not problem.transient]
    return _counted(failed, len(plan.order), "not applied") if failed else ""


def _unready(outcome: Outcome, plan: Plan) -> str:
    waiting = [f"{id_} ({detail})" if detail else id_ for id_, detail in outcome.unready.items()]
    return _counted(waiting, len(plan.order), "not ready yet")


def _waiting(outcome: Outcome, plan: Plan) -> str:
    blockers = [f"{id_} ({one.message})" for id_, one in outcome.unhealthy.items()]
    blockers += [f"{id_} ({detail})" if detail else id_ for id_, detail in outcome.unready.items()]
    text = _counted(outcome.waiting, len(plan.order), "not applied yet")
    text += "".join(f"; {id_} {lacks}" for id_, lacks in [*outcome.lacking.items()][:3])
    return f"{text}; not ready: {', '.join(blockers[:3])}" if blockers else text


def _counted(names: list[str], total: int, what: str) -> str:
    more = len(names) - 5
    shown = ", ".join(names[:5]) + (f" and {more} more" if more > 0 else "")
    return f"{len(names)} of {total} {what}: {shown}"


def fill(graph: ResourceGraph, run: Run) -> None:
    """Put what is remembered of a graph into its status; it stays within its size."""
    status = graph.status
    status.node_status = {id_: record.status() for id_, record in run.records.items()}
    status.inventory = run.inventory.entries()
    run.known.append(status.inventory)
    if len(run.records) > _MANY and len(msgspec.json.encode(status)) > MAX_STATUS_BYTES:
        _cut(status)


def _cut(status: ResourceGraphStatus) -> None:
    for node in status.node_status.values():
        node.last_error = node.last_error[:_SHORT] if node.last_error else None
        node.ready_details = node.ready_details[:_SHORT] if node.ready_details else None


def note_applied(run: Run, refs: Iterable[Ref]) -> None:
    """Objects were applied; that is told soon."""
    run.untold.add(reasons.APPLIED, refs, _clock())


def note_adopted(run: Run, refs: Iterable[Ref]) -> None:
    """Objects that existed before have joined the graph."""
    run.untold.add(reasons.ADOPTED, refs, _clock())


def note_mirrored(run: Run, refs: Iterable[Ref]) -> None:
    """Objects of others were found that are mirrored from now on."""
    run.untold.add(reasons.MIRRORED, refs, _clock())


def note_removed(run: Run, removed: Removed) -> None:
    """Objects were taken away, in one of the ways to go."""
    run.untold.add(reasons.PRUNED, removed.deleted, _clock())
    run.untold.add(reasons.ORPHANED, removed.orphaned, _clock())
    run.untold.add(reasons.HANDED_OVER, removed.handed_over, _clock())


def tell(run: Run, ctx: Context, *, ready: str = "", source: str = "") -> None:
    """Tell what was done since the last time, and that the graph has become ready, if it has.

    Its source (a UID) is about to tell the same of itself: then that is said once.
    """
    done = run.untold.taken()
    if ready:
        applied_now = done.pop(reasons.APPLIED, [])
        names = f"applied: {listed(applied_now, 20)}" if applied_now else ""
        ctx.tell(reasons.READY, ready, details=names, along_with=source)
    for reason, refs in done.items():
        ctx.tell(reasons.REASONS[reason], f"{_VERBS[reason]}: {listed(refs, 20)}")


def tell_late(run: Run, ctx: Context) -> None:
    """Tell what was done a while ago: the end that it was to be told with is not in sight."""
    if run.untold.refs and _clock() - run.untold.since >= LATE:
        tell(run, ctx)


_VERBS: dict[str, str] = {
    reasons.ADOPTED: "adopted",
    reasons.MIRRORED: "mirrored",
    reasons.APPLIED: "applied",
    reasons.PRUNED: "deleted",
    reasons.ORPHANED: "left behind",
    reasons.HANDED_OVER: "handed over to another graph",
}


def _clock() -> float:
    return asyncio.get_running_loop().time()


def now() -> datetime:
    """The time for people."""
    return datetime.now(UTC)
