"""Caches that tests run, and the objects that happen to them."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Generic

import msgspec

from pequod.base.tasks import end
from pequod.kube.cache import Cache, Change, Projection, T, Unreadable
from pequod.kube.client import Client, Exactly, Selection, Write
from pequod.kube.kinds import CONFIG_MAPS, Kind
from pequod.kube.objects import Key, Metadata, Object
from pequod.kube.watch import IDLE, RELIST, Watch
from waiting import eventually

OURS = "ours=yes"


class Meta(Metadata, frozen=True, rename="camel"):
    """Metadata with what shows that somebody else was there."""

    labels: dict[str, str] = {}


class Settings(msgspec.Struct, frozen=True):
    """A ConfigMap."""

    metadata: Meta
    data: dict[str, str] = {}


SETTINGS = Projection(Settings)


@dataclass
class Following(Generic[T]):
    """A cache that runs, and everything that it has told."""

    cache: Cache[T]
    watch: Watch
    namespace: str
    changes: list[Change[T]] = field(default_factory=list)
    told: dict[Key, T | Unreadable] = field(default_factory=dict)

    def listen(self, change: Change[T]) -> None:
        self.changes.append(change)
        if change.after is None:
            del self.told[change.key]
        else:
            self.told[change.key] = change.after

    def get(self, name: str) -> T | Unreadable | None:
        return self.cache.get(Key(self.namespace, name))

    def of(self, name: str) -> list[Change[T]]:
        return [change for change in self.changes if change.key.name == name]

    def names(self) -> list[str]:
        return sorted(key.name for key in self.cache)

    def versions(self) -> dict[str, str]:
        entries = ((key.name, self.cache.get(key)) for key in self.cache)
        return {name: value.metadata.resource_version for name, value in entries if value}

    async def equals(self, client: Client) -> None:
        """Wait until the cache holds exactly what the API server does."""

        async def same() -> bool:
            listed = await client.list(self.cache.kind, self.selection)
            there = {o["metadata"]["name"]: o["metadata"]["resourceVersion"] for o in listed}
            return there == self.versions()

        await eventually(same, f"the cache of {self.cache.kind} equals the API server")

    @property
    def selection(self) -> Selection:
        return Selection(namespace=self.namespace, labels=OURS)


def following(
    client: Client, namespace: str, *, synced: bool = True, **timing: float
) -> AbstractAsyncContextManager[Following[Settings]]:
    """Follow our ConfigMaps of a namespace."""
    return following_kind(client, namespace, CONFIG_MAPS, SETTINGS, synced=synced, **timing)


@asynccontextmanager
async def following_kind(
    client: Client,
    namespace: str,
    kind: Kind,
    projection: Projection[T],
    *,
    synced: bool = True,
    **timing: float,
) -> AsyncIterator[Following[T]]:
    """Follow our objects of a kind; what was told is in the end what is there."""
    selection = Selection(namespace=namespace, labels=OURS)
    timing = {"idle": IDLE, "relist": RELIST} | timing
    watch = Watch(client, kind, selection, accept=projection.accept, **timing)
    cache = Cache(kind, projection, watch)
    run = Following(cache, watch, namespace)
    cache.listen(run.listen)
    task = asyncio.create_task(cache.run())
    try:
        if synced:
            await cache.until_synced(20)
        yield run
        assert not task.done(), "the cache has ended by itself"
        assert run.told == {key: cache.get(key) for key in cache}
    finally:
        await end(task)


def settings(namespace: str, name: str, **data: str) -> Object:
    """A ConfigMap that is one of ours."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": namespace, "labels": {"ours": "yes"}},
        "data": data,
    }


async def put(client: Client, namespace: str, *names: str, **data: str) -> None:
    """Make ConfigMaps so."""
    how = Write(force=True)
    wanted = (settings(namespace, name, **data) for name in names)
    await asyncio.gather(*(client.apply(CONFIG_MAPS, wish, how) for wish in wanted))


async def remove(client: Client, namespace: str, *names: str, kind: Kind = CONFIG_MAPS) -> None:
    """Delete objects."""
    for name in names:
        found: dict[str, Any] = await client.get(kind, name, namespace=namespace)
        await client.delete(kind, name, Exactly(found["metadata"]["uid"]), namespace=namespace)


def line(type_: str, object_: Object) -> bytes:
    """An event as a line of a stream."""
    return msgspec.json.encode({"type": type_, "object": object_})


GONE = line("ERROR", {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"})
