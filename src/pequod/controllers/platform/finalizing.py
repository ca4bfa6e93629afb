"""The end of a graph: everything that its inventory holds is taken away, or let go of."""

import asyncio
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass

import structlog

from pequod.api import reasons
from pequod.api.platform import ResourceGraph
from pequod.base.durations import words
from pequod.controllers.platform import reporting
from pequod.controllers.platform.removing import Scene, still_there
from pequod.graph.inventory import is_left
from pequod.graph.model import InvalidGraphError, Plan, Ref, checked
from pequod.graph.prune import listed
from pequod.graph.run import Run
from pequod.kube.client import Client
from pequod.kube.errors import ForbiddenError
from pequod.runtime.context import Context
from pequod.runtime.events import Happening, Recorder
from pequod.runtime.verdicts import Verdict

REFUSALS = frozenset(
    {
        reasons.ACCOUNT_NOT_FOUND,
        reasons.BAD_CREDENTIALS,
        reasons.CLUSTER_NOT_READY,
        reasons.FORBIDDEN,
        reasons.IDENTITY_CHANGED,
        reasons.TIMED_OUT,
        reasons.UNAUTHORIZED,
        reasons.UNREACHABLE,
        reasons.UNTRUSTED_SERVER,
    }
)
"""Why objects cannot be deleted although nothing holds them: this may stay so for ever."""

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class Finalizer:
    """Ends graphs."""

    own: Client
    recorder: Recorder
    namespace: str
    account: str
    """The operator's own: what was left behind is told where its people look."""
    abandon_after: float

    async def finalize(
        self,
        graph: ResourceGraph,
        run: Run,
        ctx: Context,
        scene: Callable[[], Awaitable[Scene]],
        *,
        claimed: Callable[[Ref], bool],
    ) -> None:
        """Take everything away; raises a verdict while something is left."""
        policy = graph.spec.deletion_policy
        if all(
            is_left(entry.deletion_policy, policy) and not claimed(Ref.of(entry.id))
            for entry in run.inventory
        ):
            _tell_orphans(run, ctx)
            return
        try:
            where = await scene()
            await where.answerable()
        except Verdict as verdict:
            await self._without_anybody(graph, run, verdict)
            return
        await self._taken_away(graph, run, where)

    async def _without_anybody(self, graph: ResourceGraph, run: Run, verdict: Verdict) -> None:
        """Nobody may act for the graph any more; perhaps nobody has to."""
        refs = [Ref.of(entry.id) for entry in run.inventory]
        if graph.spec.cluster_ref is None:
            await Scene.release(self.own, run, refs)
        if not len(run.inventory):
            return
        if not self._is_overdue(run, refused=verdict.reason in REFUSALS):
            raise verdict
        self._abandon(graph, run, [Ref.of(entry.id) for entry in run.inventory], str(verdict))

    async def _taken_away(self, graph: ResourceGraph, run: Run, scene: Scene) -> None:
        entries = run.inventory.entries()
        kinds = await scene.kinds_of(entries)
        scene.target.children.need(run.graph, kinds)
        removed = await scene.take_away(entries, _plan_of(graph))
        reporting.note_removed(run, removed)
        forbidden = [ref for ref, error in removed.failed.items() if _is_forbidden(error)]
        for ref in await scene.release_terminating(forbidden):
            removed.failed.pop(ref)
        refused = {r: error for r, error in removed.failed.items() if error.reason in REFUSALS}
        if self._is_overdue(run, refused=bool(refused)):
            self._abandon(graph, run, refused, str(next(iter(refused.values()))))
            for ref in refused:
                removed.failed.pop(ref)
        if not removed.complete:
            raise still_there(removed, run, doing=reasons.FINALIZING)

    def _is_overdue(self, run: Run, *, refused: bool) -> bool:
        """Whether nothing could be deleted for too long, counted from the first refusal."""
        if not refused:
            run.refused_since = None
            return False
        now = asyncio.get_running_loop().time()
        if run.refused_since is None:
            run.refused_since = now
        return now - run.refused_since >= self.abandon_after

    def _abandon(self, graph: ResourceGraph, run: Run, refs: Collection[Ref], why: str) -> None:
        """Give up on objects that cannot be deleted, where those who run the platform see it."""
        name = f"{graph.metadata.namespace}/{graph.metadata.name}"
        _log.warning("objects left behind", graph=name, objects=[str(ref) for ref in refs])
        note = (
            f"ResourceGraph {name} was deleted, but for {words(self.abandon_after)} its objects "
            f"could not be: {listed([*refs], 20)} {'is' if len(refs) == 1 else 'are'} left behind; "
            f"delete what is left by hand, the operator's log has all names. The last try: {why}"
        )
        self.recorder.record(
            Happening(
                about={
                    "apiVersion": "v1",
                    "kind": "ServiceAccount",
                    "name": self.account,
                    "namespace": self.namespace,
                    "uid": graph.metadata.uid,
                },
                namespace=self.namespace,
                type="Warning",
                reason=reasons.ABANDONED,
                action="Finalize",
                note=note,
                distinct=True,
            )
        )
        for ref in refs:
            run.inventory.drop(ref.id)


def _tell_orphans(run: Run, ctx: Context) -> None:
    refs = [Ref.of(entry.id) for entry in run.inventory if entry.uid]
    if refs:
        ctx.tell(reasons.ORPHANED, f"left behind: {listed(refs, 20)}")


def _plan_of(graph: ResourceGraph) -> Plan | None:
    """The order of a graph, if it is one that can be understood."""
    try:
        return checked(graph.spec.nodes)
    except InvalidGraphError:
        return None


def _is_forbidden(error: Exception) -> bool:
    return isinstance(error, ForbiddenError)
