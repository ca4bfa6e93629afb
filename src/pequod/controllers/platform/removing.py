"""Taking objects of a graph away: what a change leaves over, and everything at the end."""

import asyncio
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass, replace

import msgspec

from pequod.api import reasons
from pequod.api.graph import InventoryEntry
from pequod.api.platform import ResourceGraph
from pequod.controllers.platform.claims import heir, is_claimed, suitor
from pequod.controllers.platform.identity import Actor
from pequod.controllers.platform.targets import Target
from pequod.graph.advance import RETRY
from pequod.graph.children import Watched
from pequod.graph.inventory import is_left
from pequod.graph.model import Plan, Ref
from pequod.graph.removal import Doomed, Removal, Removed
from pequod.graph.run import Run
from pequod.kube.cache import Cache
from pequod.kube.client import Client
from pequod.kube.errors import ForbiddenError, KubeError, NotFoundError, UnknownKindError
from pequod.kube.kinds import NAMESPACES, Kind
from pequod.kube.objects import Described
from pequod.runtime.verdicts import Waiting

REFUSED_AGAIN = 30.0
"""Seconds after which a delete is tried again that was not allowed."""
_GRAPHS = Kind.of(ResourceGraph)
UNKNOWN = 5.0
"""Seconds after which a kind that is not served is believed to be gone."""


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
        self, entries: Collection[InventoryEntry], plan: Plan | None, *, orphan: bool = False
    ) -> Removed:
        """Delete, hand over or let go of objects, as far as that is possible now."""
        doomed, failed = await self._doomed(entries)
        if orphan:
            doomed = [replace(one, orphan=True, heir="", suitor="") for one in doomed]
        kinds = frozenset(one.kind for one in doomed if one.kind is not None)
        watched = await self.target.watched(kinds)
        removal = Removal(
            self.run,
            [self._seen(one, watched) for one in doomed if one.kind not in watched.failed],
            plan,
            client=self.actor.client,
            children=self.target.children,
            confirm=self.confirm,
        )
        removed = await removal.run()
        removed.failed |= failed
        for one in doomed:
            if one.kind is not None and one.kind in watched.failed:
                removed.failed[one.ref] = watched.failed[one.kind]
        self.run.failed_removals = self.run.failed_removals + 1 if removed.failed else 0
        return removed

    async def kinds_of(self, entries: Collection[InventoryEntry]) -> frozenset[Kind]:
        """The kinds of objects that are still served."""
        doomed, _ = await self._doomed(entries)
        return frozenset(one.kind for one in doomed if one.kind is not None)

    def would_go(self, entry: InventoryEntry) -> bool:
        """Whether an object that nobody asks for any more would be deleted."""
        left = is_left(entry.deletion_policy, self.graph.spec.deletion_policy)
        return not left and not is_claimed(self.graph, Ref.of(entry.id), self.graphs)

    async def _doomed(
        self, entries: Collection[InventoryEntry]
    ) -> tuple[list[Doomed], dict[Ref, KubeError]]:
        """What is to be taken away, and why that cannot be known of some."""
        doomed, failed = [], {}
        for entry in entries:
            ref = Ref.of(entry.id)
            try:
                kind = await self._kind(entry, ref)
            except KubeError as error:
                failed[ref] = error
                continue
            next_owner = heir(self.graph, ref, self.graphs)
            doomed.append(
                Doomed(
                    entry=entry,
                    ref=ref,
                    kind=kind,
                    child=None,
                    orphan=is_left(entry.deletion_policy, self.graph.spec.deletion_policy),
                    heir=next_owner,
                    suitor="" if next_owner else suitor(self.graph, ref, self.graphs),
                    unlabel=self.graph.metadata.deletion_timestamp is None,
                )
            )
        return doomed, failed

    async def _kind(self, entry: InventoryEntry, ref: Ref) -> Kind | None:
        """The kind of an object; None when there is no such kind any more, and has not been lately.

        An API server that has just started may not know all of its kinds yet.
        """
        try:
            kind = await self.target.discovery.find_any(ref.group, entry.version, ref.kind)
        except UnknownKindError:
            now = asyncio.get_running_loop().time()
            if now - self.run.unknown_since.setdefault(entry.id, now) < UNKNOWN:
                self.target.discovery.invalidate()
                raise
            return None
        self.run.unknown_since.pop(entry.id, None)
        return kind

    def _seen(self, doomed: Doomed, watched: Watched) -> Doomed:
        """With the live object, as far as a watch tells of it."""
        if doomed.kind is None or doomed.kind not in watched.kinds:
            return doomed
        child = self.target.children.get(doomed.kind, doomed.ref, self.run.graph)
        if child is not None and doomed.entry.uid not in {None, child.metadata.uid}:
            # Whatever its label says, it is not the object that the inventory means.
            child = None
        return replace(doomed, child=child, watched=True)

    async def confirm(self) -> None:
        """Look at the graph itself: it must be what we take it for, and somebody's."""
        await self.answerable()
        if self.run.ending:
            await self.target.require_same()
            return
        metadata = self.graph.metadata
        try:
            found = await self.own.get_metadata(
                _GRAPHS, metadata.name, Described, namespace=metadata.namespace
            )
        except NotFoundError as error:
            raise GraphChangedError("the graph is gone; nothing is deleted") from error
        now = found.metadata
        deleted = (now.deletion_timestamp is None) is (metadata.deletion_timestamp is None)
        if now.uid != metadata.uid or now.generation != metadata.generation or not deleted:
            raise GraphChangedError("the graph has changed meanwhile; it is looked at again")
        await self.target.require_same()
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
