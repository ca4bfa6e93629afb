"""OPChain: the services of an OP Stack rollup, kept in step with its configuration Secrets."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

from pequod.api import reasons
from pequod.api.platform import ResourceGraph
from pequod.api.rollup import OPChain, Phase
from pequod.base.durations import seconds
from pequod.controllers.frontend import ending
from pequod.controllers.frontend.sources import WRITES_GRAPHS, source_of, woken_by_graphs
from pequod.controllers.frontend.storing import Source
from pequod.controllers.rollup import judging, metrics, reporting
from pequod.controllers.rollup.chronicle import Chronicle, Target
from pequod.controllers.rollup.compiling import parts_in
from pequod.controllers.rollup.components.chain import COMPONENTS, Chain, Component
from pequod.controllers.rollup.components.senders import SENDERS
from pequod.controllers.rollup.configuration import Configuration
from pequod.controllers.rollup.judging import Case
from pequod.controllers.rollup.loading import Loader
from pequod.controllers.rollup.observers import Observers
from pequod.controllers.rollup.origins import require_name, require_origin
from pequod.controllers.rollup.places import Places
from pequod.controllers.rollup.reporting import Judgements
from pequod.controllers.rollup.services import what_is_missing
from pequod.controllers.rollup.storing import Stages
from pequod.controllers.rollup.upgrading import Situation, Stage, is_stopped, is_under_way
from pequod.kube.cache import Cache
from pequod.kube.client import Client
from pequod.kube.objects import Key
from pequod.runtime.context import Context
from pequod.runtime.reconciler import Permission, Reconciler
from pequod.runtime.verdicts import Result, Stalled, Verdict, Waiting

BLOCK_WINDOW = 60.0
"""Seconds in which any chain makes a block, at the least."""
_BLOCKS = 20
"""How many blocks may be missing before a chain counts as standing still."""
_LOADING = frozenset({reasons.SECRET_NOT_FOUND, reasons.KEY_NOT_FOUND, reasons.CHECKING_L1})
_CONDITIONS = {one: f"{one.capitalize()}Ready" for one in COMPONENTS}


@dataclass(slots=True)
class _Memory:
    """What is remembered of a chain between two passes."""

    loaded: Configuration | None = field(default=None, repr=False)
    """The last one that was read, which L1 or the data may be at odds with."""
    configuration: Configuration | None = field(default=None, repr=False)
    """The last one that nothing was wrong with."""
    generation: int = 0
    ready_at: dict[Component, float] = field(default_factory=dict)
    """Since when programs are known to be as that generation of the graph has them."""


class OPChainReconciler(Reconciler[OPChain]):
    """Checks a configuration, compiles it, stores it in the order of an upgrade, and looks on."""

    kind = OPChain
    finalizer = "rollup.oplabs.io/opchain"
    permissions = (
        WRITES_GRAPHS,
        Permission(resources=("secrets",), verbs=("get", "list", "watch", "create", "delete")),
        Permission(resources=("services", "persistentvolumeclaims"), verbs=("get",)),
    )
    concurrency = 8
    triggers = (woken_by_graphs(OPChain),)
    quiet = frozenset({*_CONDITIONS.values(), "ConfigurationValid", "L2ServicesReady"})

    def __init__(
        self,
        own: Client,
        loader: Loader,
        stages: Stages,
        observers: Observers,
        places: Places,
        graphs: Cache[ResourceGraph],
    ) -> None:
        self._own = own
        self._loader = loader
        self._stages = stages
        self._observers = observers
        self._places = places
        self._graphs = graphs
        self._memory: dict[Key, _Memory] = {}
        self._going: set[str] = set()

    def attach(self, wake: Callable[[Key], None], cache: Cache[OPChain]) -> None:
        """Wake chains that something new is known of."""
        del cache
        self._observers.wake = wake

    async def reconcile(self, object_: OPChain, ctx: Context) -> Result:
        """Check, compile, store, and tell how the chain is doing."""
        source = source_of(object_)
        memory = self._memory.setdefault(ctx.key, _Memory())
        before = object_.status.phase
        verdict: Verdict | None = None
        stage: Stage | None = None
        try:
            graph, stage = await self._stored(object_, source, memory, ctx)
        except Verdict as problem:
            object_.status.phase = _loading(problem)
            running = self._stages.find(source)
            if running is None:
                raise
            await self._stages.resume(source, ctx)
            object_.status.phase = before
            verdict, graph = problem, running
        else:
            object_.status.l1_contract_addresses = object_.spec.l1.contract_addresses
        case = await self._case(object_, graph, memory, ctx)
        judged = self._judged(case, ctx)
        upgrading = is_under_way(parts_in(graph.spec.nodes)) or bool(stage and stage.waits)
        object_.status.phase = reporting.phase(object_, case, judged, upgrading=upgrading)
        reporting.report(object_, judged, case.seen)
        metrics.measure(ctx.key, case.seen, case.now)
        self._observers.settle(ctx.key, settled=all(one.ok for one in judged.values()))
        if object_.status.phase == "Running" and before != "Running":
            ctx.tell(reasons.RUNNING, judging.heads(case))
        self._require_services(graph, stage, verdict, judged, ctx)
        return Result(message=f"{object_.status.phase}: {judging.heads(case)}")

    async def _stored(
        self, chain: OPChain, source: Source, memory: _Memory, ctx: Context
    ) -> tuple[ResourceGraph, Stage]:
        """Have the configuration in the graph, or the next stage on the way there."""
        found = self._stages.find(source)
        with ctx.step("ConfigurationValid") as step:
            require_name(chain)
            configuration = memory.loaded = await self._loader.load(chain, source, ctx)
            seen = await self._watched(chain, configuration, found, ctx)
            if found is not None:
                # What an operator before this one has said is not taken back unseen.
                await self._observers.first_look(ctx.key)
            step.message = _require_l1(chain, seen)
            await require_origin(self._own, chain, configuration, found, ctx.now.timestamp())
            memory.configuration = configuration
        made = Chain(ctx.key.name, ctx.key.namespace, chain.spec, configuration)
        generation = chain.metadata.generation
        now = _situation(found, seen, memory)
        graph, stage = await self._stages.store(made, generation, source, now, ctx)
        before = found.spec.metadata.render_hash if found is not None else None
        if stage.waits and before not in {None, graph.spec.metadata.render_hash}:
            ctx.tell(reasons.UPGRADING, f"waits until {stage.waits}")
        return graph, stage

    async def _case(
        self, chain: OPChain, graph: ResourceGraph, memory: _Memory, ctx: Context
    ) -> Case:
        """Everything that is known of a chain that has a graph."""
        known = memory.configuration
        seen = await self._watched(chain, memory.loaded, graph, ctx)
        if seen.geth.trouble or seen.node.trouble:
            self._places.forget(ctx.key)
        was = {one.type: one for one in chain.status.conditions}
        node, batcher = was.get("NodeReady"), was.get("BatcherReady")
        return Case(
            name=ctx.key.name,
            graph=graph,
            seen=seen,
            now=_clock(),
            genesis_hash=known.genesis_hash if known else "",
            block_window=max(BLOCK_WINDOW, _BLOCKS * (known.block_time if known else 0)),
            stall_window=seconds(chain.spec.health.stall_window),
            funds_hours=chain.spec.health.funds_hours,
            made_blocks=node is not None and node.status == "True",
            was_stalled=batcher is not None and batcher.reason == reasons.SAFE_HEAD_STALLED,
        )

    async def _watched(
        self,
        chain: OPChain,
        known: Configuration | None,
        graph: ResourceGraph | None,
        ctx: Context,
    ) -> Chronicle:
        """What is known of a chain, which is looked at from now on."""
        ids = graph.status.node_status if graph is not None else {}
        urls = await self._places.urls(ctx.key, geth="geth" in ids, node="node" in ids)
        signers = {
            one: account.address
            for one in SENDERS
            if known is not None and (account := getattr(known, one)) is not None
        }
        return self._observers.watch(
            ctx.key,
            Target(
                l1=known.l1_url if known else "",
                l1_chain_id=chain.spec.l1.chain_id,
                geth=urls.geth,
                engine=urls.engine,
                node=urls.node,
                genesis_hash=known.genesis_hash if known else "",
                jwt=known.jwt if known else "",
                signers=signers,
            ),
        )

    def _judged(self, case: Case, ctx: Context) -> Judgements:
        """Judge every program that is there; the condition of each says how."""
        parts = parts_in(case.graph.spec.nodes)
        judged: Judgements = {}
        for component in COMPONENTS:
            if component not in parts:
                with ctx.step(_CONDITIONS[component]) as step:
                    step.reason, step.message = reasons.DISABLED, "not asked for"
                continue
            if component == "geth":
                found = judging.judge_geth(case)
            elif component == "node":
                found = judging.judge_node(case)
            else:
                stopped = is_stopped(parts, component)
                if component == "batcher" and not judging.is_ready(case.graph, component):
                    case.seen.progress.safe.excuse(case.now)
                found = judging.judge_sender(case, component, stopped=stopped)
            judged[component] = found
            with suppress(Verdict), ctx.step(_CONDITIONS[component]) as step:
                step.message = found.message
                if not found.ok:
                    raise Waiting(found.reason, found.message)
        return judged

    def _require_services(
        self,
        graph: ResourceGraph,
        stage: Stage | None,
        verdict: Verdict | None,
        judged: Judgements,
        ctx: Context,
    ) -> None:
        """End with the worst that there is to say; returns when everything is as it should be."""
        with suppress(Waiting), ctx.step("L2ServicesReady") as step:
            problem = what_is_missing(graph, stage, judged)
            if problem is not None:
                verdict = verdict or problem
                raise problem
            step.message = f"{len(judged)} programs run and make progress"
        if verdict is not None:
            raise _while_running(verdict)

    async def rest(self, object_: OPChain) -> None:
        """A chain is left alone, and so is its graph."""
        await self._stages.suspend(source_of(object_))
        self.forget(Key(object_.metadata.namespace or "", object_.metadata.name))

    async def finalize(self, object_: OPChain, ctx: Context) -> None:
        """End its graph: what sends goes first, what it reads from last."""
        source = source_of(object_)
        self._observers.forget(ctx.key)
        await self._stages.have_volume_end(source, object_.spec.deletion_policy)
        await ending.end_graph(self._own, self._graphs, source, "Delete", going=self._going)
        self._going = {one for one in self._going if not one.startswith(source.uid)}
        await self._stages.remove_secrets(source)
        kept = ", its volume is left behind" if object_.spec.deletion_policy == "Orphan" else ""
        ctx.tell(reasons.PRUNED, f"ResourceGraph {source.key} is gone with its objects{kept}")

    def forget(self, key: Key) -> None:
        """A chain is gone, and so is what was remembered of it."""
        self._loader.forget(key)
        self._stages.forget(key)
        self._observers.forget(key)
        self._places.forget(key)
        self._memory.pop(key, None)
        metrics.forget(key)

    def reset(self) -> None:
        """Another replica leads: it looks at the chains from now on."""
        for key in [*self._memory]:
            self.forget(key)


def _clock() -> float:
    return asyncio.get_running_loop().time()


def _require_l1(chain: OPChain, seen: Chronicle) -> str:
    """L1 is what the configuration says it is; one that does not answer is given the benefit."""
    if seen.l1_chain_id is None:
        if not seen.l1.trouble:
            raise Waiting(reasons.CHECKING_L1, "L1 is being asked for its chain id", after=1.0)
        return f"L1 has not told its chain id: {seen.l1.trouble}"
    wanted = chain.spec.l1.chain_id
    if seen.l1_chain_id != wanted:
        raise Waiting(
            reasons.WRONG_L1,
            f"L1 says that its chain id is {seen.l1_chain_id}, but spec.l1.chainId and rollup.json "
            f"say {wanted}: the URL leads to another chain",
        )
    return f"chain {chain.spec.l2.chain_id} on L1 chain {wanted}"


def _situation(found: ResourceGraph | None, seen: Chronicle, memory: _Memory) -> Situation:
    """What is known of the chain as it is stored: what it did before that does not count."""
    generation = found.metadata.generation if found is not None else 0
    if generation != memory.generation:
        memory.generation, memory.ready_at = generation, {}
    for one in COMPONENTS:
        if found is not None and judging.is_ready(found, one):
            memory.ready_at.setdefault(one, _clock())
        else:
            memory.ready_at.pop(one, None)
    never = float("inf")
    return Situation(
        is_ready=lambda one: one in memory.ready_at,
        answers=seen.geth.at is not None and seen.geth.at > memory.ready_at.get("geth", never),
        advances=seen.progress.unsafe.moved_after(memory.ready_at.get("node", never)),
    )


def _loading(problem: Verdict) -> Phase:
    return "ConfigLoading" if problem.reason in _LOADING else "Error"


def _while_running(verdict: Verdict) -> Verdict:
    """A problem of a configuration while another one is in use."""
    if isinstance(verdict, Stalled):
        return Stalled(verdict.reason, f"{verdict.message}; what runs stays as it is")
    return verdict
