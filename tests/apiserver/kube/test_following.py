"""A cache holds what the API server does, however it gets to know it."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import suppress
from functools import partialmethod

import pytest

from faultactions import Gate, answer, edited, ending
from faultproxy import FaultProxy, calls, follows, lists
from following import OURS, SETTINGS, Settings, following, following_kind, put, remove, settings
from pequod.kube.cache import Projection
from pequod.kube.caches import Caches
from pequod.kube.client import Client, Selection
from pequod.kube.errors import ConflictError, NotFoundError, TimedOutError
from pequod.kube.kinds import CONFIG_MAPS, Kind
from pequod.kube.objects import Key
from waiting import eventually

NO_STREAMED_LISTS = calls(sendInitialEvents="true")


async def churn(client: Client, namespace: str, seed: int, rounds: int = 60) -> None:
    """Create, change and delete a few objects many times."""
    chance = random.Random(seed)
    for number in range(rounds):
        name = f"n{chance.randrange(8)}"
        # Another may have deleted it in the same moment.
        with suppress(NotFoundError, ConflictError):
            if chance.random() < 0.7:
                await put(client, namespace, name, number=str(number))
            else:
                await remove(client, namespace, name)


async def test_a_cache_equals_the_api_server_after_churn(client: Client, namespace: str) -> None:
    await put(client, namespace, "n1", "n2")
    async with following(client, namespace) as run:
        assert run.names() == ["n1", "n2"]
        await asyncio.gather(*(churn(client, namespace, seed) for seed in range(3)))
        await run.equals(client)


async def test_pages_give_the_same_where_lists_cannot_be_streamed(
    monkeypatch: pytest.MonkeyPatch,
    client: Client,
    proxy: FaultProxy,
    proxied: Client,
    namespace: str,
) -> None:
    monkeypatch.setattr(Client, "pages", partialmethod(Client.pages, limit=3))
    proxy.rule(NO_STREAMED_LISTS, answer(422, "sendInitialEvents is forbidden"))
    await put(client, namespace, *(f"n{number}" for number in range(8)), a="1")
    async with following(proxied, namespace) as run:
        assert run.names() == [f"n{number}" for number in range(8)]
        assert run.cache.failure is None
        await churn(client, namespace, 1)
        await run.equals(client)
    assert len(proxy.asked(calls(limit="3"))) == 3
    assert len(proxy.asked(follows)) == 1


@pytest.mark.parametrize("streamed", [True, False])
async def test_metadata_only_is_all_that_is_sent(
    streamed: bool,  # noqa: FBT001
    proxy: FaultProxy,
    proxied: Client,
    namespace: str,
) -> None:
    seen: list[bytes] = []

    async def edit(lines: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        async for line in lines:
            seen.append(line)
            yield line

    if not streamed:
        proxy.rule(NO_STREAMED_LISTS, answer(422))
    proxy.rule(lambda call: call.watches, edited(edit))
    await put(proxied, namespace, "a", text="correct horse")
    only = Projection(Settings, metadata_only=True)
    async with following_kind(proxied, namespace, CONFIG_MAPS, only) as run:
        assert [value.data for value in run.cache.values()] == [{}]
        await put(proxied, namespace, "b", text="battery staple")
        await eventually(lambda: run.names() == ["a", "b"], "the second one is here")
        assert [value.data for value in run.cache.values()] == [{}, {}]
    assert b"PartialObjectMetadata" in seen[-1]
    assert not any(b"horse" in line or b"staple" in line for line in seen)


async def test_case_23_nothing_is_synced_before_the_whole_list_is_here(
    client: Client, proxy: FaultProxy, proxied: Client, namespace: str
) -> None:
    count = 2000
    wanted = (settings(namespace, f"n{number}") for number in range(count))
    await asyncio.gather(*(client.create(CONFIG_MAPS, wish) for wish in wanted))
    gate = Gate()

    async def half_of_it(lines: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        number = 0
        async for line in lines:
            if number == count // 2:
                await gate.opened.wait()
            yield line
            number += 1

    proxy.rule(lists, edited(half_of_it))
    async with following(proxied, namespace, synced=False) as run:
        await eventually(lambda: len(run.cache) == count // 2, "half of the list is here")
        with pytest.raises(TimedOutError, match="ConfigMap"):
            await run.cache.until_synced(0.1)
        gate.open()
        await run.cache.until_synced(20)
        assert len(run.cache) == count
    assert len(proxy.asked(lists)) == 1


@pytest.mark.parametrize("what", ["created", "changed", "deleted"])
async def test_case_14_an_event_that_never_came_is_made_up_for_by_the_next_list(
    what: str, client: Client, proxy: FaultProxy, proxied: Client, namespace: str
) -> None:
    if what != "created":
        await put(client, namespace, "victim", a="1")

    async def lose_the_first(lines: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        await anext(lines)
        yield await anext(lines)

    proxy.rule(follows, edited(lose_the_first), times=1)
    proxy.rule(follows, ending(seconds=0.2))
    async with following(proxied, namespace, relist=1.0) as run:
        if what == "deleted":
            await remove(client, namespace, "victim")
        else:
            await put(client, namespace, "victim", a="2")
        before = run.get("victim")
        await put(client, namespace, "witness")
        await eventually(lambda: run.get("witness"), "the second event is here")
        assert run.get("victim") is before, "the first event is lost"
        await run.equals(client)
        assert [change.key.name for change in run.changes].count("victim") == (
            1 if what == "created" else 2
        )
    assert len(proxy.asked(lists)) == 2


async def test_a_kind_that_is_not_there_says_why_it_is_not_synced(
    client: Client, namespace: str
) -> None:
    nothing = Kind("nobody.example.com", "v1", "Nothing", "nothings")
    async with following_kind(client, namespace, nothing, SETTINGS, synced=False) as run:
        with pytest.raises(NotFoundError):
            await run.cache.until_synced(1)
        assert not run.cache.synced


async def test_a_watch_that_fails_is_not_stuck_but_one_that_waits_forever_grows_old(
    proxy: FaultProxy, proxied: Client, namespace: str
) -> None:
    clock = asyncio.get_running_loop().time
    async with following(proxied, namespace) as run:
        heard = run.watch.heard
        await proxy.stop()
        await eventually(lambda: run.cache.failure, "the failure is known")
        await eventually(lambda: run.watch.tried > heard + 0.1, "it tries again")
        assert run.cache.age(clock()) > run.cache.stuck(clock())
        await proxy.start()
        await put(proxied, namespace, "a")
        await eventually(lambda: run.names() == ["a"], "it follows again")
        assert run.cache.failure is None


async def test_a_shared_cache_is_one_stream_and_ends_after_its_last_user(
    client: Client, proxy: FaultProxy, proxied: Client, namespace: str
) -> None:
    caches = Caches(proxied)
    ours = Selection(namespace=namespace, labels=OURS)
    one = caches.share(CONFIG_MAPS, SETTINGS, ours)
    two = caches.share(CONFIG_MAPS, SETTINGS, ours)
    other = caches.share(CONFIG_MAPS, SETTINGS, Selection(namespace=namespace, labels="ours=no"))
    assert one.cache is two.cache is not other.cache
    assert not any(cache.synced for cache in caches)
    await asyncio.gather(*(share.cache.until_synced(20) for share in (one, other)))
    assert all(cache.synced for cache in caches)
    await eventually(lambda: proxy.watching == 2, "both caches follow")

    other.release()
    one.release()
    one.release()
    await eventually(lambda: proxy.watching == 1, "the other one has ended")
    await put(client, namespace, "a")
    await eventually(lambda: two.cache.get(Key(namespace, "a")), "the second user still hears")
    two.release()
    await eventually(lambda: proxy.watching == 0, "nobody needs it any more")
    assert list(caches) == []

    again = caches.share(CONFIG_MAPS, SETTINGS, ours)
    assert again.cache is not two.cache
    await again.cache.until_synced(20)
    assert len(again.cache) == 1
    await caches.close()
    await eventually(lambda: proxy.watching == 0, "closing ends every stream")


async def test_indexes_follow(client: Client, namespace: str) -> None:
    await put(client, namespace, "a", colour="red")
    async with following(client, namespace) as run:
        run.cache.add_index("colour", lambda value: [value.data["colour"]])
        a, b = Key(namespace, "a"), Key(namespace, "b")
        assert run.cache.by("colour", "red") == {a}
        await put(client, namespace, "b", colour="red")
        await eventually(lambda: run.cache.by("colour", "red") == {a, b}, "both are red")
        await put(client, namespace, "a", colour="blue")
        await eventually(lambda: run.cache.by("colour", "blue") == {a}, "one is blue")
        assert run.cache.by("colour", "red") == {b}
        await remove(client, namespace, "b")
        await eventually(lambda: not run.cache.by("colour", "red"), "none is red")
