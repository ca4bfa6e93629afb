"""What a cache costs: memory for each object, time to fill it, and how fast it follows.

Many ConfigMaps with the managed fields of two managers; each projection is filled in a process of
its own, and then follows updates. Run it with `python -m bench.cache`.
"""

import argparse
import asyncio
import gc
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec
from bench.plane import (
    MIB,
    NAME,
    NAMESPACE,
    PATIENCE,
    Account,
    Figures,
    Plane,
    Stopwatch,
    WrongError,
    build_loader,
    connected,
    control_plane,
    loader_apply,
    loader_command,
    make_account,
    measured,
    memory,
    released,
)

from pequod.kube.cache import Cache, Projection, T, Unreadable
from pequod.kube.caches import Caches
from pequod.kube.client import FIELD_MANAGER, Client, Selection
from pequod.kube.kinds import CONFIG_MAPS
from pequod.kube.objects import Key, Named, Object
from pequod.kube.watch import Complete, Put, Watch

GOAL = 1.5 * 1024
"""Bytes for each object that is not kept as a whole."""
WORKER = (sys.executable, "-m", "bench.cache", "--worker")
PREFIX = "cm"
OTHER_MANAGER = "horizontal-autoscaler"
CHOSEN = Selection(namespace=NAMESPACE, labels=f"set={PREFIX}")
NOTHING = Selection(namespace=NAMESPACE, labels="set=nothing")

Way = Literal["metadata", "projection", "whole"]
TITLES: dict[Way, str] = {
    "metadata": "metadata only",
    "projection": "labels and a digest",
    "whole": "whole object, as dict",
}


class Kept(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """The metadata that most controllers look at."""

    name: str
    namespace: str
    uid: str
    resource_version: str
    generation: int = 0
    labels: dict[str, str] | None = None


class Content(msgspec.Struct, frozen=True, gc=False):
    """What stands for everything else."""

    digest: str


class Projected(msgspec.Struct, frozen=True, gc=False):
    """A ConfigMap, as far as it is worth its memory."""

    metadata: Kept
    data: Content


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker is to do."""

    way: Way
    kubeconfig: str
    count: int
    updates: int


def config_map(name: str, value: str) -> Object:
    """A ConfigMap of two KB, with its managed fields."""
    labels = {
        "set": PREFIX,
        "app.kubernetes.io/name": "podinfo",
        "app.kubernetes.io/instance": name,
        "app.kubernetes.io/managed-by": "pequod",
    }
    data = {f"settings-{index}.conf": f"{index:x}" * 100 for index in range(8)}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": labels},
        "data": {"value": value, "digest": f"{name}{0:024}", **data},
    }


def of_another_manager(name: str) -> Object:
    """What somebody else adds to it."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": name,
            "namespace": NAMESPACE,
            "annotations": {"autoscaling.example.com/last": "2026-01-01T00:00:00Z"},
        },
        "data": {"replicas": "3", "maximum": "10"},
    }


@dataclass(frozen=True, slots=True)
class Filled:
    """A cache of some kind, after its first list."""

    size: Callable[[], int]
    on_change: Callable[[Callable[[], None]], object]
    holds: Callable[[str], bool]
    """Whether an object is kept as it should be."""


async def _filled(client: Client, way: Way) -> Filled:
    caches = Caches(client)
    match way:
        case "metadata":
            named = await _synced(caches, Projection(Named, metadata_only=True))
            return _as_filled(named, lambda kept: bool(kept.metadata.resource_version))
        case "projection":
            projected = await _synced(caches, Projection(Projected))
            return _as_filled(projected, _right)
        case "whole":
            return await _naive(client)


def _right(kept: Projected) -> bool:
    digest = config_map(kept.metadata.name, "")["data"]["digest"]
    return kept.data.digest == digest and len(kept.metadata.labels or ()) == 4


async def _synced(caches: Caches, projection: Projection[T]) -> Cache[T]:
    cache = caches.share(CONFIG_MAPS, projection, CHOSEN).cache
    await cache.until_synced(PATIENCE)
    return cache


def _as_filled(cache: Cache[T], right: Callable[[T], bool]) -> Filled:
    def holds(name: str) -> bool:
        kept = cache.get(Key(NAMESPACE, name))
        return kept is not None and not isinstance(kept, Unreadable) and right(kept)

    def on_change(heard: Callable[[], None]) -> object:
        return cache.listen(lambda _: heard())

    return Filled(lambda: len(cache), on_change, holds)


async def _naive(client: Client) -> Filled:
    """What one writes first: a dict of every object as it came."""
    objects: dict[tuple[str, str], Object] = {}
    listeners: list[Callable[[], None]] = []
    synced = asyncio.Event()

    async def follow() -> None:
        decoder = msgspec.json.Decoder(Object)
        async with aclosing(Watch(client, CONFIG_MAPS, CHOSEN).events()) as events:
            async for event in events:
                if isinstance(event, Put):
                    item = decoder.decode(event.raw)
                    objects[item["metadata"]["namespace"], item["metadata"]["name"]] = item
                    for heard in listeners:
                        heard()
                elif isinstance(event, Complete):
                    synced.set()

    def holds(name: str) -> bool:
        item = objects[NAMESPACE, name]
        return len(item["metadata"]["managedFields"]) == 2 and len(item["data"]) == 12

    TASKS.add(asyncio.create_task(follow()))
    await synced.wait()
    return Filled(lambda: len(objects), listeners.append, holds)


