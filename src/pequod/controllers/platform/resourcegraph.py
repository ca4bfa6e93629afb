"""ResourceGraph: stored intent, executed."""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import ClassVar

from pequod.api import reasons
from pequod.api.gitops import Cluster
from pequod.api.graph import Node
from pequod.api.platform import ResourceGraph
from pequod.controllers.frontend.handover import Handover, Parts
from pequod.controllers.frontend.storing import FINALIZER
from pequod.controllers.platform import adoptions, claims, limits, reporting
from pequod.controllers.platform.finalizing import Finalizer
from pequod.controllers.platform.identity import Identities
from pequod.controllers.platform.limits import NamespaceLimits
from pequod.controllers.platform.passes import GraphPass
from pequod.controllers.platform.preparing import Prepared
from pequod.controllers.platform.removing import Scene
from pequod.controllers.platform.targets import Targets
from pequod.graph.adopt import Adoption
from pequod.graph.model import InvalidGraphError, Plan
from pequod.graph.probes import Cel
from pequod.graph.reach import Reach, made_accounts
from pequod.graph.run import PACE, Run, resumed
from pequod.kube.cache import Cache, Index, Projection
from pequod.kube.errors import KubeError
from pequod.kube.kinds import Kind
from pequod.kube.objects import Key
from pequod.runtime.context import Context
from pequod.runtime.events import Recorder
from pequod.runtime.reconciler import Permission, Reconciler
from pequod.runtime.triggers import Trigger
from pequod.runtime.verdicts import Result, Stalled, Verdict, Waiting

CLUSTER = "cluster"
_AGREED = "what this change deletes was agreed to; it goes when everything else is applied"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What the operator's flags say about graphs."""

    namespace: str
    """The operator's own."""
    account: str
    """The operator's own, in its namespace."""
    abandon_after: float = 600.0
    """Seconds after which objects of a deleted graph are left behind that cannot be deleted."""
    limits: NamespaceLimits = field(default_factory=NamespaceLimits)


