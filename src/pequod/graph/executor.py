"""Carries a graph out: every node as soon as its own dependencies are ready, many at a time.

A pass does what can be done now and returns; it never waits for an object to become ready. One
node's failure is its own and its dependents'. Only when the API server does not answer, or no
longer lets us, does the pass end early: more of the same would not help.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Protocol

import structlog
from prometheus_client import Counter, Histogram

from pequod.api import reasons
from pequod.api.graph import Node
from pequod.base.tasks import end
from pequod.evaluator.errors import EvaluationError
from pequod.graph import advance
from pequod.graph.advance import Act, Decision, Moment, Situation
from pequod.graph.applying import Applier, DeletingError, RefusedError, Wish
from pequod.graph.child import Child
from pequod.graph.desired import Desired
from pequod.graph.model import Plan, Ref
from pequod.graph.probes import Probes
from pequod.graph.problems import explained
from pequod.graph.record import Problem, Record
from pequod.graph.run import Run
from pequod.kube.errors import FencedError
from pequod.kube.kinds import Kind

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A node with everything that its apply needs."""

    node: Node
    kind: Kind
    ref: Ref
    digest: str
    """Of what it asks for."""
    body: Callable[[], Awaitable[Desired]]
    """What is sent for it; made when it is sent, since its sensitive part is read for that."""
    sensitive: bool = False
    also_after: tuple[str, ...] = ()
    """Nodes that it has to wait for besides those that it names."""

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


@dataclass(slots=True)
class Outcome:
    """What a pass over a graph has done, and what is left."""

    applied: list[str] = field(default_factory=list)
    """Nodes whose objects were written."""
    ready: list[str] = field(default_factory=list)
    unready: dict[str, str] = field(default_factory=dict)
    failed: dict[str, Problem] = field(default_factory=dict)
    """Nodes that could not be applied."""
    unhealthy: dict[str, Problem] = field(default_factory=dict)
    waiting: list[str] = field(default_factory=list)
    """Nodes that were not applied yet."""
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
        self._dependents = _dependents(members)
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
        decision = advance.decide(self._situation(member), _now())
        self._settle(member)
        if decision.wake is not None:
            self._wakes.append(decision.wake)
        if decision.act is Act.REST:
            return
        if self._is_premature(id_, decision.act):
            self._wakes.append(_now().clock + AGAIN)
            return
        self._did.add((id_, decision.act))
        task = asyncio.create_task(self._act(member, decision), name=f"node {id_}")
        self._tasks[task] = id_

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

    async def _act(self, member: Member, decision: Decision) -> None:
        """Do one thing for one node; what goes wrong is the node's."""
        record = self._record(member)
        try:
            if decision.act is Act.APPLY:
                await self._apply(member, record, decision)
            elif decision.act is Act.ASK:
                await self._ask(member, record)
            else:
                record.explanation = await self._probes.explanation(member)
        except RefusedError as error:
            if error.lost:
                self._run.inventory.forget_uid(record.ref_id)
            self._refused(member, record, error.problem)
        except DeletingError:
            record.details = "waits until the object that is being deleted is gone"
            self._run.inventory.forget_uid(record.ref_id)
            self._refused(member, record, Problem(reasons.CONFLICT, record.details, transient=True))
        except FencedError:
            raise
        except Exception as error:  # noqa: BLE001 -- one node's failure is nobody else's
            _log.warning("node failed", node=member.node.id, error=type(error).__name__)
            problem = explained(error, member.ref, sensitive=member.sensitive)
            self._refused(member, record, problem)

    async def _apply(self, member: Member, record: Record, decision: Decision) -> None:
        inventory, clock = self._run.inventory, _now().clock
        uid = inventory.uid(record.ref_id)
        child = self._view.get(member)
        ours = record.desired == member.digest
        wish = Wish(
            desired=await member.body(),
            graph=self._run.graph,
            policy=member.node.apply_policy,
            uid=uid,
            force=decision.force,
            ours=ours,
            may_retake=record.retakes_left(clock) > 0,
            protected=child is not None and child.protected,
            lets_replicas_go=not ours and _lets_replicas_go(member.node, child),
            sensitive=member.sensitive,
        )
        taken = await self._applier.apply(wish)
        inventory.learn(record.ref_id, taken.child.metadata.uid)
        self._view.put(member, taken.child)
        if taken.previous_managers:
            record.previous_managers = taken.previous_managers
        advance.applied(record, member.digest, taken.child, _now(), before=child, uid=uid)
        self.outcome.applied.append(member.node.id)

    async def _ask(self, member: Member, record: Record) -> None:
        child = self._view.get(member)
        if child is None:
            return
        try:
            record.answers = await self._probes.answers(member, child)
        except EvaluationError as error:
            text = f"{member.ref}: its expression was not evaluated: {error}; it is tried again"
            raise RefusedError(Problem(error.reason, text, transient=True)) from error

    def _refused(self, member: Member, record: Record, problem: Problem) -> None:
        advance.refused(record, member.digest, problem, _now())
        self._wakes.append(record.retry_at)
        if problem.reason in _GIVE_UP:
            self._given_up = True
            self._line.clear()

    def _situation(self, member: Member) -> Situation:
        node = member.node
        record = self._record(member)
        return Situation(
            record=record,
            policy=node.apply_policy,
            predicates=node.ready_when,
            uid=self._run.inventory.uid(record.ref_id),
            digest=member.digest,
            child=self._view.get(member),
            blocked_by=tuple(id_ for id_ in member.after if id_ in self._lacks[node.id]),
        )

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
            digest=member.digest,
            child=None,
        )

    def _summed_up(self) -> Outcome:
        outcome = self.outcome
        for id_ in self._plan.order:
            member = self._members.get(id_)
            if member is None:
                continue
            record = self._record(member)
            record.forget_lapse()
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
        outcome.wake = min(self._wakes, default=None)
        return outcome


def _dependents(members: Mapping[str, Member]) -> dict[str, list[str]]:
    """Who waits for each node."""
    found: dict[str, list[str]] = {}
    for id_, member in members.items():
        for other in member.after:
            found.setdefault(other, []).append(id_)
    return found


def _now() -> Moment:
    return Moment(asyncio.get_running_loop().time(), datetime.now(UTC))


_SCALED = frozenset({("apps/v1", kind) for kind in ("Deployment", "StatefulSet", "ReplicaSet")})


def _lets_replicas_go(node: Node, child: Child | None) -> bool:
    """Whether an apply would take the number of replicas away instead of leaving it."""
    spec = node.object.get("spec")
    return (
        (node.object.get("apiVersion"), node.object.get("kind")) in _SCALED
        and child is not None
        and child.owns_replicas
        and isinstance(spec, dict)
        and "replicas" not in spec
    )