TASKS: set[asyncio.Task[None]] = set()
"""What must not be forgotten while it runs."""


def worker(argument: str) -> None:
    """Fill one cache, follow the updates, and print what it took."""
    job = msgspec.json.decode(argument, type=Job)
    print(msgspec.json.encode(asyncio.run(_work(job))).decode())


async def _work(job: Job) -> Figures:
    async with connected(Path(job.kubeconfig)) as client:
        empty = Caches(client)
        await empty.share(CONFIG_MAPS, Projection(Named), NOTHING).cache.until_synced(PATIENCE)
        await empty.close()
        before = _resident()
        watch = Stopwatch()
        filled = await _filled(client, job.way)
        sync = watch.figures()
        more = {"sync": sync.seconds, "sync_cpu": sync.cpu, "memory": _resident() - before}
        names = [f"{PREFIX}-{index:05}" for index in range(job.count)]
        if filled.size() != job.count or not all(filled.holds(name) for name in names):
            raise WrongError(f"{job.way}: the cache does not hold what there is")
        figures = await _follow(filled, job.updates)
        figures.more = more
        return figures


def _resident() -> int:
    gc.collect()
    return memory("VmRSS")


async def _follow(filled: Filled, updates: int) -> Figures:
    done = asyncio.Event()
    times: list[float] = []

    def heard() -> None:
        times.append(time.perf_counter())
        if len(times) == updates:
            done.set()

    filled.on_change(heard)
    await released()
    watch = Stopwatch()
    async with asyncio.timeout(PATIENCE):
        await done.wait()
    return watch.figures(since=times[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """Everything that it takes to fill and to change."""

    plane: Plane
    account: Account
    loader: Path
    count: int
    updates: int

    async def load(self) -> None:
        """Make the objects, as two managers do."""
        await self._apply(config_map(NAME, "new"), self.count)
        await self._apply(of_another_manager(NAME), self.count, manager=OTHER_MANAGER)

    async def measure(self, way: Way) -> Figures:
        """Fill one kind of cache, and let it follow."""
        job = Job(
            way=way,
            kubeconfig=str(self.account.kubeconfig),
            count=self.count,
            updates=self.updates,
        )
        command = [*WORKER, msgspec.json.encode(job).decode()]
        changed = config_map(NAME, way)
        return await measured(command, self.plane, lambda: self._apply(changed, self.updates))

    async def _apply(self, template: Object, count: int, manager: str = FIELD_MANAGER) -> None:
        command = loader_command(self.loader, self.account, PREFIX, count)
        body = msgspec.json.encode(template)
        await measured([*command, *loader_apply(body, manager)], self.plane)


async def _compare(plane: Plane, count: int, updates: int) -> dict[Way, Figures]:
    async with connected(plane.layout.kubeconfig) as admin:
        bench = Bench(
            plane=plane,
            account=await make_account(plane, admin),
            loader=await build_loader(),
            count=count,
            updates=updates,
        )
        await bench.load()
        (item, *_) = (await admin.page(CONFIG_MAPS, CHOSEN, limit=1)).items or []
        print(f"{count} ConfigMaps, {len(bytes(item))} bytes each with two managers' fields")
        return {way: await bench.measure(way) for way in TITLES}


def _table(found: dict[Way, Figures], count: int, updates: int) -> Iterable[str]:
    yield (
        f"{'kept':22} {'sync, s':>8} {'CPU, s':>7} {'objects/s':>10} {'bytes/object':>13}"
        f" {'peak, MiB':>10} {'events/s':>9} {'CPU µs/event':>13}  goal"
    )
    for way, title in TITLES.items():
        figures = found[way]
        sync, size = figures.more["sync"], figures.more["memory"] / count
        goal = "-" if way == "whole" else "yes" if size <= GOAL else "no"
        yield (
            f"{title:22} {sync:8.2f} {figures.more['sync_cpu']:7.2f} {count / sync:10,.0f}"
            f" {size:13,.0f} {figures.peak / MIB:10.0f} {updates / figures.seconds:9,.0f}"
            f" {figures.cpu / updates * 1e6:13.0f}  {goal}"
        )


def main() -> None:
    """Fill and follow, and print the table; only wrong results are a failure."""
    parser = argparse.ArgumentParser(description="What a cache costs.")
    parser.add_argument("--count", type=int, default=20_000, help="objects in the cache")
    parser.add_argument("--updates", type=int, default=2000, help="updates that it follows")
    parser.add_argument("--worker", help="for this program itself")
    options = parser.parse_args()
    if options.worker:
        worker(options.worker)
        return
    with control_plane() as plane:
        found = asyncio.run(_compare(plane, options.count, options.updates))
    print(*_table(found, options.count, options.updates), sep="\n")
    print(f"goal: at most {GOAL:,.0f} bytes for each projected object. Events come at the pace of")
    print("a writer with 32 requests in flight; in bulk a cache follows as fast as it syncs.")


if __name__ == "__main__":
    main()
