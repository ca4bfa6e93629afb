"""The live objects of every graph on one cluster: one cache for each kind, shared by all graphs.

The caches run as the operator, for everything that carries our label. An object reaches only the
graph whose UID its label names. Who changed matters to one graph, which is woken, and only when
there is something to decide.
"""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from dataclasses import dataclass

from pequod.graph.child import Child, reader
from pequod.graph.digests import Digests
from pequod.graph.model import GRAPH_LABEL, Ref
from pequod.kube.cache import Change, Projection, Unreadable
from pequod.kube.caches import Caches, Share
from pequod.kube.client import Selection
from pequod.kube.errors import ForbiddenError, KubeError, UnreachableError
from pequod.kube.kinds import Kind
from pequod.kube.objects import MISFITS, Key

SYNC_LIMIT = 20.0
DEAF = 60.0
"""Seconds after which what was heard of a kind is no longer believed when its watch fails."""

Wake = Callable[[str], None]
"""Wakes the graph of a UID."""


@dataclass(frozen=True, slots=True)
class Watched:
    """The kinds that are watched, and why others are not, besides that it is forbidden."""

    kinds: frozenset[Kind]
    failed: Mapping[Kind, KubeError]

    def refused(self, kinds: AbstractSet[Kind]) -> frozenset[Kind]:
        """Those of the kinds that the operator may not watch."""
        return frozenset(kinds - self.kinds - self.failed.keys())


class Children:
    """What is known of the objects of graphs on one cluster."""

    def __init__(self, caches: Caches, digests: Digests, wake: Wake) -> None:
        self.digests = digests
        self._caches = caches
        self._wake = wake
        self._projection = Projection(Child, read=reader(digests))
        self._shares: dict[Kind, Share[Child]] = {}
        self._stops: dict[Kind, Callable[[], None]] = {}
        self._users: dict[Kind, set[str]] = {}
        self._closed = False
        self._curious: set[str] = set()
        """Graphs that look at more of their objects than what is kept."""

    def need(self, graph: str, kinds: AbstractSet[Kind], *, every_change: bool = False) -> None:
        """A graph has objects of these kinds, and of no others any more."""
        if every_change:
            self._curious.add(graph)
        else:
            self._curious.discard(graph)
        for kind in kinds:
            self._share(kind)
            self._users[kind].add(graph)
        for kind in [kind for kind, users in self._users.items() if graph in users]:
            if kind not in kinds:
                self._users[kind].discard(graph)
                if not self._users[kind]:
                    self._release(kind)

    async def watched(self, kinds: AbstractSet[Kind]) -> Watched:
        """Which of the kinds can be watched; what cannot is not known to be empty.

        What the operator may not watch has to be asked for, object by object.
        """
        ordered = [*kinds]
        failures = await asyncio.gather(*(self._failure(kind) for kind in ordered))
        watched = frozenset(k for k, error in zip(ordered, failures, strict=True) if error is None)
        failed = {
            kind: error
            for kind, error in zip(ordered, failures, strict=True)
            if error is not None and not isinstance(error, ForbiddenError)
        }
        return Watched(watched, failed)

    async def _failure(self, kind: Kind) -> KubeError | None:
        """Why nothing is known of a kind, or nothing any more."""
        try:
            cache = self._share(kind).cache
            await cache.until_synced(SYNC_LIMIT)
        except KubeError as error:
            return error
        if cache.failure is not None and cache.age(self._caches.now()) > DEAF:
            return cache.failure
        return None

    def get(self, kind: Kind, ref: Ref, graph: str) -> Child | None:
        """The object of a graph; None when there is none, or none that says it is the graph's."""
        found = self._share(kind).cache.get(Key(ref.namespace, ref.name))
        if found is None or isinstance(found, Unreadable) or found.metadata.graph != graph:
            return None
        return found

    def read(self, answer: bytes) -> Child:
        """What is kept of an object that the API server has just shown."""
        return reader(self.digests)(answer)

    def observe(self, kind: Kind, answer: bytes) -> Child:
        """Take in the answer to a write of ours."""
        try:
            return self._share(kind).cache.observe(answer)
        except MISFITS:
            return self.read(answer)

    def observe_removal(self, kind: Kind, ref: Ref, uid: str) -> None:
        """Our own write has removed an object."""
        self._share(kind).cache.observe_removal(Key(ref.namespace, ref.name), uid)

    @contextmanager
    def writing(self, kind: Kind, ref: Ref) -> Iterator[None]:
        """A write of ours is on its way: what is heard meanwhile may be its echo."""
        with self._share(kind).cache.writing(Key(ref.namespace, ref.name)):
            yield

    def __len__(self) -> int:
        return sum(len(share.cache) for share in self._shares.values())

    def close(self) -> None:
        """Nobody has any objects any more: what is asked from now on is not answered."""
        self._closed = True
        for kind in tuple(self._shares):
            self._release(kind)

    def _share(self, kind: Kind) -> Share[Child]:
        share = self._shares.get(kind)
        if share is None and self._closed:
            raise UnreachableError("the connection to the cluster was replaced meanwhile")
        if share is None:
            selection = Selection(labels=GRAPH_LABEL)
            share = self._caches.share(kind, self._projection, selection)
            self._shares[kind] = share
            self._users.setdefault(kind, set())
            self._stops[kind] = share.cache.listen(self._changed)
        return share

    def _release(self, kind: Kind) -> None:
        self._stops.pop(kind)()
        self._shares.pop(kind).release()
        self._users.pop(kind, None)

    def _changed(self, change: Change[Child]) -> None:
        if change.ours:
            return
        before, after = _readable(change.before), _readable(change.after)
        dull = before is not None and after is not None and not after.differs(before)
        for graph in {one.metadata.graph for one in (before, after) if one is not None}:
            if graph and (not dull or graph in self._curious):
                self._wake(graph)


def _readable(value: Child | Unreadable | None) -> Child | None:
    return None if isinstance(value, Unreadable) else value
