"""Taking objects of a graph away: what a change leaves over, and everything at the end."""

import asyncio
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass, replace
from datetime import datetime

import msgspec

from pequod.api import reasons
from pequod.api.graph import InventoryEntry
from pequod.api.meta import ObjectMeta
from pequod.api.platform import ResourceGraph
from pequod.base.durations import words
from pequod.controllers.platform.claims import heir
from pequod.controllers.platform.identity import Actor
from pequod.controllers.platform.targets import Target
from pequod.graph.advance import RETRY
from pequod.graph.model import Plan, Ref
from pequod.graph.prune import listed
from pequod.graph.removal import Doomed, Removal, Removed
from pequod.graph.run import Run
from pequod.kube.cache import Cache
from pequod.kube.client import Client
from pequod.kube.errors import ForbiddenError, NotFoundError, UnknownKindError
from pequod.kube.kinds import NAMESPACES, Kind
from pequod.runtime.verdicts import Waiting

REFUSED_AGAIN = 30.0
"""Seconds after which a delete is tried again that was not allowed."""
_GRAPHS = Kind.of(ResourceGraph)


class _Found(msgspec.Struct, frozen=True):
    metadata: ObjectMeta


class _Phase(msgspec.Struct, frozen=True):
    phase: str = ""


class _Namespace(msgspec.Struct, frozen=True):
    status: _Phase = _Phase()


class GraphChangedError(Exception):
    """The graph is not what it was taken for: nothing is deleted on such grounds."""

    reason = reasons.CONFLICT


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """Where objects of a graph are taken away, and in whose name."""

    graph: ResourceGraph
    run: Run
    target: Target
    actor: Actor
    graphs: Cache[ResourceGraph]
    own: Client
    """The operator's own, for looking at graphs and namespaces."""
    answerable: Callable[[], Awaitable[None]]
    """Raises a verdict when nobody answers for the graph."""

    async def take_away(
        self,
        entries: Collection[InventoryEntry],
        plan: Plan | None,
        *,
        also: frozenset[Kind] = frozenset(),
    ) -> Removed:
        """Delete, hand over or let go of objects, as far as that is possible now.

        `also` are the kinds of what stays.
        """
        doomed = [await self._doomed(entry) for entry in entries]
        kinds = frozenset(one.kind for one in doomed if one.kind is not None)
        self.target.children.need(self.run.graph, kinds | also)
        watched = await self.target.watched(kinds)
        known = [one for one in doomed if one.kind not in watched.failed]
        known = [await self._seen(one, watched.kinds) for one in known]
        removal = Removal(
            self.run,
            known,
            plan,
            client=self.actor.client,
            children=self.target.children,
            confirm=self.confirm,
        )
        removed = await removal.run()
        removed.failed |= {
            one.ref: watched.failed[one.kind]
            for one in doomed
            if one.kind is not None and one.kind in watched.failed
        }
        self.run.failed_removals = self.run.failed_removals + 1 if removed.failed else 0
        return removed

    async def _doomed(self, entry: InventoryEntry) -> Doomed:
        ref = Ref.of(entry.id)
        api_version = f"{ref.group}/{entry.version}" if ref.group else entry.version
        try:
            kind = await self.target.discovery.find(api_version, ref.kind)
        except UnknownKindError:
            # The API server itself says that there is no such kind, so there is no such object.
            kind = None
        policy = entry.deletion_policy or self.graph.spec.deletion_policy
        return Doomed(
            entry=entry,
            ref=ref,
            kind=kind,
            child=None,
            orphan=policy == "Orphan",
            heir=heir(self.graph, ref, self.graphs),
        )

    async def _seen(self, doomed: Doomed, watched: frozenset[Kind]) -> Doomed:
        """With the live object, which may ask to be spared."""
        if doomed.kind is None:
            return doomed
        if doomed.kind in watched:
            child = self.target.children.get(doomed.kind, doomed.ref, self.run.graph)
            return replace(doomed, child=child, watched=True)
        ref = doomed.ref
        try:
            answer = await self.actor.client.get_bytes(
                doomed.kind, ref.name, namespace=ref.namespace or None
            )
        except (NotFoundError, ForbiddenError):
            # The delete will find out the same.
            return doomed
        child = self.target.children.read(answer)
        ours = child.metadata.uid == doomed.entry.uid or child.metadata.graph == self.run.graph
        return replace(doomed, child=child if ours else None)

    async def confirm(self) -> None:
        """Look at the graph itself: it must be what we take it for, and somebody's."""
        await self.answerable()
        if self.run.ending:
            return
        metadata = self.graph.metadata
        try:
            found = await self.own.get(
                _GRAPHS, metadata.name, namespace=metadata.namespace, type=_Found
            )
        except NotFoundError as error:
            raise GraphChangedError("the graph is gone; nothing is deleted") from error
        now = found.metadata
        deleted = (now.deletion_timestamp is None) is (metadata.deletion_timestamp is None)
        if now.uid != metadata.uid or now.generation != metadata.generation or not deleted:
            raise GraphChangedError("the graph has changed meanwhile; it is looked at again")
        self.run.ending = now.deletion_timestamp is not None

    async def release_terminating(self, refs: Collection[Ref]) -> list[Ref]:
        """Let go of what stands in namespaces that are being deleted: it goes with them."""
        return await self.release(self.target.client, self.run, refs)

    @staticmethod
    async def release(client: Client, run: Run, refs: Collection[Ref]) -> list[Ref]:
        """The same, for a graph that nobody may act for any more."""
        released = []
        for namespace in {ref.namespace for ref in refs if ref.namespace}:
            if await _is_terminating(client, namespace):
                released += [ref for ref in refs if ref.namespace == namespace]
        for ref in released:
            run.inventory.drop(ref.id)
        return released


async def _is_terminating(client: Client, namespace: str) -> bool:
    try:
        found = await client.get(NAMESPACES, namespace, type=_Namespace)
    except NotFoundError:
        return True
    except ForbiddenError:
        return False
    return found.status.phase == "Terminating"


def still_there(removed: Removed, run: Run, *, doing: reasons.Reason) -> Waiting:
    """What is waited for before everything is gone."""
    if removed.failed:
        ref, error = next(iter(removed.failed.items()))
        more = len(removed.failed) - 1
        others = f" (and {more} more objects)" if more else ""
        refused = isinstance(error, ForbiddenError)
        after = REFUSED_AGAIN if refused else RETRY.delay(run.failed_removals)
        return Waiting(error.reason, f"{ref} could not be deleted{others}: {error}", after=after)
    parts = [f"{ref} is {held}" for ref, held in [*removed.going.items()][:5]]
    more = len(removed.going) - len(parts)
    text = "; ".join(parts) + (f"; and {more} more" if more > 0 else "")
    soon = None
    if removed.wake is not None:
        soon = max(removed.wake - asyncio.get_running_loop().time(), 0.1)
    return Waiting(doing, text, after=soon)


def overdue(since: datetime | None, now: datetime, limit: float) -> bool:
    """Whether a deletion has been going on for longer than it may."""
    return since is not None and (now - since).total_seconds() > limit


def abandoned(graph: ResourceGraph, run: Run, limit: float) -> str:
    """What was left behind, for those who have to clean up."""
    refs = [Ref.of(entry.id) for entry in run.inventory]
    name = f"{graph.metadata.namespace}/{graph.metadata.name}"
    return (
        f"ResourceGraph {name} was deleted, but for {words(limit)} its objects could not be: "
        f"{listed(refs, 20)} {'is' if len(refs) == 1 else 'are'} left behind; delete them by hand"
    )
