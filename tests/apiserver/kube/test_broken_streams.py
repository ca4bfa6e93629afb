"""Whatever happens to a stream, the cache goes on, asks for no more than it needs, and is right."""

import asyncio
from collections.abc import AsyncIterator
from functools import partialmethod
from itertools import pairwise

import msgspec
import pytest
from aiohttp import web

from faultactions import (
    Gate,
    answer,
    cut_in_a_character,
    drop,
    duplicating,
    edited,
    ending,
    injecting,
)
from faultproxy import Action, Exchange, FaultProxy, calls, follows, lists
from following import GONE, following, line, put, remove, settings
from pequod.kube import watch
from pequod.kube.cache import Unreadable
from pequod.kube.client import Client
from pequod.kube.kinds import CONFIG_MAPS, SECRETS
from waiting import eventually


def gaps(proxy: FaultProxy) -> list[float]:
    """Seconds between one list and the next."""
    return [after.at - before.at for before, after in pairwise(proxy.asked(lists))]


async def test_case_15_another_object_of_the_same_name_is_seen_as_such(
    client: Client, proxy: FaultProxy, proxied: Client, namespace: str
) -> None:
    async def without_deletions(lines: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        async for event in lines:
            if not event.startswith(b'{"type":"DELETED"'):
                yield event

    proxy.rule(follows, edited(without_deletions))
    await put(client, namespace, "a", a="1")
    async with following(proxied, namespace) as run:
        await remove(client, namespace, "a")
        await put(client, namespace, "a", a="1")
        await eventually(lambda: len(run.of("a")) == 2, "the new one was told")
        change = run.of("a")[-1]
        assert change.before is not None
        assert change.after is not None
        assert change.before.metadata.uid != change.after.metadata.uid
        await run.equals(client)


async def test_case_16_duplicates_are_told_once(
    client: Client, proxy: FaultProxy, proxied: Client, namespace: str
) -> None:
    proxy.rule(lambda call: call.watches, duplicating)
    await put(client, namespace, "a", "b", a="1")
    async with following(proxied, namespace) as run:
        await put(client, namespace, "a", a="2")
        await remove(client, namespace, "b")
        await put(client, namespace, "last")
        await eventually(lambda: run.get("last"), "everything was told")
        assert [len(run.of(name)) for name in ("a", "b", "last")] == [2, 2, 1]


async def test_case_16_what_comes_late_changes_nothing(
    client: Client, proxy: FaultProxy, proxied: Client, namespace: str
) -> None:
    async def repeating_all(lines: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        before: list[bytes] = []
        async for event in lines:
            before.append(event)
            for again in (event, *before):
                yield again

    proxy.rule(follows, edited(repeating_all))
    async with following(proxied, namespace) as run:
        await put(client, namespace, "a", a="1")
        await put(client, namespace, "a", a="2")
        await remove(client, namespace, "a")
        await put(client, namespace, "last")
        await eventually(lambda: run.get("last"), "everything was told")
        assert run.names() == ["last"]
        assert len(run.of("a")) == 3


async def test_case_17_an_expired_stream_is_listed_again_and_the_difference_told_once(
    client: Client, proxy: FaultProxy, proxied: Client, namespace: str
) -> None:
    gate = Gate()

    async def gone_when_opened(_: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        await gate.opened.wait()
        yield GONE + b"\n"

    proxy.rule(follows, edited(gone_when_opened), times=1)
    await put(client, namespace, "kept", "changed", "removed", "replaced", a="1")
    async with following(proxied, namespace) as run:
        await put(client, namespace, "changed", a="2")
        await remove(client, namespace, "removed", "replaced")
        await put(client, namespace, "replaced", "added", a="1")
        run.changes.clear()
        gate.open()
        await run.equals(client)
        told = sorted(change.key.name for change in run.changes)
        assert told == ["added", "changed", "removed", "replaced"]
        assert run.of("removed")[0].after is None
        await put(client, namespace, "later")
        await eventually(lambda: run.get("later"), "it follows again")
        assert run.cache.failure is None
    assert len(proxy.asked(lists)) == 2


async def test_case_17_what_expires_at_once_is_not_listed_in_a_busy_loop(
    client: Client, proxy: FaultProxy, proxied: Client, namespace: str
) -> None:
    always = proxy.rule(follows, answer(410, "too old", reason="Expired"))
    async with following(proxied, namespace) as run:
        await eventually(lambda: len(proxy.asked(lists)) >= 5, "it was listed again and again")
        first, *others = gaps(proxy)
        assert first < others[0] < others[1] < others[2]
        always.remove()
        await put(client, namespace, "later")
        await run.equals(client)


async def test_case_17_an_event_that_says_expired_each_time_makes_no_busy_loop(
    proxy: FaultProxy, proxied: Client, namespace: str
) -> None:
    proxy.rule(follows, injecting(GONE))
    async with following(proxied, namespace):
        await eventually(lambda: len(proxy.asked(lists)) >= 5, "it was listed again and again")
        assert gaps(proxy)[3] > 0.5


async def test_case_17_a_list_that_expires_between_pages_forgets_its_first_pages(
    monkeypatch: pytest.MonkeyPatch,
    client: Client,
    proxy: FaultProxy,
    proxied: Client,
    namespace: str,
) -> None:
    monkeypatch.setattr(Client, "pages", partialmethod(Client.pages, limit=2))
    await put(client, namespace, *"abcde")

    async def expired(exchange: Exchange) -> web.StreamResponse:
        await remove(client, namespace, "a")
        return await answer(410, "expired", reason="Expired")(exchange)

    proxy.rule(calls(sendInitialEvents="true"), answer(422))
    proxy.rule(lambda call: "continue" in call.query, expired, times=1)
    async with following(proxied, namespace) as run:
        assert run.names() == [*"bcde"]
        await put(client, namespace, "f")
        await run.equals(client)
    await put(client, namespace, "a")
    proxy.rule(lambda call: "continue" in call.query, expired, times=1)
    listed = await proxied.list(CONFIG_MAPS, run.selection)
    assert [found["metadata"]["name"] for found in listed] == [*"bcdef"]


@pytest.mark.parametrize("silence", ["before the first byte", "after the headers"])
async def test_case_18_a_silent_watch_is_found_and_followed_again(
    silence: str, client: Client, proxy: FaultProxy, proxied: Client, namespace: str
) -> None:
    gate = Gate()
    proxy.rule(follows, gate.hold if silence == "after the headers" else gate.stall, times=1)
    async with following(proxied, namespace, idle=1.0) as run:
        await put(client, namespace, "a")
        await eventually(lambda: run.names() == ["a"], "it is heard of all the same", within=5)
    assert len(proxy.asked(lists)) == 1


async def test_case_19_streams_that_end_all_the_time_go_on_where_they_were(
    client: Client, proxy: FaultProxy, proxied: Client, namespace: str
) -> None:
    proxy.rule(follows, ending(events=1))
    async with following(proxied, namespace) as run:
        for number in range(8):
            await put(client, namespace, f"n{number}")
        await remove(client, namespace, "n3")
        await run.equals(client)
        assert len(run.changes) == 9
    assert len(proxy.asked(lists)) == 1
    versions = [int(call.query["resourceVersion"]) for call in proxy.asked(follows)]
    assert versions == sorted(set(versions))


async def test_case_19_streams_that_end_at_once_are_not_asked_for_in_a_busy_loop(
    client: Client, proxy: FaultProxy, proxied: Client, namespace: str
) -> None:
    at_once = proxy.rule(follows, ending(events=0))
    async with following(proxied, namespace) as run:
        await eventually(lambda: len(proxy.asked(follows)) >= 4, "it was asked for again")
        times = [call.at for call in proxy.asked(follows)]
        assert times[3] - times[0] > 0.5
        at_once.remove()
        await put(client, namespace, "a")
        await eventually(lambda: run.names() == ["a"], "it follows")
    assert len(proxy.asked(lists)) == 1


@pytest.mark.parametrize(
    "raw",
    [
        b"{",
        b"",
        b"null",
        b'{"type":"ADDED"}',
        b"\xff\xfe",
        b'{"type":"\xff","object":{}}',
        b"[" * 100_000,
    ],
    ids=["cut", "empty", "null", "nothing", "no text", "no type", "deep"],
)
async def test_case_20_a_line_that_makes_no_sense_ends_the_stream_only(
    raw: bytes, client: Client, proxy: FaultProxy, proxied: Client, namespace: str
) -> None:
    proxy.rule(follows, injecting(raw, after=1), times=1)
    async with following(proxied, namespace) as run:
        await put(client, namespace, "a", "b", "c")
        await eventually(lambda: run.names() == ["a", "b", "c"], "the rest came by another stream")
    assert len(proxy.asked(lists)) == 1


async def test_case_20_a_stream_that_ends_within_a_character_loses_nothing(
    client: Client, proxy: FaultProxy, proxied: Client, namespace: str
) -> None:
    proxy.rule(follows, cut_in_a_character, times=1)
    async with following(proxied, namespace) as run:
        await put(client, namespace, "a", text="Größe ∞ 🐋")
        await eventually(lambda: run.names() == ["a"], "the whole object is here")
        await run.equals(client)
        assert [value.data for value in run.cache.values()] == [{"text": "Größe ∞ 🐋"}]
    assert len(proxy.asked(lists)) == 1


def after_the_first(namespace: str, name: str, text: bytes) -> Action:
    """Send an object that the API server does not know, as if it had been made after another."""

    async def edit(lines: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        first = await anext(lines)
        yield first
        version = int(msgspec.json.decode(first)["object"]["metadata"]["resourceVersion"])
        object_ = settings(namespace, name, text="PLACE")
        object_["metadata"] |= {"uid": "u", "resourceVersion": str(version + 1)}
        yield line("ADDED", object_).replace(b"PLACE", text) + b"\n"
        async for event in lines:
            yield event

    return edited(edit)


@pytest.mark.parametrize("text", [b"\xff\xc3", b"x" * 5 * 2**20], ids=["no text", "5 MB"])
async def test_case_20_an_object_without_text_or_an_end_is_that_objects_problem(
    text: bytes, client: Client, proxy: FaultProxy, proxied: Client, namespace: str
) -> None:
    proxy.rule(follows, after_the_first(namespace, "odd", text), times=1)
    async with following(proxied, namespace) as run:
        await put(client, namespace, "first")
        await eventually(lambda: run.names() == ["first", "odd"], "it is an entry of its own")
        assert isinstance(run.get("odd"), Unreadable) == (text == b"\xff\xc3")
        await client.create(SECRETS, {"metadata": {"name": "s", "namespace": namespace}})
        await put(client, namespace, "second")
        await eventually(lambda: run.get("second"), "the others are served")
    assert len(proxy.asked(follows)) == 1


async def test_case_20_a_line_without_an_end_does_not_fill_the_memory(
    monkeypatch: pytest.MonkeyPatch,
    client: Client,
    proxy: FaultProxy,
    proxied: Client,
    namespace: str,
) -> None:
    monkeypatch.setattr(watch, "LONGEST_LINE", 2**20)
    proxy.rule(follows, after_the_first(namespace, "large", b"x" * 5 * 2**20), times=1)
    async with following(proxied, namespace) as run:
        await put(client, namespace, "a")
        await put(client, namespace, "b")
        await eventually(lambda: run.names() == ["a", "b"], "it went on without that line")
    assert len(proxy.asked(lists)) == 1


async def test_case_21_bookmarks_alone_are_no_list(
    client: Client, proxy: FaultProxy, proxied: Client, namespace: str
) -> None:
    gate = Gate()
    bookmark = {"kind": "ConfigMap", "metadata": {"resourceVersion": "1"}}

    async def bookmarks_first(lines: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        for _ in range(3):
            yield line("BOOKMARK", bookmark) + b"\n"
        await gate.opened.wait()
        async for event in lines:
            yield event

    proxy.rule(lists, edited(bookmarks_first))
    await put(client, namespace, "a")
    async with following(proxied, namespace, synced=False) as run:
        heard = run.watch.heard
        await eventually(lambda: run.watch.heard > heard, "the bookmarks are heard")
        assert not run.cache.synced
        gate.open()
        await run.cache.until_synced(20)
        assert run.names() == ["a"]


async def test_case_21_a_list_that_ends_without_its_mark_drops_nothing(
    client: Client, proxy: FaultProxy, proxied: Client, namespace: str
) -> None:
    await put(client, namespace, "a", "b")
    async with following(proxied, namespace) as run:
        half = proxy.rule(lists, ending(events=1))
        proxy.rule(follows, answer(410, reason="Expired"), times=1)
        await proxy.stop()
        await proxy.start()
        await eventually(lambda: half.seen >= 2, "two lists have broken off")
        assert run.names() == ["a", "b"]
        await eventually(lambda: run.cache.failure, "that is known")
        half.remove()
        await remove(client, namespace, "a")
        await eventually(lambda: run.names() == ["b"], "a whole list decides")


async def test_a_store_that_went_back_in_time_is_listed_again(
    client: Client, proxy: FaultProxy, proxied: Client, namespace: str
) -> None:
    earlier = line("BOOKMARK", {"kind": "ConfigMap", "metadata": {"resourceVersion": "1"}})
    proxy.rule(follows, injecting(earlier), times=1)
    async with following(proxied, namespace) as run:
        await eventually(lambda: len(proxy.asked(lists)) == 2, "it was listed again")
        await put(client, namespace, "a")
        await eventually(lambda: run.names() == ["a"], "it follows")


async def test_lists_that_cannot_be_streamed_are_paged_in_the_end(
    client: Client, proxy: FaultProxy, proxied: Client, namespace: str
) -> None:
    await put(client, namespace, "a", a="1")
    streamed = proxy.rule(calls(sendInitialEvents="true"), drop)
    async with following(proxied, namespace, synced=False) as run:
        await run.equals(client)
    assert streamed.seen <= 2 * watch.PATIENT_LISTS, "each is asked for twice at most"


async def test_streams_end_without_a_trace(
    proxy: FaultProxy, proxied: Client, namespace: str
) -> None:
    before = asyncio.all_tasks()
    for _ in range(3):
        async with following(proxied, namespace):
            await eventually(lambda: proxy.watching == 1, "it follows")
        await eventually(lambda: proxy.watching == 0, "it has ended")
    ours = [task for task in asyncio.all_tasks() - before if "proxy" not in repr(task)]
    assert not [task for task in ours if "pequod" in repr(task.get_coro())]
