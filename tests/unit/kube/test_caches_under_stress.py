"""Corners of watches and caches that a healthy API server never leads into."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator
from typing import cast

import msgspec
import pytest
from structlog.testing import capture_logs

from pequod.kube.cache import Cache, Change, Projection
from pequod.kube.client import Client
from pequod.kube.errors import ForbiddenError
from pequod.kube.kinds import CONFIG_MAPS
from pequod.kube.objects import Key, Named
from pequod.kube.watch import Began, Complete, Event, Failed, Garbled, Put, Removed, Watch

KEY = Key("here", "a")


class Feed:
    """A source that says what it is told, and then nothing."""

    def __init__(self, *events: Event) -> None:
        self.heard = self.tried = 0.0
        self.waiting = deque(events)

    async def events(self) -> AsyncGenerator[Event, None]:
        while self.waiting:
            yield self.waiting.popleft()
        await asyncio.Event().wait()


def raw(version: int, name: str = "a") -> bytes:
    metadata = {
        "name": name,
        "namespace": "here",
        "uid": f"uid-{name}",
        "resourceVersion": str(version),
    }
    return msgspec.json.encode({"metadata": metadata})


def put(version: int, name: str = "a") -> Put:
    return Put(msgspec.Raw(raw(version, name)))


def cache_of(*events: Event) -> tuple[Cache[Named], list[Change[Named]]]:
    cache = Cache(CONFIG_MAPS, Projection(Named), Feed(*events))
    told: list[Change[Named]] = []
    cache.listen(told.append)
    for event in events:
        cache._take(event)
    return cache, told


async def test_who_waits_for_a_list_hears_at_once_why_there_is_none() -> None:
    with capture_logs():
        cache = Cache(CONFIG_MAPS, Projection(Named), Feed(Failed(ForbiddenError(403))))
        running = asyncio.create_task(cache.run())
        with pytest.raises(ForbiddenError):
            async with asyncio.timeout(1):
                await cache.until_synced(60)
        running.cancel()


async def test_overlapping_writes_of_one_object_are_told_once_by_the_last_one() -> None:
    cache, told = cache_of(Began(), put(1), Complete("1"))
    told.clear()
    with cache.writing(KEY):
        with cache.writing(KEY):
            cache.observe(raw(2))
        assert told == []
        cache.observe(raw(3))
    (change,) = told
    assert change.ours
    assert change.after is not None
    assert change.after.metadata.resource_version == "3"


async def test_a_list_that_begins_again_forgets_none_of_our_writes() -> None:
    cache, _ = cache_of(Began(), put(5), Complete("5"))
    cache._take(Began())
    cache.observe(raw(21))
    cache.observe(raw(22, "new"))
    cache._take(Began(again=True))
    for event in (put(5), Complete("20")):
        cache._take(event)
    kept = cache.get(KEY)
    assert kept is not None
    assert kept.metadata.resource_version == "21"
    assert cache.get(Key("here", "new")) is not None


async def test_a_list_with_something_that_cannot_be_named_drops_nothing() -> None:
    with capture_logs():
        cache, _ = cache_of(Began(), put(1), put(2, "b"), Complete("2"))
        for event in (Began(), put(1), Garbled(), Complete("3")):
            cache._take(event)
    assert {key.name for key in cache} == {"a", "b"}


async def test_case_92_an_object_that_is_too_deep_is_garbled_and_no_end_of_the_stream() -> None:
    watch = Watch(cast("Client", None), CONFIG_MAPS)
    depth = 200_000
    line = b'{"type":"ADDED","object":{"a":' + b"[" * depth + b"]" * depth + b"}}"
    assert watch._event(line) == Garbled()


async def test_an_index_that_fails_is_its_own_problem() -> None:
    with capture_logs() as logs:
        cache, told = cache_of()

        def broken(_value: Named) -> list[str]:
            raise ZeroDivisionError

        cache.add_index("broken", broken)
        for event in (Began(), put(1), Complete("1"), Removed(msgspec.Raw(raw(2)))):
            cache._take(event)
    assert len(told) == 2
    assert any(entry["event"] == "an index failed" for entry in logs)


async def test_an_answer_to_a_write_outside_of_a_list_is_remembered_by_nothing_else() -> None:
    cache, _ = cache_of(Began(), put(1), Complete("1"))
    with cache.writing(KEY):
        cache.observe(raw(2))
    cache.observe(raw(3))
    assert cache._written == set()
    assert cache._answers == {}
    assert cache._writing == {}
