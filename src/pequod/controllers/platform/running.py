"""The revision of a Transform that runs: stored, returned to, or given up for an earlier one."""

from collections.abc import Iterable
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
from pequod.base.durations import seconds, words
from pequod.controllers.frontend import ending, following
from pequod.controllers.frontend.compiling import Compiled
from pequod.controllers.frontend.revisions import Revisions
from pequod.controllers.frontend.storing import GRAPHS, GraphStore, Source
from pequod.controllers.platform.rendering import Rendered
from pequod.controllers.platform.rollouts import History, is_overdue, remaining
from pequod.graph.revisions import Stored, UnreadableRevisionError
from pequod.kube.cache import Cache, Unreadable
from pequod.kube.client import Client
from pequod.runtime.context import Context
from pequod.runtime.verdicts import Stalled, Waiting

BY_SOURCE = "source"


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

    def __init__(self, client: Client, graphs: Cache[ResourceGraph], revisions: Revisions) -> None:
        self.graphs = graphs
        self.revisions = revisions
        self._client = client
        self._store = GraphStore(client, graphs)
        graphs.add_index(BY_SOURCE, by_source)

    def find(self, source: Source) -> ResourceGraph | None:
        """The graph of a source, if there is one."""
        return self._store.find(source)

    def hash_of(self, source: Source) -> str:
        """What the stored graph was rendered to, or nothing."""
        found = self.graphs.get(source.key)
        if found is None or isinstance(found, Unreadable):
            return ""
        return found.spec.metadata.render_hash or ""

    def sources(self, source: Source) -> Iterable[Source]:
        """A source under every name that a graph of its has, or may have."""
        names = {key.name for key in self.graphs.by(BY_SOURCE, source.uid)} | {source.graph}
        return [replace(source, graph=name) for name in sorted(names)]

    def preview(self, transform: Transform, source: Source, made: Compiled) -> ResourceGraph:
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

    async def stored(
        self, transform: Transform, source: Source, rendered: Rendered, ctx: Context
    ) -> Running:
        """Have the newest rendering in the graph, or what it was given up for."""
        made = rendered.made
        assert made is not None, "what something is against is not stored"
        history = History.of(self.revisions.of(source), transform.status.revisions)
        await self._store.keep_secret(source, made, ctx)
        digest = (made.metadata.platform_ref or "").rpartition("@")[2]
        wanted = await self.revisions.keep(source, made, digest)
        is_new = history.find(wanted.number) is None
        history = history.with_known(wanted)
        target = self._target(transform, history, wanted)
        if target is wanted:
            graph = await self._put(transform, source, made, rendered.violations)
            history, target = self._judged(transform, history, wanted, graph, ctx)
        if target is not wanted:
            # Known to be given up before anything else runs: else the next pass would try again.
            transform.status.revisions = history.told()
            await ctx.save()
            graph = await self._put_back(transform, source, target, ctx)
        left = self._left(transform, history, wanted, graph, ctx)
        running = Running(graph=graph, stored=target, wanted=wanted, is_new=is_new, left=left)
        await self._settled(transform, source, history, running)
        return running

    async def returned(
        self, transform: Transform, source: Source, number: int, ctx: Context
    ) -> Running:
        """Have an earlier revision in the graph."""
        history = History.of(self.revisions.of(source), transform.status.revisions)
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

    def _target(self, transform: Transform, history: History, wanted: Stored) -> Stored:
        """What is to run: the newest, unless it was given up and that still counts."""
        if _returns(transform) and history.has_failed(wanted):
            return history.last_good(wanted) or wanted
        return wanted

    def _judged(
        self,
        transform: Transform,
        history: History,
        wanted: Stored,
        graph: ResourceGraph,
        ctx: Context,
    ) -> tuple[History, Stored]:
        """Whether the newest has proved itself, or is to be given up."""
        if following.is_ready(graph):
            return history.proved(wanted), wanted
        rollout = transform.spec.rollout
        if rollout is None or not rollout.auto_rollback or history.has_proved(wanted):
            return history, wanted
        late = is_overdue(graph.spec.metadata.rendered_at, seconds(rollout.deadline), ctx.now)
        good = history.last_good(wanted)
        if good is None or not (late or following.is_stalled(graph)):
            return history, wanted
        within = words(seconds(rollout.deadline))
        ctx.tell(
            reasons.ROLLED_BACK,
            f"revision {wanted.number} is not Ready within {within}: back to {good.number}",
            "Warning",
        )
        return history.given_up(wanted), good

    def _left(
        self,
        transform: Transform,
        history: History,
        wanted: Stored,
        graph: ResourceGraph,
        ctx: Context,
    ) -> float | None:
        """Seconds until the newest revision is given up, should it not become Ready."""
        rollout = transform.spec.rollout
        if rollout is None or not rollout.auto_rollback or history.last_good(wanted) is None:
            return None
        return remaining(graph.spec.metadata.rendered_at, seconds(rollout.deadline), ctx.now)

    async def _put(
        self,
        transform: Transform,
        source: Source,
        made: Compiled,
        violations: tuple[Violation, ...],
    ) -> ResourceGraph:
        spec = _spec(transform, source, made.nodes, made.metadata, violations)
        return await self._store.store(source, spec)

    async def _put_back(
        self, transform: Transform, source: Source, target: Stored, ctx: Context
    ) -> ResourceGraph:
        """Have a revision in the graph that was there before."""
        found = self._store.find(source)
        if found is not None and found.spec.metadata.render_hash == target.render_hash:
            nodes, metadata = found.spec.nodes, found.spec.metadata
            spec = _spec(transform, source, nodes, metadata, found.spec.violations)
            return await self._store.store(source, spec)
        try:
            kept = await self.revisions.load(source, target)
        except UnreadableRevisionError as error:
            raise Stalled(
                reasons.REVISION_NOT_FOUND,
                f"revision {target.number} (ControllerRevision {target.name}) cannot be used: "
                f"{error}; name another one in spec.rollbackTo",
            ) from error
        metadata = msgspec.structs.replace(kept.metadata, rendered_at=ctx.now)
        spec = _spec(transform, source, kept.nodes, metadata, ())
        return await self._store.store(source, spec)

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
