"""The revision of a Transform that runs: stored, returned to, or given up for an earlier one."""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace

import msgspec

from pequod.api import reasons
from pequod.api.graph import GraphMetadata, Node, Violation
from pequod.api.meta import ObjectMeta
from pequod.api.platform import (
    ResourceGraph,
    ResourceGraphSpec,
    ResourceGraphStatus,
    Transform,
)
from pequod.base.durations import words
from pequod.controllers.frontend import ending, following
from pequod.controllers.frontend.compiling import Compiled
from pequod.controllers.frontend.handover import Handover
from pequod.controllers.frontend.revisions import Revisions
from pequod.controllers.frontend.storing import GRAPHS, GraphStore, Source
from pequod.controllers.platform.looks import Looks
from pequod.controllers.platform.rendering import Rendered
from pequod.controllers.platform.rollouts import History, Trial
from pequod.graph.revisions import Kept, Stored, UnreadableRevisionError
from pequod.kube.cache import Cache
from pequod.kube.client import Client
from pequod.kube.objects import Key
from pequod.runtime.context import Context
from pequod.runtime.controller import is_suspended
from pequod.runtime.verdicts import Stalled, Waiting

BY_SOURCE = "source"
LOOKED = 5.0
"""Seconds after which a graph that is to be looked at is thought of, should it say nothing."""


def by_source(graph: ResourceGraph) -> tuple[str, ...]:
    """The index that finds the graphs of a source."""
    source = graph.spec.source_ref
    return (source.uid,) if source is not None and source.uid else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """The graph of a Transform, and which revision it holds."""

    graph: ResourceGraph
    stored: Stored
    wanted: Stored
    """What was rendered last; another one than `stored` when it was given up."""
    is_new: bool = False
    """Whether the revision was made in this pass."""
    left: float | None = None
    """Seconds that it has to become Ready; None when nothing depends on that."""

    @property
    def told(self) -> str:
        """What `Rendered` says."""
        count = len(self.graph.spec.nodes)
        return f"revision {self.stored.number}: {count} object{'' if count == 1 else 's'}"

    def require_hope(self, verdict: Waiting) -> None:
        """Stop when what was returned to fails as well: there is nothing else to go to."""
        if self.stored.number != self.wanted.number and self.graph.status.phase == "Failed":
            raise Stalled(
                reasons.ROLLBACK_FAILED,
                f"revision {self.wanted.number} was given up, and revision {self.stored.number} is "
                f"not Ready either: {verdict.message}; mend that, or change the input or module",
                after=verdict.after,
            ) from verdict

    def require_wanted(self) -> None:
        """Say that it is not what was asked for, if it is not."""
        if self.stored.number != self.wanted.number:
            raise Stalled(
                reasons.ROLLED_BACK,
                f"revision {self.wanted.number} did not become Ready in time and was given up; "
                f"revision {self.stored.number} is in use. Change the input or the module to try "
                "again",
            )


