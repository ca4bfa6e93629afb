"""Carries a graph out: every node as soon as its own dependencies are ready, many at a time.

A pass does what can be done now and returns; it never waits for an object to become ready. One
node's failure is its own and its dependents'. Only when the API server does not answer, or no
longer lets us, does the pass end early: more of the same would not help.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

import structlog
from prometheus_client import Counter, Histogram

from pequod.api import reasons
from pequod.base.tasks import end
from pequod.evaluator.errors import EvaluationError
from pequod.graph import advance
from pequod.graph.advance import Act, Decision, Moment, Situation
from pequod.graph.applying import Applier, DeletingError, RefusedError, Wish
from pequod.graph.filling import Source, filled
from pequod.graph.members import Member, View, dependents, takers
from pequod.graph.model import Plan
from pequod.graph.ownership import leaves_replicas
from pequod.graph.probes import Probes
from pequod.graph.problems import explained
from pequod.graph.record import Problem, Record
from pequod.graph.run import Run
from pequod.kube.errors import FencedError

AT_ONCE = 16
"""Nodes of one graph that are worked on at the same time: no graph takes all connections."""
AGAIN = 1.0
"""Seconds after which an object is written again that was changed while we wrote it."""
_GIVE_UP = frozenset(
    {
        reasons.UNREACHABLE,
        reasons.TIMED_OUT,
        reasons.UNTRUSTED_SERVER,
        reasons.UNAUTHORIZED,
        reasons.OVERLOADED,
    }
)

_nodes = Counter("pequod_dag_nodes_total", "Nodes that were looked at, by their stage.", ("stage",))
_seconds = Histogram(
    "pequod_dag_execution_duration_seconds",
    "How long passes over graphs took that did something.",
    buckets=(0.005, 0.025, 0.1, 0.5, 1, 5, 30, 300),
)
_log = structlog.get_logger()


@dataclass(slots=True)
class Outcome:
    """What a pass over a graph has done, and what is left."""

    applied: list[str] = field(default_factory=list)
    """Nodes whose objects were written."""
    adopted: list[str] = field(default_factory=list)
    """Those of them whose objects existed before, and have joined the graph."""
    ready: list[str] = field(default_factory=list)
    unready: dict[str, str] = field(default_factory=dict)
    failed: dict[str, Problem] = field(default_factory=dict)
    """Nodes that could not be applied."""
    unhealthy: dict[str, Problem] = field(default_factory=dict)
    waiting: list[str] = field(default_factory=list)
    """Nodes that were not applied yet."""
    lacking: dict[str, str] = field(default_factory=dict)
    """Those of them that wait for something else than another node, and for what."""
    wake: float | None = None
    """When to look again at the latest, by the loop's clock."""
    unwatched: tuple[str, ...] = ()
    """Kinds that the operator may not watch: their objects are asked for."""

    @property
    def complete(self) -> bool:
        """Whether everything was applied."""
        return not self.failed and not self.waiting

    def wake_by(self, seconds: float) -> None:
        """Look again after so many seconds at the latest."""
        at = _now().clock + seconds
        self.wake = at if self.wake is None else min(self.wake, at)