class ResourceGraphReconciler(Reconciler[ResourceGraph]):
    """Brings the objects of a graph into being, keeps them so, and takes them away."""

    kind = ResourceGraph
    finalizer = FINALIZER
    permissions = (
        Permission(resources=("serviceaccounts",), verbs=("get", "impersonate")),
        Permission(resources=("namespaces",), verbs=("get",)),
        Permission(resources=("secrets",), verbs=("get", "list", "watch")),
        Permission(
            group="authorization.k8s.io",
            resources=("selfsubjectaccessreviews", "selfsubjectrulesreviews"),
            verbs=("create",),
        ),
        Permission(group="platform.pequod.io", resources=("transforms",), verbs=("get",)),
        Permission(group="ajj.io", resources=("clusters",), verbs=("get", "list", "watch")),
    )
    concurrency = 16
    indexes: ClassVar[dict[str, Index[ResourceGraph]]] = {
        claims.UID: claims.uids,
        claims.INDEX: claims.claims,
        limits.INDEX: lambda graph: (graph.metadata.namespace or "",),
        CLUSTER: lambda graph: (graph.spec.cluster_ref.name,) if graph.spec.cluster_ref else (),
    }
    triggers = (
        Trigger(
            Kind.of(Cluster),
            Projection(Cluster),
            lambda cluster, lookup: lookup(CLUSTER, cluster.metadata.name),
        ),
    )
    quiet = frozenset({"Adopted", "Applied", "Healthy", "Pruned", "Ready"})

    def __init__(
        self,
        targets: Targets,
        identities: Identities,
        recorder: Recorder,
        *,
        cel: Cel | None,
        rules: Rules,
        handover: Handover,
    ) -> None:
        self._own = identities.own
        self._handover = handover
        self._targets = targets
        self._identities = identities
        self._cel = cel
        self._rules = rules
        self._finalizer = Finalizer(
            own=identities.own,
            recorder=recorder,
            namespace=rules.namespace,
            account=rules.account,
            abandon_after=rules.abandon_after,
        )
        self._runs: dict[Key, Run] = {}
        self._graphs: Cache[ResourceGraph]

    def attach(self, wake: Callable[[Key], None], cache: Cache[ResourceGraph]) -> None:
        """Wake graphs by the UIDs that their objects carry."""
        self._graphs = cache

        def wake_graph(uid: str) -> None:
            for key in cache.by(claims.UID, uid):
                wake(key)

        def wake_graphs(cluster: Key) -> None:
            for key in cache.by(CLUSTER, cluster.name):
                wake(key)

        self._targets.wake = wake_graph
        self._targets.wake_cluster = wake_graphs

    def steps(self, object_: ResourceGraph) -> tuple[str, ...]:
        """Whether objects were adopted is a question only where that was asked for."""
        conditions = super().steps(object_)
        if object_.spec.adopt is None:
            return tuple(step for step in conditions if step != "Adopted")
        return conditions

    def pace(self, object_: ResourceGraph) -> float:
        """Statuses of large graphs are worth their bytes less often."""
        run = self._runs.get(_key(object_))
        return run.pace if run is not None else PACE

    async def reconcile(self, object_: ResourceGraph, ctx: Context) -> Result:
        """Apply, look, prune."""
        run = self._run(object_)
        if ctx.asked:
            run.try_again()
        before, object_.status.phase = object_.status.phase, "Failed"
        try:
            ready, wake = await self._executed(object_, run, ctx)
            source = object_.spec.source_ref
            reporting.tell(
                run,
                ctx,
                ready="" if before == "Ready" else ready,
                source=(source.uid or "") if source is not None else "",
            )
            object_.status.phase = "Ready"
        except Waiting as verdict:
            object_.status.phase = reporting.phase(verdict)
            raise
        except Stalled:
            raise
        except Exception:
            # What was known stays, as it does in the conditions.
            object_.status.phase = before
            raise
        finally:
            reporting.tell_late(run, ctx)
            reporting.fill(object_, run)
        return Result(message=ready, after=reporting.until(wake))

    async def _executed(
        self, graph: ResourceGraph, run: Run, ctx: Context
    ) -> tuple[str, float | None]:
        """Take every step that can be taken; what `Ready` says, and when to look again."""
        later = reporting.Later()
        with ctx.step("Applied") as step:
            plan = self._plan(graph, run, ctx)
            work = await self._pass(graph, run, plan, ctx)
            prepared = await work.prepare()
            adoption = await self._adopted(work, prepared, ctx)
            blocked = await self._blocked(work, prepared, ctx)
            outcome = await work.execute(prepared)
        with later.collect(), ctx.step("Applied") as step:
            reporting.require_applied(outcome, plan)
            step.message = reporting.applied(plan)
        if blocked is not None:
            later.add(blocked)
        elif later.clean:
            with later.collect(), ctx.step("Pruned") as step:
                step.message = await work.prune(prepared)
        elif work.released:
            ctx.fails("Pruned", Waiting(reasons.PRUNE_AGREED, _AGREED))
        if graph.spec.adopt is not None and adoption is not None:
            with later.collect(), ctx.step("Adopted") as step:
                step.message = adoptions.told(graph.spec.adopt, adoption, run, outcome, work.actor)
        with later.collect(), ctx.step("Healthy") as step:
            step.message = reporting.healthy(outcome, plan)
        later.raise_worst(outcome.wake)
        return step.message, outcome.wake

    async def _blocked(self, work: GraphPass, prepared: Prepared, ctx: Context) -> Waiting | None:
        """Why nothing is pruned until somebody agrees to that: said before anything is made."""
        try:
            await work.brake(prepared)
        except Waiting as verdict:
            blocked = verdict
        except KubeError as error:
            blocked = Waiting(error.reason, f"whether to prune is not known: {error}", after=1.0)
        else:
            return None
        ctx.fails("Pruned", blocked)
        return blocked

    async def _adopted(self, work: GraphPass, prepared: Prepared, ctx: Context) -> Adoption | None:
        """Find out what joins the graph; that it could not be found out is said of that step."""
        try:
            return await work.adopt(prepared)
        except Exception:
            if work.graph.spec.adopt is not None:
                with ctx.step("Adopted"):
                    raise
            raise

    async def finalize(self, object_: ResourceGraph, ctx: Context) -> None:
        """Take everything away that the inventory holds; nothing else is needed for that."""
        run = self._run(object_)
        run.ending |= self._graphs.is_certain(_key(object_), object_.metadata.resource_version)
        try:
            await self._finalizer.finalize(
                object_,
                run,
                ctx,
                lambda: self._scene(object_, run),
                claimed=lambda ref: claims.is_claimed(object_, ref, self._graphs),
            )
        except Verdict:
            object_.status.phase = "Executing"
            raise
        finally:
            if len(run.inventory):
                reporting.tell_late(run, ctx)
            else:
                reporting.tell(run, ctx)
            reporting.fill(object_, run)

    def forget(self, key: Key) -> None:
        """A graph is gone, and so is what was remembered of it."""
        run = self._runs.pop(key, None)
        if run is not None:
            self._targets.forget(run.graph)
            self._handover.drop(run.graph)

    def reset(self) -> None:
        """Another replica leads."""
        self._runs.clear()
        self._handover.clear()
        self._targets.reset()

    def _run(self, graph: ResourceGraph) -> Run:
        """What is remembered of a graph; from its status when there is nothing else."""
        key = _key(graph)
        run, stored = self._runs.get(key), graph.status.inventory
        if run is None or run.graph != graph.metadata.uid or stored not in run.known:
            # Nothing is remembered, or the memory began with a list from the past: what was stored
            # since then would be lost, and its objects with it.
            run = self._runs[key] = resumed(
                graph.metadata.uid,
                key.namespace,
                stored,
                graph.status.node_status,
                clock=asyncio.get_running_loop().time(),
                now=reporting.now(),
            )
            run.braked = _is_braked(graph)
        run.known = [stored]
        return run

    def _plan(self, graph: ResourceGraph, run: Run, ctx: Context) -> Plan:
        """What is to be done; a graph that cannot be executed is refused before anything is."""
        if not graph.spec.nodes and not graph.spec.allow_empty:
            raise Stalled(
                reasons.INVALID_GRAPH,
                "the graph has no nodes, which would delete everything: set allowEmpty if that is "
                "meant",
            )
        limits.require_room(graph, self._graphs, self._rules.limits)
        generation = graph.metadata.generation
        new = run.generation != generation
        try:
            plan = run.plan(generation, graph.spec.nodes)
        except InvalidGraphError as error:
            raise Stalled(reasons.INVALID_GRAPH, str(error)) from error
        for warning in plan.warnings if new else ():
            ctx.tell(reasons.NEAR_LIMIT, warning, "Warning")
        return plan

    async def _pass(self, graph: ResourceGraph, run: Run, plan: Plan, ctx: Context) -> GraphPass:
        scene = await self._scene(graph, run)
        reach = Reach(
            namespace=run.namespace,
            confined=self._identities.rules.mode == "confined" and not scene.actor.impersonated,
            operator_namespace=self._rules.namespace,
            accounts=made_accounts(_made(plan, run), run.namespace),
        )
        return GraphPass(
            graph=graph,
            run=run,
            plan=plan,
            target=scene.target,
            actor=scene.actor,
            scene=scene,
            reach=reach,
            cel=self._cel,
            ctx=ctx,
            lives=lambda uid: bool(self._graphs.by(claims.UID, uid)),
            agreements=lambda: self._agreements(graph),
            handed=lambda: self._handed(graph),
        )

    def _handed(self, graph: ResourceGraph) -> Parts:
        """Sensitive parts that need not be read, where the right to read them is asked for."""
        if graph.spec.cluster_ref is not None or graph.spec.adopt is not None:
            return {}
        return self._handover.of(graph)

    async def _agreements(self, graph: ResourceGraph) -> dict[str, str]:
        """What people have agreed to, on the graph or on its source."""
        return graph.metadata.annotations | await self._identities.source_annotations(graph)

    async def _scene(self, graph: ResourceGraph, run: Run) -> Scene:
        target = await self._targets.of(graph)
        return Scene(
            graph=graph,
            run=run,
            target=target,
            actor=self._identities.actor(graph, target),
            graphs=self._graphs,
            own=self._own,
            answerable=lambda: self._identities.require(graph, target),
        )


def _made(plan: Plan, run: Run) -> Iterator[Node]:
    """Nodes whose objects the graph makes itself: not those that existed before."""
    adopted = {id_ for id_, record in run.records.items() if record.previous_managers}
    return (node for node in plan if node.id not in adopted)


def _is_braked(graph: ResourceGraph) -> bool:
    """Whether somebody has to agree to what a change takes away, by what is stored."""
    return any(
        one.type == "Pruned" and one.reason in {reasons.PRUNE_BLOCKED, reasons.PRUNE_AGREED}
        for one in graph.status.conditions
    )


def _key(graph: ResourceGraph) -> Key:
    return Key(graph.metadata.namespace or "", graph.metadata.name)
