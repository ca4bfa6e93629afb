"""The caches of one API server, shared: started for the first who asks, ended after the last."""

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Generic

from prometheus_client import REGISTRY
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from pequod.base.tasks import end
from pequod.kube.cache import Cache, Projection, T
from pequod.kube.client import ALL, Client, Selection
from pequod.kube.kinds import Kind
from pequod.kube.watch import Watch


@dataclass(slots=True)
class _Shared:
    cache: Cache[Any]
    task: asyncio.Task[None]
    users: int = 0


@dataclass(eq=False, slots=True)
class Share(Generic[T]):
    """Somebody's share of a cache; it is kept for as long as anybody has one."""

    cache: Cache[T]
    _owner: "Caches" = field(repr=False)
    _name: tuple[Any, ...] = field(repr=False)
    _held: bool = True

    def release(self) -> None:
        """Need it no longer."""
        if self._held:
            self._held = False
            self._owner.released(self._name)


class Caches(Collector):
    """Every cache of one API server, under the identity of its client."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self._shared: dict[tuple[Any, ...], _Shared] = {}
        self._ending: set[asyncio.Task[None]] = set()
        REGISTRY.register(self)

    def share(self, kind: Kind, projection: Projection[T], selection: Selection = ALL) -> Share[T]:
        """A cache, started now if nobody else has it yet."""
        name = (kind, projection, selection)
        shared = self._shared.get(name)
        if shared is None:
            watch = Watch(self.client, kind, selection, accept=projection.accept)
            cache = Cache(kind, projection, watch)
            task = asyncio.create_task(cache.run(), name=f"watch {kind}")
            shared = self._shared[name] = _Shared(cache, task)
        shared.users += 1
        return Share(shared.cache, self, name)

    def released(self, name: tuple[Any, ...]) -> None:
        """End a cache whose last user is gone."""
        shared = self._shared[name]
        shared.users -= 1
        if shared.users == 0:
            del self._shared[name]
            shared.task.cancel()
            self._ending.add(shared.task)
            shared.task.add_done_callback(self._ending.discard)

    def __iter__(self) -> Iterator[Cache[Any]]:
        return iter([shared.cache for shared in self._shared.values()])

    def stuck(self, longer_than: float) -> list[str]:
        """The watches that have done nothing for too long: not even failed."""
        now = asyncio.get_running_loop().time()
        return [str(cache.kind) for cache in self if cache.stuck(now) > longer_than]

    def unsynced(self) -> list[str]:
        """The caches that wait for their first list."""
        return [str(cache.kind) for cache in self if not cache.synced]

    def collect(self) -> Iterator[Metric]:
        """How old and how large the caches are, at the moment somebody asks."""
        ages = GaugeMetricFamily(
            "pequod_watch_age_seconds", "Seconds since a watch was heard.", labels=["resource"]
        )
        sizes = GaugeMetricFamily(
            "pequod_cache_objects", "Objects in the caches.", labels=["resource"]
        )
        try:
            now = asyncio.get_running_loop().time()
        except RuntimeError:
            return
        oldest: dict[str, float] = {}
        counts: dict[str, int] = {}
        for cache in self:
            name = cache.kind.resource
            oldest[name] = max(oldest.get(name, 0.0), cache.age(now))
            counts[name] = counts.get(name, 0) + len(cache)
        for name, age in oldest.items():
            ages.add_metric([name], age)
            sizes.add_metric([name], counts[name])
        yield ages
        yield sizes

    def describe(self) -> Iterator[Metric]:
        """Nothing until somebody asks: the names are known to `collect` alone."""
        return iter(())

    async def close(self) -> None:
        """End every watch."""
        with suppress(KeyError):
            REGISTRY.unregister(self)
        await end(*(shared.task for shared in self._shared.values()), *self._ending)
        self._shared.clear()
