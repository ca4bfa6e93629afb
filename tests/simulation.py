"""A small cluster, and an operator that carries decisions out as the executor does.

Objects have a UID, a value of ours and a health; an apply creates only what is not there, and
changes only what it was told of. The process may end between any two writes, and goes on from what
was stored. That nodes are written in order is asserted on the way.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from random import Random

from pequod.api import reasons
from pequod.api.graph import ApplyPolicy, InventoryEntry, Node, NodeStatus, ReadyWhen
from pequod.graph import advance
from pequod.graph.advance import Act, Decision, Moment, Situation
from pequod.graph.child import Child, ChildMetadata
from pequod.graph.inventory import Intent
from pequod.graph.kstatus import CURRENT, Health
from pequod.graph.model import Plan, Ref, checked
from pequod.graph.readiness import READY, Answer, Readiness
from pequod.graph.record import Problem, Record
from pequod.graph.run import Run, resumed

GRAPH = "uid-of-graph"
EPOCH = datetime(2026, 11, 15, tzinfo=UTC)
PROGRESSING = Health("InProgress", "not yet")
TROUBLE = Problem(reasons.SERVER_ERROR, "the API server is in trouble", transient=True)
CONFLICT = Problem(reasons.FIELD_CONFLICT, "somebody has a field")
FOUGHT = Problem(reasons.OWNERSHIP_CONFLICT, "somebody keeps taking a field")
EXISTS = Problem(reasons.ALREADY_EXISTS, "something else has that name")
GOING = Problem(reasons.CONFLICT, "it is being deleted", transient=True)

APPLY = ApplyPolicy()
FORCE = ApplyPolicy(conflict_policy="Force")
CREATE = ApplyPolicy(mode="Create")
OBSERVE = ApplyPolicy(mode="Observe")
FINE = "self.fine"
ASKED = ReadyWhen(type="CEL", expression=FINE)


class CrashError(Exception):
    """The process ends here."""


class RefusedError(Exception):
    """The API server does not take it."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.message)
        self.problem = problem


@dataclass(slots=True)
class Thing:
    """A live object: one field is ours to say, if nobody has taken it."""

    uid: str
    value: str
    labelled: bool = True
    taken: bool = False
    """Whether another manager has the field by now."""
    deleting: bool = False
    health: Health = PROGRESSING
    version: int = 0

    def edit(self, value: str, *, taken: bool = False) -> None:
        """Somebody else writes the field, and has it from now on or lets it go."""
        self.value, self.taken = value, taken

    def child(self, name: str) -> Child:
        """What is kept of it."""
        metadata = ChildMetadata(name, "shop", self.uid, str(self.version), GRAPH)
        owned = "nothing" if self.taken else f"owned {self.value}"
        return Child(metadata=metadata, owned=owned, health=self.health, deleting=self.deleting)


@dataclass(slots=True)
class Cluster:
    """What survives a crash."""

    things: dict[str, Thing] = field(default_factory=dict)
    made: int = 0
    failing: int = 0
    """How many of the next writes fail."""
    writes: list[tuple[float, str, bool]] = field(default_factory=list)
    """When what was written, and whether by force."""
    created: list[str] = field(default_factory=list)

    def child(self, name: str, *, any_label: bool = False) -> Child | None:
        thing = self.things.get(name)
        if thing is None or not (thing.labelled or any_label):
            return None
        return thing.child(name)

    def make(self, name: str, value: str, *, labelled: bool = True) -> Thing:
        self.made += 1
        version = self.made * 1000
        self.things[name] = Thing(f"uid-{self.made}", value, labelled, version=version)
        return self.things[name]


