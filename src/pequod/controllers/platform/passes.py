"""One pass over one graph: who acts, what is allowed, what is intended, then what is done."""

import hashlib
from dataclasses import dataclass

import msgspec

from pequod.api import reasons
from pequod.api.graph import Node
from pequod.api.platform import ACKNOWLEDGE_PRUNE, ResourceGraph
from pequod.controllers.platform import reporting
from pequod.controllers.platform.identity import Actor
from pequod.controllers.platform.preparing import AGAIN, Preparation, Prepared, require_reach
from pequod.controllers.platform.removing import Scene, still_there
from pequod.controllers.platform.targets import Target
from pequod.controllers.platform.views import POLL, LiveView
from pequod.graph.access import Need, described
from pequod.graph.advance import unusable
from pequod.graph.applying import Applier
from pequod.graph.executor import Execution, Outcome
from pequod.graph.model import Plan, Ref
from pequod.graph.probes import Cel, Probes
from pequod.graph.prune import braked
from pequod.graph.reach import Reach
from pequod.graph.run import Run
from pequod.runtime.context import Context
from pequod.runtime.verdicts import Waiting

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

    async def prepare(self) -> Prepared:
        """The nodes, ready to be executed; raises a verdict when some are out of reach."""
        preparation = Preparation(self.run, self.target, self.actor, self.reach, self.ctx)
        prepared = await preparation.prepared(self.plan)
        require_reach(prepared)
        return prepared

    async def execute(self, prepared: Prepared) -> Outcome:
        """Write the intent down, then bring every node as far as it comes now."""
        children, kinds = self.target.children, prepared.kinds()
        asks = any(one.type == "CEL" for node in self.plan for one in node.ready_when)
        children.need(self.run.graph, kinds, every_change=asks)
        watched = await self.target.watched(kinds)
        prepared.without(watched.failed)
        view = LiveView(self.run, children, watched.kinds)
        polled = view.polled([*prepared.members.values()])
        prepared.unasked(await view.poll(polled, self.actor))
        self._let_go_of_observed(prepared)
        execution = Execution(
            self.run,
            self.plan,
            prepared.members,
            applier=Applier(self.actor.client, children),
            probes=Probes(self.actor.client, self.cel, owner=self.run.namespace),
            view=view,
        )
        if execution.has_work():
            await self.scene.answerable()
            await self._require_rights(prepared)
            await self._intend(prepared)
        outcome = await execution.run()
        for id_, problem in prepared.unusable.items():
            unusable(self.run.records[id_], problem, reporting.now())
        outcome.failed |= prepared.unusable
        if any(not problem.transient for problem in prepared.unusable.values()):
            outcome.wake_by(AGAIN)
        if polled:
            outcome.wake_by(POLL)
        outcome.unwatched = tuple(sorted(str(kind) for kind in watched.refused(kinds)))
        self._noted(outcome, prepared)
        return outcome

    async def _require_rights(self, prepared: Prepared) -> None:
        """Everything that the identity lacks, found before the first write."""
        needs = {
            Need(verb, member.kind.group, member.kind.plural, member.ref.namespace, member.ref.name)
            for member in prepared.members.values()
            for verb in _verbs(member.node.apply_policy.mode)
        }
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
            reporting.fill(self.graph, self.run)
            self.run.confirmed |= await self.ctx.save()
            self.run.stored = True
        if not self.run.confirmed:
            await self.scene.confirm()
            self.run.confirmed = True

    def _let_go_of_observed(self, prepared: Prepared) -> None:
        """What a node only looks at from now on is nobody's to delete."""
        for member in prepared.members.values():
            if member.node.apply_policy.mode == "Observe" and member.ref.id in self.run.inventory:
                self.run.inventory.drop(member.ref.id)
                reporting.note_released(self.run, [member.ref])

    def _noted(self, outcome: Outcome, prepared: Prepared) -> None:
        reporting.note_applied(self.run, [prepared.members[id_].ref for id_ in outcome.applied])
        if any(one.reason == reasons.FORBIDDEN for one in outcome.failed.values()):
            self.target.access.forget(self.actor.who)

    async def prune(self, prepared: Prepared) -> str:
        """Take away what no node asks for any more; raises a verdict while something is left."""
        wanted = {member.ref.id for member in prepared.members.values()}
        wanted |= self._unusable(prepared)
        stale = self.run.inventory.stale(wanted)
        if not stale:
            return NOTHING_LEFT
        kept = len(self.run.inventory) - len(stale)
        emptied = not self.plan.order and self.graph.spec.allow_empty
        problem = braked(stale, kept, emptied=emptied)
        if problem and not self._acknowledged():
            raise Waiting(reasons.PRUNE_BLOCKED, f"this change {problem}; {self._way_out()}")
        removed = await self.scene.take_away(stale, None, also=prepared.kinds())
        reporting.note_removed(self.run, removed)
        if not removed.complete:
            raise still_there(removed, self.run, doing=reasons.PRUNING)
        return NOTHING_LEFT

    def _unusable(self, prepared: Prepared) -> set[str]:
        """The objects of nodes that cannot be executed now: they are wanted all the same."""
        names = {_name_of(self.plan.nodes[id_]) for id_ in prepared.unusable}
        kept = set()
        for entry in self.run.inventory:
            ref = Ref.of(entry.id)
            if entry.node in prepared.unusable or (ref.group, ref.kind, ref.name) in names:
                kept.add(entry.id)
        return kept

    def _acknowledged(self) -> bool:
        return self.graph.metadata.annotations.get(ACKNOWLEDGE_PRUNE) == self.revision

    def _way_out(self) -> str:
        metadata, source = self.graph.metadata, self.graph.spec.source_ref
        kind, name, namespace = "resourcegraph", metadata.name, metadata.namespace
        if source is not None:
            kind, name, namespace = source.kind.lower(), source.name, source.namespace
        place = f"-n {namespace} " if namespace else ""
        return (
            f"if that is meant, run `kubectl annotate --overwrite {kind} {place}{name} "
            f"{ACKNOWLEDGE_PRUNE}={self.revision}`"
        )

    @property
    def revision(self) -> str:
        """What an agreement is bound to: the digest of the rendering, or of the nodes."""
        known = self.graph.spec.metadata.render_hash
        if known:
            return known
        body = msgspec.json.encode(self.graph.spec.nodes, order="deterministic")
        return hashlib.sha256(body).hexdigest()[:16]


def _verbs(mode: str) -> tuple[str, ...]:
    return ("get",) if mode == "Observe" else ("create", "patch")


def _name_of(node: Node) -> tuple[str, str, str]:
    """What is known of a node's object before its kind is."""
    object_ = node.object
    group = str(object_["apiVersion"]).rpartition("/")[0]
    return (group, str(object_["kind"]), str(object_["metadata"]["name"]))
