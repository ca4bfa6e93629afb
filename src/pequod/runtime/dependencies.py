"""Objects that other objects refer to: watched while anybody refers to them, and no longer.

Only metadata is kept, and only of the namespaces in question: enough to know that a Secret has
changed, and too little to leak it. Its content is read when it is needed.
"""

from collections import defaultdict
from collections.abc import Callable
from collections.abc import Set as AbstractSet

from pequod.kube.cache import Change, Projection, Unreadable
from pequod.kube.caches import Caches, Share
from pequod.kube.client import Selection
from pequod.kube.kinds import Kind
from pequod.kube.objects import Key, Named

SYNC_LIMIT = 20.0
_PROJECTION = Projection(Named, metadata_only=True)

Place = tuple[Kind, str]
Reference = tuple[Kind, Key]


class Dependencies:
    """Who of one controller's objects refers to what."""

    def __init__(self, caches: Caches, wake: Callable[[Key], None]) -> None:
        self._caches = caches
        self._wake = wake
        self._shares: dict[Place, Share[Named]] = {}
        self._stops: dict[Place, Callable[[], None]] = {}
        self._places: defaultdict[Place, set[Key]] = defaultdict(set)
        self._users: defaultdict[Reference, set[Key]] = defaultdict(set)
        self._needs: dict[Key, set[Reference]] = {}

    async def observed(self, user: Key, kind: Kind, key: Key) -> Named | None:
        """The metadata of an object; from now on its changes wake the user."""
        self._needs.setdefault(user, set()).add((kind, key))
        self._users[kind, key].add(user)
        self._places[kind, key.namespace].add(key)
        cache = self._share(kind, key.namespace).cache
        await cache.until_synced(SYNC_LIMIT)
        found = cache.get(key)
        return Named(found.metadata) if isinstance(found, Unreadable) else found

    def settle(self, user: Key, needed: AbstractSet[Reference]) -> None:
        """A pass over the user has ended: what it did not ask for, it no longer needs."""
        for reference in self._needs.get(user, set()) - needed:
            self._release(user, reference)
        if needed:
            self._needs[user] = set(needed)
        else:
            self._needs.pop(user, None)

    def close(self) -> None:
        """Nobody needs anything any more."""
        for user in tuple(self._needs):
            self.settle(user, frozenset())

    def _share(self, kind: Kind, namespace: str) -> Share[Named]:
        place = (kind, namespace)
        if place not in self._shares:
            selection = Selection(namespace=namespace or None)
            share = self._shares[place] = self._caches.share(kind, _PROJECTION, selection)
            self._stops[place] = share.cache.listen(lambda change: self._changed(kind, change))
        return self._shares[place]

    def _changed(self, kind: Kind, change: Change[Named]) -> None:
        for user in self._users.get((kind, change.key), ()):
            self._wake(user)

    def _release(self, user: Key, reference: Reference) -> None:
        users = self._users[reference]
        users.discard(user)
        if users:
            return
        del self._users[reference]
        kind, key = reference
        place = (kind, key.namespace)
        self._places[place].discard(key)
        if not self._places[place]:
            del self._places[place]
            self._stops.pop(place)()
            self._shares.pop(place).release()
