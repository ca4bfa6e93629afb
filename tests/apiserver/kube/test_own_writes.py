"""What a cache answers is never older than our own writes (case 13)."""

import msgspec
import pytest

from faultactions import Gate
from faultproxy import FaultProxy, follows, lists
from following import Following, Settings, following, put, remove, settings
from pequod.kube.client import Client, Exactly
from pequod.kube.kinds import CONFIG_MAPS
from pequod.kube.objects import Key
from waiting import eventually


@pytest.fixture
def gate(proxy: FaultProxy) -> Gate:
    """Holds back everything that the watch would tell after the list."""
    made = Gate()
    proxy.rule(follows, made.hold)
    return made


async def write(client: Client, run: Following[Settings], **data: str) -> None:
    """Write to the object `a` as a controller does."""
    with run.cache.writing(Key(run.namespace, "a")):
        answer = await client.patch(CONFIG_MAPS, "a", {"data": data}, namespace=run.namespace)
        run.cache.observe(answer)


def data(run: Following[Settings]) -> dict[str, str] | None:
    found = run.get("a")
    return found.data if isinstance(found, Settings) else None


async def last_event(client: Client, run: Following[Settings], gate: Gate) -> None:
    """Let the watch catch up with everything."""
    await put(client, run.namespace, "last")
    gate.open()
    await eventually(lambda: run.get("last"), "the watch has caught up")


async def test_case_13_our_write_is_there_before_the_watch_tells_of_it(
    client: Client, proxied: Client, namespace: str, gate: Gate
) -> None:
    await put(client, namespace, "a", a="1")
    async with following(proxied, namespace) as run:
        await write(proxied, run, a="2")
        assert data(run) == {"a": "2"}
        await write(proxied, run, a="3")
        assert data(run) == {"a": "3"}
        assert [change.ours for change in run.of("a")] == [False, True, True]

        run.changes.clear()
        await last_event(client, run, gate)
        assert data(run) == {"a": "3"}
        assert run.of("a") == [], "the echoes are no news"


async def test_case_13_what_comes_late_does_not_undo_our_write(
    client: Client, proxied: Client, namespace: str, gate: Gate
) -> None:
    await put(client, namespace, "a", a="1")
    async with following(proxied, namespace) as run:
        await put(client, namespace, "a", a="theirs")
        await write(proxied, run, a="ours")
        run.changes.clear()
        await last_event(client, run, gate)
        assert data(run) == {"a": "ours"}
        assert run.of("a") == []


async def test_case_13_a_change_of_somebody_else_that_came_along_is_told(
    client: Client, proxied: Client, namespace: str, gate: Gate
) -> None:
    await put(client, namespace, "a", a="1")
    async with following(proxied, namespace) as run:
        label = {"metadata": {"labels": {"theirs": "yes"}}}
        await client.patch(CONFIG_MAPS, "a", label, namespace=namespace)
        await write(proxied, run, a="2")
        change = run.of("a")[-1]
        assert not change.ours
        assert isinstance(change.after, Settings)
        assert change.after.metadata.labels == {"ours": "yes", "theirs": "yes"}
        assert change.after.data == {"a": "2"}
        run.changes.clear()
        await last_event(client, run, gate)
        assert run.of("a") == []


async def test_case_13_a_change_after_our_write_is_told(
    client: Client, proxied: Client, namespace: str, gate: Gate
) -> None:
    await put(client, namespace, "a", a="1")
    async with following(proxied, namespace) as run:
        await write(proxied, run, a="ours")
        await put(client, namespace, "a", a="theirs")
        run.changes.clear()
        await last_event(client, run, gate)
        assert data(run) == {"a": "theirs"}
        assert [change.ours for change in run.of("a")] == [False]


async def test_case_13_what_we_made_is_there_and_what_we_removed_is_not(
    client: Client, proxied: Client, namespace: str, gate: Gate
) -> None:
    async with following(proxied, namespace) as run:
        key = Key(namespace, "a")
        made = await proxied.create(CONFIG_MAPS, settings(namespace, "a", a="1"))
        run.cache.observe(msgspec.json.encode(made))
        assert data(run) == {"a": "1"}
        await write(proxied, run, a="2")

        uid = made["metadata"]["uid"]
        await proxied.delete(CONFIG_MAPS, "a", Exactly(uid), namespace=namespace)
        run.cache.observe_removal(key, uid)
        assert data(run) is None
        run.changes.clear()
        await last_event(client, run, gate)
        assert data(run) is None
        assert run.of("a") == [], "it was not even there for a moment"


