"""The store: whole trees or none, whatever happens, and only as many as fit."""

import asyncio
import os
import stat
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from pathlib import Path

import pytest
from prometheus_client import REGISTRY

from pequod.sources import tree
from pequod.sources.limits import Limits
from pequod.sources.store import Capacity, Fill, Store

Open = Callable[..., Awaitable[Store]]


def filling(**files: str) -> Fill:
    async def fill(folder: Path) -> None:
        for name, text in files.items():
            (folder / name).write_text(text)

    return fill


@pytest.fixture
async def opened(tmp_path: Path) -> AsyncIterator[Open]:
    """Opens stores on one folder, each like a process of its own."""
    async with AsyncExitStack() as ends:

        async def open_one(capacity: Capacity | None = None, limits: Limits | None = None) -> Store:
            store = Store(tmp_path / "store", capacity=capacity, limits=limits)
            await store.open()
            ends.callback(store.close)
            return store

        yield open_one


@pytest.fixture
async def store(opened: Open) -> Store:
    return await opened()


def used(store: Store, digest: str, *, seconds_ago: float) -> None:
    place = store.place(digest)
    then = place.stat().st_mtime - seconds_ago
    os.utime(place, (then, then))


async def test_what_is_added_is_found(store: Store) -> None:
    digest = await store.add(filling(a="1"))
    place = await store.find(digest)
    assert place is not None
    assert (place / "a").read_text() == "1"
    assert tree.digest(place) == digest


async def test_the_same_tree_is_kept_once(store: Store, tmp_path: Path) -> None:
    assert await store.add(filling(a="1")) == await store.add(filling(a="1"))
    assert len(list((tmp_path / "store" / "trees").iterdir())) == 1


async def test_what_was_never_added_is_not_found(store: Store) -> None:
    assert await store.find("sha256:" + "0" * 64) is None


async def test_case_74_a_tree_that_breaks_a_rule_leaves_nothing(
    store: Store, tmp_path: Path
) -> None:
    async def fill(folder: Path) -> None:
        (folder / "link").symlink_to("/etc/passwd")

    with pytest.raises(tree.TreeError):
        await store.add(fill)
    assert list((tmp_path / "store" / "trees").iterdir()) == []
    assert list((tmp_path / "store" / "incoming").iterdir()) == []


async def test_what_fails_in_the_middle_leaves_nothing(store: Store, tmp_path: Path) -> None:
    async def fill(folder: Path) -> None:
        (folder / "a").write_text("half")
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await store.add(fill)
    assert list((tmp_path / "store" / "incoming").iterdir()) == []


async def test_a_tree_cannot_be_changed(store: Store) -> None:
    place = store.place(await store.add(filling(a="1")))
    assert stat.S_IMODE(place.stat().st_mode) == 0o555
    assert stat.S_IMODE((place / "a").stat().st_mode) == 0o444


async def test_what_a_crash_left_half_filled_is_removed_at_the_next_start(
    opened: Open, tmp_path: Path
) -> None:
    half = tmp_path / "store" / "incoming" / "tmp-of-the-dead"
    half.mkdir(parents=True)
    (half / "a").write_text("half")
    half.chmod(0o555)
    store = await opened()
    assert not half.exists()
    assert await store.find(tree.digest(tmp_path / "store" / "trees")) is None


async def test_a_second_process_leaves_alone_what_the_first_one_fills(
    store: Store, opened: Open
) -> None:
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def fill(folder: Path) -> None:
        (folder / "a").write_text("1")
        begun.set()
        await go_on.wait()
        (folder / "b").write_text("2")

    adding = asyncio.create_task(store.add(fill))
    await begun.wait()
    await opened()
    go_on.set()
    place = store.place(await adding)
    assert {one.name for one in place.iterdir()} == {"a", "b"}


async def test_two_processes_that_add_the_same_tree_agree(store: Store, opened: Open) -> None:
    other = await opened()
    for number in range(20):
        fill = filling(a=str(number), b="x" * 1000)
        first, second = await asyncio.gather(store.add(fill), other.add(fill))
        assert first == second
        assert await store.find(first) == await other.find(first)


async def test_a_tree_that_appears_at_the_last_moment_is_the_one_that_is_kept(
    store: Store, tmp_path: Path
) -> None:
    """Another process was faster: a folder cannot be renamed onto another one."""
    digest = await store.add(filling(a="1"))
    late = tmp_path / "late"
    late.mkdir()
    (late / "a").write_text("1")
    store._settle(late, store.place(digest))
    assert late.exists()
    assert await store.find(digest) is not None


def _rotten() -> float:
    return REGISTRY.get_sample_value("pequod_source_cache_rotten_total") or 0


async def test_rot_is_noticed_at_the_first_use_of_a_process(store: Store, opened: Open) -> None:
    digest = await store.add(filling(a="1"))
    before = _rotten()
    place = store.place(digest)
    (place / "a").chmod(0o644)
    (place / "a").write_text("2")
    another = await opened()
    assert await another.find(digest) is None
    assert not place.exists()
    assert _rotten() == before + 1