class Runs:
    """Stores what is to run, and keeps what ran."""

    def __init__(
        self,
        client: Client,
        graphs: Cache[ResourceGraph],
        revisions: Revisions,
        handover: Handover,
    ) -> None:
        self.graphs = graphs
        self.revisions = revisions
        self._client = client
        self._store = GraphStore(client, graphs, handover)
        self._looks = Looks(client, graphs)
        graphs.add_index(BY_SOURCE, by_source)

    def find(self, source: Source) -> ResourceGraph | None:
        """The graph of a source, if there is one."""
        return self._store.find(source)

    def hash_of(self, source: Source) -> str:
        """What the stored graph was rendered to, or nothing."""
        found = self._store.in_use(source)
        return found.spec.metadata.render_hash or "" if found is not None else ""

    def sources(self, source: Source) -> Iterable[Source]:
        """A source under every name that a graph of its has, or may have."""
        names = {key.name for key in self.graphs.by(BY_SOURCE, source.uid)} | {source.graph}
        return [replace(source, graph=name) for name in sorted(names)]

    @staticmethod
    def preview(transform: Transform, source: Source, made: Compiled) -> ResourceGraph:
        """The graph that there would be, for those who only want to look."""
        metadata = ObjectMeta(name=source.graph, namespace=source.namespace)
        spec = _spec(transform, source, made.nodes, made.metadata, ())
        return ResourceGraph(
            api_version=GRAPHS.api_version,
            kind=GRAPHS.kind,
            metadata=metadata,
            spec=spec,
            status=ResourceGraphStatus(),
        )

    def returned_to(self, transform: Transform, source: Source) -> Running | None:
        """What runs instead of the newest revision since that was given up, if something does."""
        graph = self._store.in_use(source)
        history = self._history(transform, source)
        newest = history.newest
        if graph is None or newest is None or not history.has_failed(newest):
            return None
        held = history.holding(graph.spec.metadata.render_hash)
        if held is None or held.number == newest.number:
            return None
        return Running(graph=graph, stored=held, wanted=newest)

    async def judged(self, transform: Transform, source: Source, ctx: Context) -> float | None:
        """Give the newest revision up if its time is over; how many seconds it has if it is not.

        What is stored decides alone: whoever is away, wrong or only asked for a plan by now, the
        way back is not theirs to block.
        """
        graph = self._store.in_use(source)
        if graph is None or is_suspended(graph) or graph.metadata.deletion_timestamp is not None:
            return None
        history = self._history(transform, source)
        trial = Trial.of(history, graph.spec.metadata, transform.spec.rollout)
        if trial is None:
            return None
        if following.is_ready(graph):
            transform.status.revisions = history.proved(trial.wanted).told()
            return None
        if not history.has_failed(trial.wanted):
            if not (trial.is_over(ctx.now) or following.is_stalled(graph)):
                self._looks.forget(ctx.key)
                return trial.left(ctx.now)
            if not await self._looks.taken(ctx.key, graph):
                return LOOKED
            await self._give_up(transform, history, trial, ctx)
        # What cannot be returned to is told when it is stored; a new rendering may help before.
        with suppress(Stalled):
            await self._bring_back(source, graph, trial.good, ctx)
        return None

    async def _give_up(
        self, transform: Transform, history: History, trial: Trial, ctx: Context
    ) -> None:
        ctx.tell(
            reasons.ROLLED_BACK,
            f"revision {trial.wanted.number} is not Ready within {words(trial.deadline)}: "
            f"back to {trial.good.number}",
            "Warning",
        )
        # Known to be given up before anything else runs: else the next pass would try again.
        transform.status.revisions = history.given_up(trial.wanted).told()
        await ctx.save()
        self._looks.forget(ctx.key)

    async def stored(
        self, transform: Transform, source: Source, rendered: Rendered, ctx: Context
    ) -> Running:
        """Have the newest rendering in the graph, or what it was given up for."""
        made = rendered.made
        assert made is not None, "what something is against is not stored"
        history = self._history(transform, source)
        await self._store.keep_secret(source, made, ctx)
        digest = (made.metadata.platform_ref or "").rpartition("@")[2]
        wanted = await self.revisions.keep(source, made, digest)
        is_new = history.find(wanted.number) is None
        history = history.with_known(wanted)
        target = self._target(transform, history, wanted)
        if target is wanted:
            graph = await self._put(transform, source, rendered, ctx)
        else:
            graph = await self._put_back(transform, source, target, ctx)
        left = _left(transform, history, graph, ctx)
        running = Running(graph=graph, stored=target, wanted=wanted, is_new=is_new, left=left)
        await self._settled(transform, source, history, running)
        return running

    async def returned(
        self, transform: Transform, source: Source, number: int, ctx: Context
    ) -> Running:
        """Have an earlier revision in the graph."""
        history = self._history(transform, source)
        target = history.find(number)
        if target is None:
            known = ", ".join(str(one.number) for one in history.known) or "none"
            raise Stalled(
                reasons.REVISION_NOT_FOUND,
                f"there is no revision {number} to return to; there are {known}",
            )
        graph = await self._put_back(transform, source, target, ctx)
        running = Running(graph=graph, stored=target, wanted=target)
        await self._settled(transform, source, history, running)
        return running

    async def suspend(self, source: Source) -> None:
        """Have the graph left alone as well."""
        await self._store.suspend(source)

    async def resume(self, source: Source, ctx: Context) -> None:
        """Have what is stored executed as it is, if it was left alone until now."""
        await self._store.resume(source, ctx.now)

    def forget(self, key: Key) -> None:
        """A Transform is gone."""
        self._looks.forget(key)

    def reset(self) -> None:
        """Another replica leads."""
        self._looks.clear()

    def _history(self, transform: Transform, source: Source) -> History:
        return History.of(self.revisions.of(source), transform.status.revisions)

    def _target(self, transform: Transform, history: History, wanted: Stored) -> Stored:
        """What is to run: the newest, unless it was given up and that still counts."""
        if _returns(transform) and history.has_failed(wanted):
            return history.last_good(wanted) or wanted
        return wanted

    async def _put(
        self, transform: Transform, source: Source, rendered: Rendered, ctx: Context
    ) -> ResourceGraph:
        """Have a rendering in the graph; its time begins when it gets there, not before."""
        made = rendered.made
        assert made is not None, "what something is against is not stored"
        metadata = msgspec.structs.replace(made.metadata, rendered_at=ctx.now)
        spec = _spec(transform, source, made.nodes, metadata, rendered.violations)
        return await self._store.store(source, spec, made)

    async def _put_back(
        self, transform: Transform, source: Source, target: Stored, ctx: Context
    ) -> ResourceGraph:
        """Have a revision in the graph that was there before."""
        found = self._store.find(source)
        if found is not None and found.spec.metadata.render_hash == target.render_hash:
            nodes, metadata = found.spec.nodes, found.spec.metadata
            spec = _spec(transform, source, nodes, metadata, found.spec.violations)
            return await self._store.store(source, spec)
        kept = await self._loaded(source, target, ctx)
        return await self._store.store(
            source, _spec(transform, source, kept.nodes, kept.metadata, ())
        )

    async def _bring_back(
        self, source: Source, graph: ResourceGraph, target: Stored, ctx: Context
    ) -> None:
        """Have a revision in the graph, and everything else as it is: the spec may be wrong."""
        kept = await self._loaded(source, target, ctx)
        spec = msgspec.structs.replace(
            graph.spec, nodes=kept.nodes, metadata=kept.metadata, violations=()
        )
        await self._store.store(source, spec)

    async def _loaded(self, source: Source, target: Stored, ctx: Context) -> Kept:
        """What a revision holds, as it is returned to now."""
        try:
            kept = await self.revisions.load(source, target)
        except UnreadableRevisionError as error:
            raise Stalled(
                reasons.REVISION_NOT_FOUND,
                f"revision {target.number} (ControllerRevision {target.name}) cannot be used: "
                f"{error}; name another one in spec.rollbackTo",
            ) from error
        return replace(kept, metadata=msgspec.structs.replace(kept.metadata, rendered_at=ctx.now))

    async def _settled(
        self, transform: Transform, source: Source, history: History, running: Running
    ) -> None:
        """Take down what is known of all revisions, and remove what is too much."""
        if following.is_ready(running.graph):
            history = history.proved(running.stored)
        good = history.last_good(running.wanted)
        in_use = {running.stored.number, running.wanted.number}
        await self.revisions.trim(source, in_use | ({good.number} if good else set()))
        left = {one.number for one in self.revisions.of(source)} | in_use
        known = tuple(one for one in history.known if one.number in left)
        transform.status.revisions = History(known, history.marks).told()
        transform.status.plan = None
        await self._end_others(source)

    async def _end_others(self, source: Source) -> None:
        """End graphs of the Transform on clusters that it no longer names."""
        for one in self.sources(source):
            if one.graph != source.graph:
                await ending.delete_graph(self._client, self.graphs, one)


def _returns(transform: Transform) -> bool:
    rollout = transform.spec.rollout
    return rollout is not None and rollout.auto_rollback


def _left(
    transform: Transform, history: History, graph: ResourceGraph, ctx: Context
) -> float | None:
    """Seconds until the newest revision is given up, should it not become Ready."""
    trial = Trial.of(history, graph.spec.metadata, transform.spec.rollout)
    if trial is None:
        return None
    return LOOKED if trial.is_over(ctx.now) else trial.left(ctx.now)


def _spec(
    transform: Transform,
    source: Source,
    nodes: tuple[Node, ...],
    metadata: GraphMetadata,
    violations: tuple[Violation, ...],
) -> ResourceGraphSpec:
    asked = transform.spec
    return ResourceGraphSpec(
        nodes=nodes,
        source_ref=source.reference,
        metadata=metadata,
        violations=violations,
        adopt=asked.adopt,
        deletion_policy=asked.deletion_policy,
        service_account_name=asked.service_account_name,
        cluster_ref=asked.cluster_ref,
    )
