"""The plan of a Transform: what its execution would do, asked for in its tenant's name."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime

import msgspec

from pequod.api.meta import ObjectReference
from pequod.api.platform import Plan as ToldPlan
from pequod.api.platform import PlannedChange, ResourceGraph, Transform
from pequod.base.logs import one_line
from pequod.controllers.frontend.compiling import Compiled
from pequod.controllers.frontend.storing import Source
from pequod.controllers.platform import claims
from pequod.controllers.platform.agreements import agreed, way_out
from pequod.controllers.platform.identity import Actor, Identities
from pequod.controllers.platform.preparing import Prepared, require_reach
from pequod.controllers.platform.rendering import Rendered
from pequod.controllers.platform.running import Runs
from pequod.controllers.platform.targets import Targets
from pequod.graph.desired import with_sensitive
from pequod.graph.model import Ref, checked
from pequod.graph.plan import Change, Plan, Subject, Wanted
from pequod.graph.planning import Planning
from pequod.graph.probes import Cel, Probes
from pequod.graph.reach import Reach, made_accounts
from pequod.runtime.verdicts import Verdict

_LONGEST = 2000
_MOST = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """A plan, and which rendering it is for."""

    plan: Plan
    render_hash: str

    @property
    def summary(self) -> str:
        """The plan in half a line."""
        return self.plan.summary

    def told(self, now: datetime) -> ToldPlan:
        """As a status has it."""
        return ToldPlan(
            render_hash=self.render_hash,
            planned_at=now,
            changes=tuple(_told(one) for one in self.plan.changes[:_MOST]),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Others:
    """What is known of other graphs."""

    lives: Callable[[str], Awaitable[bool]]
    """Whether there is a graph of a UID."""
    heir: Callable[[Ref], str] = lambda _ref: ""
    """The UID of another graph that asks for an object."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Planner:
    """Makes plans of Transforms."""

    targets: Targets
    identities: Identities
    runs: Runs
    cel: Cel

    def __post_init__(self) -> None:
        """Have graphs found by the objects that they have, and that they ask for."""
        self.runs.graphs.add_index(claims.UID, claims.uids)
        self.runs.graphs.add_index(claims.INDEX, claims.claims)

    async def planned(self, transform: Transform, source: Source, rendered: Rendered) -> Planned:
        """What the execution of a rendering would do; raises a verdict when nobody may ask."""
        made = rendered.made
        assert made is not None, "what something is against has no plan"
        try:
            plan = await self._plan(transform, source, made)
        except Verdict:
            # What was planned before is not what would be done any more.
            transform.status.plan = None
            raise
        return Planned(plan=plan, render_hash=made.render_hash)

    async def _plan(self, transform: Transform, source: Source, made: Compiled) -> Plan:
        stored = self.runs.find(source)
        graph = standing(self.runs.preview(transform, source, made), stored)
        target = await self.targets.of(graph)
        await self.identities.require(graph, target)
        actor = self.identities.actor(graph, target)
        probes = Probes(actor.client, self.cel, owner=source.namespace)
        planning, nodes = Planning(actor.client, target.discovery, probes), wanted(made)
        subject = subject_of(
            graph,
            stored,
            reach=self._reach(graph, made, actor),
            annotations=graph.metadata.annotations | transform.metadata.annotations,
            others=self._others(graph),
        )
        require_reach(Prepared(out_of_reach=await planning.out_of_reach(subject, nodes)))
        return await planning.planned(subject, nodes)

    def _reach(self, graph: ResourceGraph, made: Compiled, actor: Actor) -> Reach:
        return Reach(
            namespace=graph.metadata.namespace or "",
            confined=self.identities.rules.mode == "confined" and not actor.impersonated,
            operator_namespace=self.identities.namespace,
            accounts=accounts_of(graph, made),
        )

    def _others(self, graph: ResourceGraph) -> Others:
        graphs = self.runs.graphs

        async def lives(uid: str) -> bool:
            return bool(graphs.by(claims.UID, uid))

        return Others(lives=lives, heir=lambda ref: claims.heir(graph, ref, graphs))


def wanted(made: Compiled) -> list[Wanted]:
    """The nodes of a rendering as a plan needs them, in an order in which they can be applied."""
    plan = checked(made.nodes)
    found = []
    for id_ in plan.order:
        node = plan.nodes[id_]
        template = plan.templates.get(id_)
        object_ = node.object if template is None else template.blanked(node.object)
        if id_ in made.sensitive:
            object_ = with_sensitive(object_, made.sensitive[id_], where=f"node {id_}")
        takes = template if template is not None and template.sources else None
        found.append(Wanted(node=node, object=object_, template=takes))
    return found


def accounts_of(graph: ResourceGraph, made: Compiled) -> dict[str, str]:
    """The service accounts that a rendering makes itself: not those that existed before."""
    known = graph.status.node_status
    adopted = {id_ for id_, status in known.items() if status.previous_managers}
    new = (node for node in made.nodes if node.id not in adopted)
    return made_accounts(new, graph.metadata.namespace or "")


def standing(graph: ResourceGraph, stored: ResourceGraph | None) -> ResourceGraph:
    """A graph as it is asked for by now, with what has become of the one that is stored."""
    if stored is None:
        return graph
    return msgspec.structs.replace(graph, metadata=stored.metadata, status=stored.status)


def subject_of(
    graph: ResourceGraph,
    stored: ResourceGraph | None,
    *,
    reach: Reach,
    annotations: Mapping[str, str],
    others: Others,
) -> Subject:
    """A graph as a plan needs it; `annotations` are its own and those of its source."""
    return Subject(
        namespace=reach.namespace,
        reach=reach,
        uid=graph.metadata.uid,
        inventory=graph.status.inventory,
        deletion_policy=graph.spec.deletion_policy,
        adopt=graph.spec.adopt,
        settled=_settled(graph, stored) if stored is not None else frozenset(),
        lives=others.lives,
        heir=others.heir,
        emptied=not graph.spec.nodes and graph.spec.allow_empty,
        agreed=agreed(graph, annotations),
        way_out=way_out(graph),
    )


def _settled(graph: ResourceGraph, stored: ResourceGraph) -> frozenset[str]:
    """The nodes that were applied as they are asked for now."""
    if stored.status.observed_generation != stored.metadata.generation:
        return frozenset()
    before = {node.id: (node.object, node.object_from) for node in stored.spec.nodes}
    applied = {
        id_
        for id_, status in stored.status.node_status.items()
        if status.phase in {"Applied", "Ready"} and status.digests and status.digests.desired
    }
    return frozenset(
        node.id
        for node in graph.spec.nodes
        if node.id in applied and before.get(node.id) == (node.object, node.object_from)
    )


def _told(change: Change) -> PlannedChange:
    return PlannedChange(
        action=change.action,
        object=ObjectReference(
            api_version=change.api_version,
            kind=change.ref.kind,
            name=change.ref.name,
            namespace=change.ref.namespace or None,
        ),
        message=one_line(change.message, _LONGEST) or None,
    )
