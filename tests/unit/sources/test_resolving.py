"""From any reference to its artifact: asked once, tried again, remembered."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from pequod.sources.artifact import Artifact
from pequod.sources.credentials import ANONYMOUS, Credentials
from pequod.sources.errors import MissingError, SourceError, UnavailableError
from pequod.sources.resolver import Reference, Resolver
from pequod.sources.store import Store

MODULE = Reference(type="git", ref="https://example.com/a.git?ref=main")


@dataclass
class Shelf:
    """A source that yields what a test puts there."""

    store: Store
    text: str = "first"
    failures: list[type[SourceError]] = field(default_factory=list)
    asked: int = 0
    slow: asyncio.Event | None = None

    async def resolve(
        self,
        ref: str,
        /,
        *,
        credentials: Credentials = ANONYMOUS,
        known: Artifact | None = None,
    ) -> Artifact:
        self.asked += 1
        if self.slow is not None:
            await self.slow.wait()
        if self.failures:
            raise self.failures.pop(0)(ref, step="poll", problem="broken", next_step="wait")
        revision = f"{credentials.fingerprint}{self.text}"
        if known is not None and known.revision == revision:
            return known

        async def fill(folder: Path) -> None:
            (folder / "module.cue").write_text(self.text)

        digest = await self.store.add(fill)
        return Artifact(
            digest=digest,
            revision=revision,
            tree=self.store.place(digest),
            fetched_at=datetime.now(UTC),
        )


@dataclass
class Bench:
    store: Store
    shelf: Shelf
    folder: Path
    slept: list[float] = field(default_factory=list)

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)

    def resolver(self) -> Resolver:
        records = self.folder / "records"
        return Resolver(self.store, {"git": self.shelf}, records=records, sleep=self.sleep)


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    store = Store(tmp_path / "store")
    await store.open()
    yield Bench(store, Shelf(store), tmp_path)
    store.close()


async def test_what_passes_is_tried_again_a_few_times(bench: Bench) -> None:
    bench.shelf.failures = [UnavailableError, UnavailableError]
    found = await bench.resolver().resolve(MODULE)
    assert (found.tree / "module.cue").read_text() == "first"
    assert len(bench.slept) == 2
    assert bench.slept[0] < bench.slept[1]


async def test_what_does_not_pass_is_said_after_a_few_tries(bench: Bench) -> None:
    bench.shelf.failures = [UnavailableError] * 9
    with pytest.raises(UnavailableError, match="broken; wait"):
        await bench.resolver().resolve(MODULE)
    assert bench.shelf.asked == 3


async def test_a_definite_no_is_not_asked_twice(bench: Bench) -> None:
    bench.shelf.failures = [MissingError]
    with pytest.raises(MissingError):
        await bench.resolver().resolve(MODULE)
    assert (bench.shelf.asked, bench.slept) == (1, [])


async def test_equal_questions_at_the_same_time_are_asked_once(bench: Bench) -> None:
    bench.shelf.slow = asyncio.Event()
    resolver = bench.resolver()
    asking = [asyncio.create_task(resolver.resolve(MODULE)) for _ in range(20)]
    other = asyncio.create_task(resolver.resolve(replace(MODULE, ref="https://example.com/b.git")))
    await asyncio.sleep(0)
    asking.pop().cancel()
    bench.shelf.slow.set()
    assert len({(await one).digest for one in asking}) == 1
    await other
    assert bench.shelf.asked == 2


async def test_the_last_good_artifact_stays_usable_while_its_source_is_away(bench: Bench) -> None:
    resolver = bench.resolver()
    assert await resolver.last_good(MODULE) is None
    good = await resolver.resolve(MODULE)
    bench.shelf.failures = [UnavailableError] * 3
    with pytest.raises(UnavailableError):
        await resolver.resolve(MODULE)
    assert await resolver.last_good(MODULE) == good


async def test_the_last_good_artifact_survives_a_restart(bench: Bench) -> None:
    good = await bench.resolver().resolve(MODULE)
    again = bench.resolver()
    assert await again.last_good(MODULE) == good
    assert await again.resolve(MODULE) == good


async def test_an_artifact_whose_tree_was_evicted_is_no_longer_good(bench: Bench) -> None:
    resolver = bench.resolver()
    good = await resolver.resolve(MODULE)
    bench.store._discard(good.digest)
    assert await resolver.last_good(MODULE) is None
    assert (await resolver.resolve(MODULE)).digest == good.digest


async def test_nobody_gets_what_another_fetched_with_his_credentials(bench: Bench) -> None:
    resolver = bench.resolver()
    await resolver.resolve(MODULE, Credentials(fingerprint="somebody"))
    assert await resolver.last_good(MODULE) is None
    assert await resolver.last_good(MODULE, Credentials(fingerprint="another")) is None
    bench.shelf.failures = [MissingError]
    with pytest.raises(MissingError):
        await resolver.resolve(MODULE)


async def test_a_record_that_rotted_is_no_record(bench: Bench) -> None:
    await bench.resolver().resolve(MODULE)
    for record in (bench.folder / "records").iterdir():
        record.write_bytes(b"{")
    assert await bench.resolver().last_good(MODULE) is None
