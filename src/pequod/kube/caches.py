"""The caches of one API server, shared: started for the first who asks, ended after the last."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Generic
from weakref import WeakSet

import structlog
from prometheus_client import REGISTRY
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from pequod.base.tasks import Background, end
from pequod.kube.cache import Cache, Projection, T
from pequod.kube.client import ALL, Client, Selection
from pequod.kube.kinds import Kind
from pequod.kube.watch import Watch

RESTART = 5.0
"""Seconds after which a cache that failed begins anew."""

_log = structlog.get_logger()


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


class _Collector(Collector):
    """How old and how large the caches are, at the moment somebody asks."""

    def __init__(self) -> None:
        self.known: WeakSet[Caches] = WeakSet()

    def collect(self) -> Iterator[Metric]:
        """One sample for each resource of each API server."""
        names = ("cluster", "resource")
        ages = GaugeMetricFamily(
            "pequod_watch_age_seconds", "Seconds since a watch was heard.", labels=names
        )
        sizes = GaugeMetricFamily("pequod_cache_objects", "Objects in the caches.", labels=names)
        oldest: dict[tuple[str, str], float] = {}
        counts: dict[tuple[str, str], int] = {}
        for caches in tuple(self.known):
            for cache in caches:
                name = (caches.client.transport.name, cache.kind.resource)
                oldest[name] = max(oldest.get(name, 0.0), cache.age(caches.now()))
                counts[name] = counts.get(name, 0) + len(cache)
        for name, age in oldest.items():
            ages.add_metric(name, age)
            sizes.add_metric(name, counts[name])
        yield from (ages, sizes)

    def describe(self) -> Iterator[Metric]:
        """Nothing until somebody asks: the names are known to `collect` alone."""
        return iter(())


class Caches:
    """Every cache of one API server, under the identity of its client."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self._shared: dict[tuple[Any, ...], _Shared] = {}
        self._background = Background()
        self.now = asyncio.get_running_loop().time
        _collector.known.add(self)

    def share(self, kind: Kind, projection: Projection[T], selection: Selection = ALL) -> Share[T]:
        """A cache, started now if nobody else has it yet."""
        name = (kind, projection, selection)
        shared = self._shared.get(name)
        if shared is None:
            watch = Watch(self.client, kind, selection, accept=projection.accept)
            cache = Cache(kind, projection, watch)
            task = asyncio.create_task(_kept_running(cache), name=f"watch {kind}")
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
            self._background.adopt(shared.task)

    def __iter__(self) -> Iterator[Cache[Any]]:
        return iter([shared.cache for shared in self._shared.values()])

    def stuck(self, longer_than: float) -> list[str]:
        """The watches that have done nothing for too long: not even failed."""
        now = self.now()
        return [str(cache.kind) for cache in self if cache.stuck(now) > longer_than]

    def age(self) -> float:
        """Seconds since the quietest watch was heard."""
        now = self.now()
        return max((cache.age(now) for cache in self), default=0.0)

    async def close(self) -> None:
        """End every watch."""
        _collector.known.discard(self)
        await end(*(shared.task for shared in self._shared.values()))
        await self._background.close()
        self._shared.clear()


async def _kept_running(cache: Cache[Any]) -> None:
    """Keep a cache up to date, whatever bug it meets on the way."""
    while True:
        try:
            await cache.run()
        except Exception:  # noqa: BLE001 -- a bug in one cache is not the end of the others
            _log.exception("a cache failed and begins anew", kind=str(cache.kind))
        await asyncio.sleep(RESTART)


_collector = _Collector()
REGISTRY.register(_collector)