class Execution:
    """One pass over one graph."""

    def __init__(
        self,
        run: Run,
        plan: Plan,
        members: Mapping[str, Member],
        *,
        applier: Applier,
        probes: Probes,
        view: View,
    ) -> None:
        self._run = run
        self._plan = plan
        self._members = members
        self._applier = applier
        self._probes = probes
        self._view = view
        self._tasks: dict[asyncio.Task[None], str] = {}
        self._line: dict[str, None] = dict.fromkeys(plan.order)
        self._wakes: list[float] = []
        self._given_up = False
        self._did: set[tuple[str, Act]] = set()
        self._may_write = False
        self._dependents = dependents(members)
        self._takers = takers(members)
        self._parked: set[str] = set()
        """Nodes that wait until what they take values from is not worked on any more."""
        self._ready = {id_ for id_, member in members.items() if self._stage(member) == "ready"}
        self._lacks = {
            id_: {other for other in member.after if other not in self._ready}
            for id_, member in members.items()
        }
        """What each node still waits for."""
        self.outcome = Outcome()

    def has_work(self) -> bool:
        """Whether something may be written in this pass; without having asked, nothing is."""
        now = _now()
        self._may_write = any(
            advance.wants_write(self._situation(member), now) for member in self._members.values()
        )
        return self._may_write

    async def run(self) -> Outcome:
        """Do everything that can be done now."""
        began = _now().clock
        try:
            while self._line or self._tasks:
                self._start()
                if self._tasks:
                    await self._one_ends()
        finally:
            await end(*self._tasks)
        if self.outcome.applied:
            _seconds.observe(_now().clock - began)
        return self._summed_up()

    def _start(self) -> None:
        """Look at the nodes in line, and begin what they need."""
        for id_ in tuple(self._line):
            if len(self._tasks) >= AT_ONCE:
                return
            del self._line[id_]
            member = self._members.get(id_)
            if member is not None:
                self._look_at(member)

    def _look_at(self, member: Member) -> None:
        id_ = member.node.id
        self._parked.discard(id_)
        seen = self._situation(member)
        decision = advance.decide(seen, _now())
        self._settle(member)
        if decision.wake is not None:
            self._wakes.append(decision.wake)
        if decision.act is Act.FILL and self._is_early(member):
            return
        if decision.act is Act.REST:
            self._tell_takers(id_)
            return
        if self._is_premature(id_, decision.act):
            self._wakes.append(_now().clock + AGAIN)
            self._tell_takers(id_)
            return
        self._did.add((id_, decision.act))
        task = asyncio.create_task(self._act(member, decision, seen.digest), name=f"node {id_}")
        self._tasks[task] = id_

    def _is_early(self, member: Member) -> bool:
        """Whether something that a node takes values from is about to be looked at, or changed.

        What somebody has done to it is put back, in another pass if need be, and not passed on.
        """
        undone = self._undone(member)
        for id_ in undone:
            if not self._is_premature(id_, Act.APPLY):
                self._line[id_] = None
        running = set(self._tasks.values())
        if any(
            id_ in running or id_ in self._line or id_ in self._parked for id_ in member.sources
        ):
            self._parked.add(member.node.id)
            return True
        if undone:
            self._wakes.append(_now().clock + AGAIN)
        return bool(undone)

    def _undone(self, member: Member) -> list[str]:
        """What a node takes values from, and somebody has changed since it was looked at."""
        sources = {id_: self._members.get(id_) for id_ in member.sources}
        return [
            id_
            for id_, source in sources.items()
            if source is not None
            and advance.decide(self._situation(source), _now()).act is Act.APPLY
        ]

    def _tell_takers(self, id_: str) -> None:
        """Nothing more is done about a node for now: look at those that take values from it."""
        running = set(self._tasks.values())
        changed = any((id_, act) in self._did for act in Act)
        for other in self._takers.get(id_, ()):
            if (changed or other in self._parked) and other not in running:
                self._line[other] = None

    def _is_premature(self, id_: str, act: Act) -> bool:
        """Whether something waits for another pass.

        Whoever undoes what was just done will not be convinced by more of it; what changes faster
        than it can be looked at is looked at later; and a pass that was not to write anything has
        not made sure that it may.
        """
        return (id_, act) in self._did or (act is Act.APPLY and not self._may_write)

    async def _one_ends(self) -> None:
        done, _ = await asyncio.wait(self._tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            id_ = self._tasks.pop(task)
            task.result()
            if not self._given_up:
                self._line[id_] = None
            self._settle(self._members[id_])

    def _settle(self, member: Member) -> None:
        """Note whether a node is ready now, and tell those who wait for that."""
        id_ = member.node.id
        ready = self._stage(member) == "ready"
        if ready is (id_ in self._ready):
            return
        (self._ready.add if ready else self._ready.discard)(id_)
        running = set(self._tasks.values())
        for other in self._dependents.get(id_, ()):
            (self._lacks[other].discard if ready else self._lacks[other].add)(id_)
            if ready and not self._given_up and other not in running:
                self._line[other] = None

    async def _act(self, member: Member, decision: Decision, digest: str) -> None:
        """Do one thing for one node; what goes wrong is the node's, and of what it asked for."""
        record = self._record(member)
        try:
            if decision.act is Act.APPLY:
                await self._apply(member, record, decision, digest)
            elif decision.act is Act.FILL:
                await self._fill(member, record)
            elif decision.act is Act.ASK:
                await self._ask(member, record)
            else:
                record.explanation = await self._probes.explanation(member)
        except RefusedError as error:
            if error.lost:
                self._run.inventory.forget_uid(record.ref_id)
            self._refused(record, error.problem, digest)
        except DeletingError:
            self._run.inventory.forget_uid(record.ref_id)
            self._await_end(member, record, digest)
        except FencedError:
            raise
        except Exception as error:  # noqa: BLE001 -- one node's failure is nobody else's
            _log.warning("node failed", node=member.node.id, error=type(error).__name__)
            problem = explained(error, member.ref, sensitive=member.sensitive)
            self._refused(record, problem, digest)

    def _await_end(self, member: Member, record: Record, digest: str) -> None:
        """Make an object anew when it is gone; of one that is not ours nobody tells us that."""
        if self._view.get(member) is not None:
            advance.awaits_end(record, _now())
            return
        text = f"{member.ref} is being deleted: it is made anew when it is gone"
        self._refused(record, Problem(reasons.CONFLICT, text, transient=True), digest)

    async def _apply(self, member: Member, record: Record, decision: Decision, digest: str) -> None:
        inventory, clock = self._run.inventory, _now().clock
        uid = inventory.uid(record.ref_id)
        child = self._view.get(member)
        ours = record.desired == digest
        if record.filled is not None and record.filled.values is None:
            await self._fill(member, record)
            if record.filled.digest != digest:
                return
        wanted = await member.body()
        wish = Wish(
            desired=wanted,
            graph=self._run.graph,
            policy=member.node.apply_policy,
            uid=uid,
            force=decision.force,
            ours=ours,
            may_retake=record.retakes_left(clock) > 0,
            protected=child is not None and child.protected,
            lets_replicas_go=not ours
            and child is not None
            and child.owns_replicas
            and leaves_replicas(wanted),
            sensitive=member.sensitive,
            adopts=member.adopts,
        )
        taken = await self._applier.apply(wish)
        inventory.learn(record.ref_id, taken.child.metadata.uid)
        self._view.put(member, taken.child)
        if taken.adopted:
            record.knows_managers(taken.previous_managers)
            self.outcome.adopted.append(member.node.id)
        elif taken.created:
            record.previous_managers = ()
        advance.applied(record, digest, taken.child, _now(), before=child, uid=uid)
        self.outcome.applied.append(member.node.id)

    async def _fill(self, member: Member, record: Record) -> None:
        record.filled = await filled(member, self._sources(member), self._probes)

    async def _ask(self, member: Member, record: Record) -> None:
        child = self._view.get(member)
        if child is None:
            return
        try:
            record.answers = await self._probes.answers(member, child)
        except EvaluationError as error:
            text = f"{member.ref}: its expression was not evaluated: {error}; it is tried again"
            raise RefusedError(Problem(error.reason, text, transient=True)) from error

    def _refused(self, record: Record, problem: Problem, digest: str) -> None:
        advance.refused(record, digest, problem, _now())
        self._wakes.append(record.retry_at)
        if problem.reason in _GIVE_UP:
            self._given_up = True
            self._line.clear()

    def _situation(self, member: Member) -> Situation:
        node = member.node
        record = self._record(member)
        unread, digest = False, member.asks_for(record)
        if member.template is not None:
            versions = {id_: one.version for id_, one in self._sources(member).items()}
            if unread := record.filled is None or not record.filled.covers(member.digest, versions):
                digest = f"{member.digest} of {versions}"
        return Situation(
            record=record,
            policy=node.apply_policy,
            predicates=node.ready_when,
            uid=self._run.inventory.uid(record.ref_id),
            digest=digest,
            child=self._view.get(member),
            mirror=self._mirror(member),
            unread=unread,
            blocked_by=tuple(id_ for id_ in member.after if id_ in self._lacks[node.id]),
        )

    def _sources(self, member: Member) -> dict[str, Source]:
        """What a node takes values from, as far as it is known."""
        found = {}
        for id_ in member.sources:
            source = self._members.get(id_)
            child = self._view.get(source) if source is not None else None
            found[id_] = Source(source, child)
        return found

    def _record(self, member: Member) -> Record:
        return self._run.record(member.node.id, member.ref.id)

    def _stage(self, member: Member) -> advance.Stage:
        return advance.stage(self._standing(member))

    def _standing(self, member: Member) -> Situation:
        """What a node's stage is judged by: whatever lives needs no look for that."""
        record = self._record(member)
        return Situation(
            record=record,
            policy=member.node.apply_policy,
            uid=self._run.inventory.uid(record.ref_id),
            digest=member.asks_for(record),
            child=None,
            mirror=self._mirror(member),
        )

    def _mirror(self, member: Member) -> str | None:
        """How an object differs that is only mirrored."""
        if not member.mirrored:
            return None
        known = self._run.compared.get(member.ref.id)
        return known.differs if known is not None else "how it differs is not known yet"

    def _summed_up(self) -> Outcome:
        outcome = self.outcome
        for id_ in self._plan.order:
            member = self._members.get(id_)
            if member is None:
                continue
            record = self._record(member)
            record.forget_lapse()
            record.forget_bulk()
            stage = self._stage(member)
            _nodes.labels(stage).inc()
            match stage:
                case "ready":
                    outcome.ready.append(id_)
                case "applied":
                    outcome.unready[id_] = record.details
                case "failed" if record.problem is not None:
                    outcome.failed[id_] = record.problem
                case "unhealthy" if record.problem is not None:
                    outcome.unhealthy[id_] = record.problem
                case _:
                    outcome.waiting.append(id_)
                    if record.details and not self._lacks[id_]:
                        outcome.lacking[id_] = record.details
        outcome.wake = min(self._wakes, default=None)
        return outcome


def _now() -> Moment:
    return Moment(asyncio.get_running_loop().time(), datetime.now(UTC))