async def test_a_rotten_tree_is_replaced_when_it_is_added_again(store: Store, opened: Open) -> None:
    digest = await store.add(filling(a="1"))
    (store.place(digest) / "b").write_text("planted")
    another = await opened()
    assert await another.add(filling(a="1")) == digest
    assert [one.name for one in another.place(digest).iterdir()] == ["a"]


async def test_the_longest_unused_tree_goes_first(opened: Open) -> None:
    store = await opened(Capacity(trees=2))
    old, young = await store.add(filling(a="1")), await store.add(filling(a="2"))
    used(store, old, seconds_ago=20)
    used(store, young, seconds_ago=10)
    assert await store.find(old) is not None
    new = await store.add(filling(a="3"))
    assert await store.find(young) is None
    assert await store.find(old) is not None
    assert await store.find(new) is not None


async def test_trees_that_are_too_large_together_go(opened: Open) -> None:
    store = await opened(Capacity(total_bytes=25))
    digests: list[str] = []
    for number in range(4):
        for known in digests:
            used(store, known, seconds_ago=10)
        digests.append(await store.add(filling(a=str(number) * 10)))
        digests = [one for one in digests if store.place(one).exists()]
    assert len(digests) == 2


async def test_what_nobody_uses_for_long_goes(opened: Open) -> None:
    store = await opened(Capacity(unused_seconds=100))
    old = await store.add(filling(a="1"))
    used(store, old, seconds_ago=101)
    await store.add(filling(a="2"))
    assert not store.place(old).exists()


async def test_what_somebody_uses_stays(opened: Open) -> None:
    store = await opened(Capacity(trees=1))
    digest = await store.add(filling(a="1"))
    async with store.using(digest) as place:
        used(store, digest, seconds_ago=10**7)
        await store.add(filling(a="2"))
        await store.evict()
        assert place is not None
        assert (place / "a").read_text() == "1"
    used(store, digest, seconds_ago=10**7)
    await store.evict()
    assert await store.find(digest) is None


async def test_the_newest_tree_stays_although_nothing_fits(opened: Open) -> None:
    store = await opened(Capacity(total_bytes=1, trees=0))
    digest = await store.add(filling(a="much too large"))
    assert await store.find(digest) is not None


async def test_while_another_process_is_there_nothing_goes(store: Store, opened: Open) -> None:
    small = await opened(Capacity(trees=1))
    first = await small.add(filling(a="1"))
    await small.add(filling(a="2"))
    assert await small.find(first) is not None
    store.close()
    used(small, first, seconds_ago=10)
    await small.evict()
    assert await small.find(first) is None


HOLDER = """
import asyncio, sys
from pathlib import Path
from pequod.sources.store import Store

async def main(root):
    store = Store(root)
    await store.open()
    async def fill(folder):
        (folder / "a").write_text("half")
        print("filling", flush=True)
        await asyncio.sleep(600)
    await store.add(fill)

asyncio.run(main(Path(sys.argv[1])))
"""


async def test_a_process_killed_while_filling_leaves_nothing_to_find(
    opened: Open, tmp_path: Path
) -> None:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", HOLDER, str(tmp_path / "store")),
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    assert await process.stdout.readline() == b"filling\n"
    during = await opened()
    assert len(list((tmp_path / "store" / "incoming").iterdir())) == 1
    during.close()
    process.kill()
    await process.communicate()
    await opened()
    assert list((tmp_path / "store" / "incoming").iterdir()) == []
    assert list((tmp_path / "store" / "trees").iterdir()) == []


async def test_many_readers_of_one_store_see_whole_trees_only(opened: Open) -> None:
    """Some add, some read, and what does not fit goes meanwhile."""
    store = await opened(Capacity(trees=3))

    async def read(number: int) -> None:
        for round_ in range(10):
            text = str((number + round_) % 6)
            digest = await store.add(filling(a=text, b=text))
            async with store.using(digest) as place:
                if place is not None:
                    assert (place / "a").read_text() == (place / "b").read_text() == text

    await asyncio.gather(*(read(number) for number in range(8)))


async def test_scratch_is_gone_after_its_block(store: Store) -> None:
    async with store.scratch() as folder:
        (folder / "a").write_text("1")
    assert not folder.exists()


async def test_a_store_says_that_it_can_be_written_to(store: Store) -> None:
    await store.add(filling(a="1"))
    assert store.usable() == "writable, 1 trees"


async def test_cancelling_at_any_moment_leaves_whole_trees_or_none(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    await store.open()

    async def fill(folder: Path) -> None:
        for number in range(300):
            (folder / f"file-{number}").write_text(str(number))

    for step in range(40):
        adding = asyncio.create_task(store.add(fill))
        await asyncio.sleep(step / 2000)
        adding.cancel()
        with suppress(asyncio.CancelledError):
            await adding
        for place in (tmp_path / "store/trees").iterdir():
            assert tree.digest(place) == f"sha256:{place.name}"
            assert await store.find(f"sha256:{place.name}") == place
            store._discard(f"sha256:{place.name}")
    store.close()