async def test_case_13_another_object_of_the_same_name_is_not_taken_for_the_removed_one(
    client: Client, proxied: Client, namespace: str, gate: Gate
) -> None:
    made = await client.create(CONFIG_MAPS, settings(namespace, "a", a="1"))
    async with following(proxied, namespace) as run:
        uid = made["metadata"]["uid"]
        await proxied.delete(CONFIG_MAPS, "a", Exactly(uid), namespace=namespace)
        await put(client, namespace, "a", a="new")
        run.cache.observe_removal(Key(namespace, "a"), uid)
        assert data(run) is None
        await last_event(client, run, gate)
        assert data(run) == {"a": "new"}
        await run.equals(client)


async def test_case_13_an_answer_that_comes_after_the_removal_was_told_brings_nothing_back(
    client: Client, namespace: str
) -> None:
    async with following(client, namespace) as run:
        made = await client.create(CONFIG_MAPS, settings(namespace, "a"))
        await remove(client, namespace, "a")
        await put(client, namespace, "last")
        await eventually(lambda: run.get("last"), "the removal was told")
        run.cache.observe(msgspec.json.encode(made))
        assert run.names() == ["last"]


async def test_case_13_what_we_made_and_others_removed_before_the_list_is_gone_with_it(
    client: Client, proxy: FaultProxy, proxied: Client, namespace: str
) -> None:
    gate = Gate()
    proxy.rule(lists, gate.stall)
    async with following(proxied, namespace, synced=False) as run:
        await eventually(lambda: proxy.watching == 1, "the list is asked for")
        made = await client.create(CONFIG_MAPS, settings(namespace, "a"))
        await remove(client, namespace, "a")
        run.cache.observe(msgspec.json.encode(made))
        gate.open()
        await run.cache.until_synced(20)
        assert run.names() == []


async def test_case_13_what_we_made_and_removed_while_the_list_is_sent_follows_our_writes(
    client: Client, proxy: FaultProxy, proxied: Client, namespace: str, gate: Gate
) -> None:
    sending = Gate()
    proxy.rule(lists, sending.hold)
    old = await client.create(CONFIG_MAPS, settings(namespace, "old"))
    async with following(proxied, namespace, synced=False) as run:
        await eventually(lambda: proxy.asked(lists), "the list was made")
        made = await client.create(CONFIG_MAPS, settings(namespace, "new"))
        run.cache.observe(msgspec.json.encode(made))
        await remove(client, namespace, "old")
        run.cache.observe_removal(Key(namespace, "old"), old["metadata"]["uid"])
        sending.open()
        await run.cache.until_synced(20)
        assert run.names() == ["new"]
        await last_event(client, run, gate)
        assert run.names() == ["last", "new"]
        assert run.of("old") == []


async def test_only_an_answer_to_us_makes_a_version_certain(
    client: Client, proxied: Client, namespace: str
) -> None:
    await put(client, namespace, "a", a="1")
    async with following(proxied, namespace) as run:
        key = Key(namespace, "a")
        found = run.get("a")
        assert isinstance(found, Settings)
        assert not run.cache.is_certain(key, found.metadata.resource_version)
        answer = await proxied.get_bytes(CONFIG_MAPS, "a", namespace=namespace)
        known = run.cache.observe(answer, certain=True)
        assert run.cache.is_certain(key, known.metadata.resource_version)
        await put(client, namespace, "a", a="2")
        await eventually(lambda: data(run) == {"a": "2"}, "the watch has told of the change")
        later = run.get("a")
        assert isinstance(later, Settings)
        assert not run.cache.is_certain(key, later.metadata.resource_version)
        await remove(client, namespace, "a")
        await eventually(lambda: run.get("a") is None, "it is gone")
        assert not run.cache.is_certain(key, known.metadata.resource_version)
