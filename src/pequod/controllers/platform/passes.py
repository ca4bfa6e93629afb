"""One pass over one graph: who acts, what is allowed, what is intended, then what is done."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass

from pequod.api import reasons
from pequod.api.graph import InventoryEntry, Node
from pequod.api.platform import ResourceGraph
from pequod.controllers.frontend.handover import Parts
from pequod.controllers.platform import reporting
from pequod.controllers.platform.adopting import Adopting
from pequod.controllers.platform.adoptions import Rehearsing
from pequod.controllers.platform.agreements import agreed, way_out
from pequod.controllers.platform.identity import Actor
from pequod.controllers.platform.preparing import (
    Preparation,
    Prepared,
    require_distinct,
    require_reach,
)
from pequod.controllers.platform.removing import Scene, still_there
from pequod.controllers.platform.targets import Target
from pequod.controllers.platform.views import POLL, LiveView
from pequod.graph.access import Need, described
from pequod.graph.adopt import Adoption
from pequod.graph.advance import unusable
from pequod.graph.applying import Applier
from pequod.graph.executor import Execution, Outcome
from pequod.graph.foundations import is_defined_by
from pequod.graph.inventory import is_left, unseen
from pequod.graph.members import Member
from pequod.graph.model import Plan, Ref
from pequod.graph.probes import Cel, Probes
from pequod.graph.prune import braked, listed
from pequod.graph.reach import Reach
from pequod.graph.record import Problem
from pequod.graph.run import Run
from pequod.kube.kinds import SECRETS, Kind
from pequod.runtime.context import Context
from pequod.runtime.verdicts import Waiting

BLOCKED_AGAIN = 30.0
"""Seconds after which an agreement on the source is looked for again."""
UNUSABLE_AGAIN = 30.0
"""Seconds after which a node that cannot be executed is looked at again."""
SERVED_AGAIN = 1.0
"""Seconds after which a kind is looked for again that is about to be served."""
DENIED_AGAIN = 30.0
"""Seconds after which rights that were missing are looked for again."""
NOTHING_LEFT = "nothing is left over"
"""What `Pruned` says, also right after a prune: events tell what went, and the next pass would only
write that nothing is left."""


@dataclass(slots=True, kw_only=True)
class GraphPass:
    """Everything that one pass over a graph needs."""

    graph: ResourceGraph
    run: Run
    plan: Plan
    target: Target
    actor: Actor
    scene: Scene
    reach: Reach
    cel: Cel | None
    ctx: Context
    lives: Callable[[str], bool]
    """Whether there is a graph of a UID."""
    agreements: Callable[[], Awaitable[Mapping[str, str]]]
    """The annotations of the graph and of its source."""
    handed: Callable[[], Parts]
    """Sensitive parts that need not be read."""
    released: bool = False
    """Whether somebody has agreed to what is taken away."""

    async def prepare(self) -> Prepared:
        """The nodes, ready to be executed; raises a verdict when some are out of reach."""
        preparation = Preparation(
            self.run, self.target, self.actor, self.reach, self.ctx, self.handed
        )
        prepared = await preparation.prepared(self.plan)
        require_distinct(prepared)
        require_reach(prepared)
        return prepared

    async def adopt(self, prepared: Prepared) -> Adoption | None:
        """Find out which nodes are objects that exist already; raises a verdict for a dry run."""
        adopting = Adopting(
            graph=self.graph,
            run=self.run,
            plan=self.plan,
            actor=self.actor,
            reach=self.reach,
            require=self._require,
        )
        spec = self.graph.spec.adopt
        if spec is not None and (spec.strategy == "Mirror" or spec.dry_run):
            # Objects of others are read in every pass, whether something is written or not.
            await self.scene.answerable()
        adoption = await adopting.adopt(prepared)
        if spec is not None and spec.dry_run and adoption is not None:
            rehearsing = Rehearsing(run=self.run, actor=self.actor, lives=self.lives)
            await rehearsing.rehearse(adoption, prepared)
        return adoption

    async def execute(self, prepared: Prepared) -> Outcome:
        """Write the intent down, then bring every node as far as it comes now."""
        kinds = prepared.kinds()
        await self._watch(prepared, kinds)
        watched = await self.target.watched(kinds)
        prepared.without(watched.failed)
        view = LiveView(self.run, self.target.children, watched.kinds)
        polled = view.polled([*prepared.members.values()])
        prepared.unasked(await view.poll(polled, self.actor))
        await self._let_go_of_observed(prepared)
        execution = self._execution(prepared, view)
        if execution.has_work():
            await self._require_rights(prepared)
            await self._intend(prepared)
        else:
            self.run.inventory.follow(prepared.intents(self.plan))
        mirrored = self._mirrored(prepared)
        outcome = await execution.run()
        self._note(outcome, prepared)
        run = self.run
        reporting.note_mirrored(run, [r for r in self._mirrored(prepared) if r not in mirrored])
        if polled or (run.adoption is not None and run.adoption.open):
            outcome.wake_by(POLL)
        if any(not problem.transient for problem in prepared.unusable.values()):
            outcome.wake_by(UNUSABLE_AGAIN)
        self._wait_for_kinds(outcome, prepared)
        outcome.unwatched = tuple(sorted(str(kind) for kind in watched.refused(kinds)))
        return outcome

    async def _watch(self, prepared: Prepared, kinds: frozenset[Kind]) -> None:
        """Hear of everything that the graph has, and had: what is let go is watched until then."""
        stale = await self.scene.kinds_of([*self._stale(prepared), *self._observed(prepared)])
        asks = any(one.type == "CEL" for node in self.plan for one in node.ready_when)
        every = asks or bool(self.plan.sources)
        self.target.children.need(self.run.graph, kinds | stale, every_change=every)

    def _execution(self, prepared: Prepared, view: LiveView) -> Execution:
        client, children = self.actor.client, self.target.children
        return Execution(
            self.run,
            self.plan,
            prepared.members,
            applier=Applier(client, children, confirm=self.scene.confirm, lives=self.lives),
            probes=Probes(client, self.cel, owner=self.run.namespace),
            view=view,
        )

    async def _require_rights(self, prepared: Prepared) -> None:
        """Everything that the identity lacks, found before the first write."""
        sources = self.plan.sources
        needs = {
            Need(verb, member.kind.group, member.kind.plural, member.ref.namespace, member.ref.name)
            for id_, member in prepared.members.items()
            for verb in _verbs(member, read=id_ in sources, deletes=self._deletes(member.node))
        }
        if self.graph.spec.cluster_ref is None:
            # Those of graphs for other clusters are not read where the graph is executed.
            needs |= {self._sensitive_need(name) for name in _secrets(prepared)}
        await self._require(needs)

    def _deletes(self, node: Node) -> bool:
        """Whether an object is to end with its node."""
        return not is_left(node.apply_policy.deletion_policy, self.graph.spec.deletion_policy)

    def _sensitive_need(self, secret: str) -> Need:
        return Need("get", SECRETS.group, SECRETS.plural, self.run.namespace, secret)

    async def _require(self, needs: Iterable[Need]) -> None:
        """Be sure that the identity may do something; raises a verdict with all that it may not."""
        await self.scene.answerable()
        denied = await self.target.access.denied(self.actor.client, self.actor.who, needs)
        if denied:
            self.target.access.forget(self.actor.who)
            raise Waiting(
                reasons.FORBIDDEN,
                f"{self.actor.name} may not {described(denied)}; grant that with a Role and a "
                "RoleBinding, or name another account in spec.serviceAccountName",
                after=DENIED_AGAIN,
            )

    async def _intend(self, prepared: Prepared) -> None:
        """Store what is about to be made, and be sure that the graph is still there."""
        if self.run.inventory.widen(prepared.intents(self.plan)):
            self.run.stored = False
        if not self.run.stored:
            self.graph.status.phase = "Executing"
            self.graph.status.cluster = self.target.identity or None
            reporting.fill(self.graph, self.run)
            self.run.confirmed |= await self.ctx.save()
            self.run.stored = True
        if not self.run.confirmed:
            await self.scene.confirm()
            self.run.confirmed = True

    async def _let_go_of_observed(self, prepared: Prepared) -> None:
        """What a node only looks at from now on is nobody's to delete, and not labelled by us."""
        entries = self._observed(prepared)
        if not entries:
            return
        await self.scene.answerable()
        removed = await self.scene.take_away(entries, None, orphan=True)
        reporting.note_removed(self.run, removed)
        for ref, error in removed.failed.items():
            text = f"{ref} is only observed from now on; the graph's label cannot be taken off it"
            prepared.leave_out(ref, Problem(error.reason, f"{text}: {error}"))

    def _observed(self, prepared: Prepared) -> list[InventoryEntry]:
        """What nodes made, and only look at from now on."""
        members = prepared.members.values()
        ids = {one.ref.id for one in members if one.node.apply_policy.mode == "Observe"}
        return [entry for entry in self.run.inventory if entry.id in ids]

    def _note(self, outcome: Outcome, prepared: Prepared) -> None:
        """Take down what was done, and what could not be."""
        for id_, problem in prepared.unusable.items():
            once = self.plan.nodes[id_].apply_policy.mode == "Create"
            unusable(self.run.records[id_], problem, reporting.now(), once=once)
        outcome.failed |= prepared.unusable
        adopted, applied = {*outcome.adopted}, {*outcome.applied}
        reporting.note_adopted(self.run, self._refs(adopted, prepared))
        reporting.note_applied(self.run, self._refs(applied - adopted, prepared))
        if any(one.reason == reasons.FORBIDDEN for one in outcome.failed.values()):
            self.target.access.forget(self.actor.who)

    def _refs(self, ids: set[str], prepared: Prepared) -> list[Ref]:
        """The objects of nodes in the order of the graph, whoever was answered first."""
        return [prepared.members[id_].ref for id_ in self.plan.order if id_ in ids]

    def _wait_for_kinds(self, outcome: Outcome, prepared: Prepared) -> None:
        """Take down who waits for a kind; what may bring it is looked at again soon."""
        for id_, waits in prepared.early.items():
            record = self.run.records[id_]
            record.moves("Pending", reporting.now())
            record.problem, record.details = None, waits
            outcome.waiting.append(id_)
            outcome.lacking[id_] = waits
            others = self.plan.edges[id_]
            if not all(self.run.records[other].is_settled for other in others):
                continue
            outcome.wake_by(SERVED_AGAIN)
            if any(is_defined_by(self.plan.nodes[id_], self.plan.nodes[one]) for one in others):
                self.target.discovery.invalidate()

    def _mirrored(self, prepared: Prepared) -> list[Ref]:
        """Objects that are there and stay with others."""
        members = [one for one in prepared.members.values() if one.mirrored]
        return [m.ref for m in members if self.run.records[m.node.id].phase == "Adopted"]

    def _stale(self, prepared: Prepared) -> list[InventoryEntry]:
        """What no node asks for any more."""
        wanted = {member.ref.id for member in prepared.members.values()}
        return self.run.inventory.stale(wanted | self._unusable(prepared))

    async def brake(self, prepared: Prepared) -> None:
        """Raise a verdict when a change takes so much away that somebody has to agree to it.

        Known, and stored with the intent, before anything is made: what a change adds does not
        make up for what it takes away, in this pass and in none that comes after it.
        """
        stale = self._stale(prepared)
        self.run.left_over(stale)
        deleted = [entry for entry in stale if self.scene.would_go(entry)]
        emptied = not self.plan.order and self.graph.spec.allow_empty
        problem = braked(deleted, self.run.before, emptied=emptied)
        if not problem and deleted and self.run.braked:
            problem = f"would delete {listed([Ref.of(entry.id) for entry in deleted])}"
        self.released = bool(problem) and agreed(self.graph, await self.agreements())
        if problem and not self.released:
            raise Waiting(
                reasons.PRUNE_BLOCKED,
                f"this change {problem}; {way_out(self.graph)}",
                after=BLOCKED_AGAIN,
            )

    async def prune(self, prepared: Prepared) -> str:
        """Take away what no node asks for any more; raises a verdict while something is left."""
        stale = self._stale(prepared)
        if not stale:
            return NOTHING_LEFT
        # Who asked for an object when that was judged before may have given it up by now.
        await self.brake(prepared)
        removed = await self.scene.take_away(stale, None)
        reporting.note_removed(self.run, removed)
        if not removed.complete:
            raise still_there(removed, self.run, doing=reasons.PRUNING)
        self.run.left_over(())
        return NOTHING_LEFT

    def _unusable(self, prepared: Prepared) -> frozenset[str]:
        """The objects of nodes that cannot be executed now: they are wanted all the same."""
        ids = (*prepared.unusable, *prepared.early)
        return unseen(self.run.inventory, {id_: self.plan.nodes[id_].object for id_ in ids})


def _verbs(member: Member, *, read: bool, deletes: bool) -> tuple[str, ...]:
    """What is done to the object of a node, sooner or later.

    `read` when others take values from it, `deletes` when it is to end with its node.
    """
    node = member.node
    asks = read or member.adopts or any(one.type == "CEL" for one in node.ready_when)
    if node.apply_policy.mode == "Observe":
        # To compare a mirrored object is a dry run of its apply.
        return ("get", "patch") if member.mirrored else ("get",)
    return ("create", "patch", *(("get",) if asks else ()), *(("delete",) if deletes else ()))


def _secrets(prepared: Prepared) -> set[str]:
    """The Secrets that sensitive parts of nodes are read from."""
    parts = (member.node.object_from for member in prepared.members.values())
    return {part.secret_ref.name for part in parts if part is not None}