@dataclass(slots=True)
class Operator:
    """What drives the decisions, as the executor does: one write of a node in a pass."""

    cluster: Cluster
    plan: Plan
    values: dict[str, str]
    clock: float = 0.0
    crash_in: int | None = None
    """Writes until the process ends."""
    stored: tuple[tuple[InventoryEntry, ...], dict[str, NodeStatus]] = ((), {})
    told: Callable[[str], object] = lambda _id: None
    """Somebody who reacts to what is written."""
    run: Run = field(init=False)
    acts: int = 0
    asked: int = 0
    busy: set[str] = field(default_factory=set)
    """Nodes with a request on its way."""
    chance: Random = field(default_factory=lambda: Random(0))
    """Which of the requests on their way is answered first."""

    def __post_init__(self) -> None:
        self.start()

    def start(self) -> None:
        inventory, statuses = self.stored
        self.busy = set()
        self.run = resumed(
            GRAPH, "shop", inventory, statuses, clock=self.clock, now=self.now().wall
        )

    def now(self) -> Moment:
        return Moment(self.clock, EPOCH + timedelta(seconds=self.clock))

    def store(self) -> None:
        statuses = {id_: self.record(id_).status() for id_ in self.plan.order}
        self.stored = (self.run.inventory.entries(), statuses)

    def ref(self, id_: str) -> Ref:
        return Ref("", "ConfigMap", "shop", id_)

    def record(self, id_: str) -> Record:
        return self.run.record(id_, self.ref(id_).id)

    def stage(self, id_: str) -> advance.Stage:
        return advance.stage(self.situation(id_, blocked=False))

    def is_ready(self, id_: str) -> bool:
        return self.stage(id_) == "ready"

    def situation(self, id_: str, *, blocked: bool = True) -> Situation:
        node = self.plan.nodes[id_]
        observed = node.apply_policy.mode == "Observe"
        others = node.depends_on if blocked else ()
        return Situation(
            record=self.record(id_),
            policy=node.apply_policy,
            predicates=node.ready_when,
            uid=self.run.inventory.uid(self.ref(id_).id),
            digest=f"desired {self.values[id_]}",
            child=self.cluster.child(id_, any_label=observed),
            blocked_by=tuple(other for other in others if not self.is_ready(other)),
        )

    def work(self) -> float | None:
        """One pass; returns when to look again at the latest."""
        intents = [
            Intent(self.ref(id_), "v1", id_, self.plan.levels[id_])
            for id_ in self.plan.order
            if self.plan.nodes[id_].apply_policy.mode != "Observe"
        ]
        wanted = [advance.wants_write(self.situation(id_), self.now()) for id_ in self.plan.order]
        if any(wanted) and self.run.inventory.widen(intents):
            self.store()
        line, running = list(self.plan.order), list[tuple[str, Decision]]()
        did = set[tuple[str, Act]]()
        wakes: list[float] = []
        turns = 0
        while line or running:
            while line:
                id_ = line.pop(0)
                decision = self.look(id_)
                if decision.wake is not None:
                    wakes.append(decision.wake)
                if (id_, decision.act) in did:
                    wakes.append(self.clock + 1.0)
                elif decision.act is not Act.REST:
                    did.add((id_, decision.act))
                    running.append((id_, decision))
                    self.busy.add(id_)
            if running:
                turns += 1
                assert turns <= 4 * len(self.plan.order), "a pass that does not end"
                id_, decision = running.pop(self.chance.randrange(len(running)))
                self.act(id_, decision)
                self.busy = {one for one, _ in running}
                line = [id_, *(one for one in self.plan.dependents[id_] if one not in self.busy)]
        self.store()
        return min(wakes, default=None)

    def look(self, id_: str) -> Decision:
        situation = self.situation(id_)
        decision = advance.decide(situation, self.now())
        if decision.act is Act.APPLY:
            self.check_order(self.plan.nodes[id_])
        return decision

    def act(self, id_: str, decision: Decision) -> None:
        if decision.act is Act.ASK:
            self.asked += 1
            child, record = self.situation(id_).child, self.record(id_)
            assert child is not None
            fine = child.health == CURRENT
            answer = READY if fine else Readiness(ready=False, detail="it is not fine")
            record.answers[FINE] = Answer(child.metadata.resource_version, answer)
            return
        if decision.act is Act.EXPLAIN:
            self.asked += 1
            self.record(id_).explanation = "its pods crash"
            return
        self.step()
        self.write(id_, force=decision.force)

    def step(self) -> None:
        """Here the process may end."""
        if self.crash_in is not None:
            self.crash_in -= 1
            if self.crash_in < 0:
                raise CrashError

    def write(self, id_: str, *, force: bool) -> None:
        node, record = self.plan.nodes[id_], self.record(id_)
        assert node.apply_policy.mode != "Observe", "what others provide is never written"
        self.acts += 1
        digest = f"desired {self.values[id_]}"
        ours = record.desired == digest
        before, uid = self.situation(id_).child, self.situation(id_).uid
        try:
            self.apply(id_, force=force, ours=ours)
        except RefusedError as error:
            advance.refused(record, digest, error.problem, self.now())
            return
        self.step()
        thing = self.cluster.things[id_]
        self.run.inventory.learn(self.ref(id_).id, thing.uid)
        advance.applied(record, digest, thing.child(id_), self.now(), before=before, uid=uid)
        self.told(id_)

    def check_order(self, node: Node) -> None:
        """What is made or changed comes after what it depends on; drift is taken back any time."""
        situation = self.situation(node.id)
        if situation.uid and situation.record.desired == situation.digest:
            return
        for other in node.depends_on:
            mode = self.plan.nodes[other].apply_policy.mode
            thing = self.cluster.things.get(other)
            if mode == "Create" and thing is None:
                continue
            assert thing is not None
            # While a request about it is on its way, it counts as what it was when it was sent.
            if other not in self.busy:
                assert not thing.deleting or mode == "Create"
                assert thing.health == CURRENT or thing.deleting
            if mode == "Apply":
                assert self.record(other).desired == f"desired {self.values[other]}"

    def apply(self, id_: str, *, force: bool, ours: bool) -> None:
        """Make it so."""
        cluster = self.cluster
        if cluster.failing:
            cluster.failing -= 1
            raise RefusedError(TROUBLE)
        thing = cluster.things.get(id_)
        uid = self.run.inventory.uid(self.ref(id_).id)
        if thing is None:
            cluster.make(id_, self.values[id_])
            cluster.created.append(id_)
            cluster.writes.append((self.clock, id_, False))
            return
        if thing.uid != uid:
            if thing.deleting:
                self.run.inventory.forget_uid(self.ref(id_).id)
                raise RefusedError(GOING)
            if not thing.labelled:
                raise RefusedError(EXISTS)
        self.change(id_, thing, force=force, ours=ours)

    def change(self, id_: str, thing: Thing, *, force: bool, ours: bool) -> None:
        if thing.taken and not force:
            if not ours:
                raise RefusedError(CONFLICT)
            if self.record(id_).retakes_left(self.clock) <= 0:
                raise RefusedError(FOUGHT)
            force = True
        assert not (thing.deleting and thing.labelled), "what goes is let go"
        if not thing.taken and thing.value != self.values[id_]:
            thing.health = PROGRESSING
        self.cluster.writes.append((self.clock, id_, force and ours))
        thing.value, thing.taken, thing.labelled = self.values[id_], False, True
        thing.version += 1

    def passes(self, most: int, *, tick: Callable[[], None] = lambda: None) -> int:
        """Pass until everything is ready; how many passes that took."""
        for count in range(most):
            wake = self.work()
            if all(self.is_ready(id_) for id_ in self.plan.order):
                return count
            tick()
            self.clock = max(self.clock + 0.1, wake if wake is not None else 0.0)
        stages = {id_: (self.stage(id_), self.record(id_)) for id_ in self.plan.order}
        raise AssertionError(f"not ready after {most} passes: {stages}")


def planned(choices: list[tuple[int, ApplyPolicy]]) -> Plan:
    """A plan of which each node says by its bits which of those before it depends on."""
    return checked(
        [
            Node(
                id=f"n{index}",
                object={"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"n{index}"}},
                apply_policy=policy,
                depends_on=tuple(f"n{i}" for i in range(index) if choice >> i & 1),
                ready_when=(ASKED,) if choice & 32 else (),
            )
            for index, (choice, policy) in enumerate(choices)
        ]
    )


def operator_of(plan: Plan, seed: int = 0) -> Operator:
    values = dict.fromkeys(plan.order, "value 0")
    return Operator(Cluster(), plan, values, chance=Random(seed))


def observed(operator: Operator, id_: str) -> bool:
    return operator.plan.nodes[id_].apply_policy.mode == "Observe"


def all_become_healthy(operator: Operator) -> Callable[[], None]:
    def tick() -> None:
        for thing in operator.cluster.things.values():
            if thing.health != CURRENT:
                thing.health = CURRENT
                thing.version += 1

    return tick
