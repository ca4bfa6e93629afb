"""The plan of a Transform: what its execution would do, asked for in its tenant's name."""

from dataclasses import dataclass
from datetime import datetime

from pequod.api.graph import Adopt
from pequod.api.meta import ObjectReference
from pequod.api.platform import Plan as ToldPlan
from pequod.api.platform import PlannedChange, ResourceGraph, Transform
from pequod.base.logs import one_line
from pequod.controllers.frontend.compiling import Compiled
from pequod.controllers.frontend.storing import Source
from pequod.controllers.platform.identity import Identities
from pequod.controllers.platform.rendering import Rendered
from pequod.controllers.platform.running import Runs
from pequod.controllers.platform.targets import Targets
from pequod.graph.desired import with_sensitive
from pequod.graph.model import checked
from pequod.graph.plan import Change, Plan, Planning, Subject, Wanted

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
class Planner:
    """Makes plans of Transforms."""

    targets: Targets
    identities: Identities
    runs: Runs

    async def planned(self, transform: Transform, source: Source, rendered: Rendered) -> Planned:
        """What the execution of a rendering would do; raises a verdict when nobody may ask."""
        made = rendered.made
        assert made is not None, "what something is against has no plan"
        graph = self.runs.find(source) or self.runs.preview(transform, source, made)
        target = await self.targets.of(graph)
        await self.identities.require(graph, target)
        actor = self.identities.actor(graph, target)
        planning = Planning(actor.client, target.discovery)
        subject = subject_of(graph, source.namespace, transform.spec.adopt)
        plan = await planning.planned(subject, wanted(made))
        return Planned(plan=plan, render_hash=made.render_hash)


def wanted(made: Compiled) -> list[Wanted]:
    """The nodes of a rendering as a plan needs them, in an order in which they can be applied."""
    plan = checked(made.nodes)
    found = []
    for id_ in plan.order:
        node = plan.nodes[id_]
        object_ = node.object
        if id_ in made.sensitive:
            object_ = with_sensitive(object_, made.sensitive[id_], where=f"node {id_}")
        later = id_ in plan.templates and bool(plan.templates[id_].sources)
        found.append(Wanted(node=node, object=object_, later=later))
    return found


def subject_of(graph: ResourceGraph, namespace: str, adopt: Adopt | None) -> Subject:
    """A graph as a plan needs it, with what is asked for by now about objects of others."""
    return Subject(
        namespace=namespace,
        uid=graph.metadata.uid,
        inventory=graph.status.inventory,
        deletion_policy=graph.spec.deletion_policy,
        adopt=adopt,
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
