"""Our copies of repositories: damaged, worn, too many."""

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from doubles.gitserver import GitServer, Names
from pequod.kube.addresses import AddressRule
from pequod.sources.credentials import Credentials
from pequod.sources.git.address import GitReference, parse
from pequod.sources.git.mirrors import MirrorCapacity
from pequod.sources.git.source import GitOptions, GitSource
from pequod.sources.limits import Limits
from pequod.sources.store import Capacity, Store

Refer = Callable[..., GitReference]
Make = Callable[..., Awaitable[GitSource]]


def _mirrors(tmp_path: Path) -> list[Path]:
    return sorted((tmp_path / "git" / "0" / "mirrors").iterdir())


def _truncate_packs(mirror: Path) -> None:
    for pack in (mirror / "objects" / "pack").glob("*.pack"):
        pack.chmod(0o600)
        pack.write_bytes(pack.read_bytes()[:100])


def _lose_packs(mirror: Path) -> None:
    for pack in (mirror / "objects" / "pack").iterdir():
        pack.unlink()


def _spoil_config(mirror: Path) -> None:
    (mirror / "config").write_text("[core\n")


def _lose_head(mirror: Path) -> None:
    (mirror / "HEAD").unlink()


@pytest.mark.parametrize("damage", [_truncate_packs, _lose_packs, _spoil_config, _lose_head])
@pytest.mark.parametrize("query", ["ref=main", "ref=main&path=d"])
async def test_a_damaged_mirror_is_made_again(
    server: GitServer,
    source: GitSource,
    trust: Credentials,
    tmp_path: Path,
    damage: Callable[[Path], None],
    query: str,
) -> None:
    repository = server.repository()
    repository.commit({"a": "1", "d/b": "2"})
    wanted = parse(f"{server.url()}?{query}")
    await source.resolve(wanted, credentials=trust)
    damage(_mirrors(tmp_path)[0])
    repository.commit({"d/a": "3"})
    artifact = await source.resolve(wanted, credentials=trust)
    inside = artifact.tree / ("a" if "path" in query else "d/a")
    assert inside.read_text() == "3"


async def test_a_mirror_that_has_lost_a_commit_is_made_again(
    server: GitServer, source: GitSource, trust: Credentials, reference: Refer, tmp_path: Path
) -> None:
    commit = server.repository().commit({"a": "1"})
    first = await source.resolve(reference(f"ref={commit}"), credentials=trust)
    _lose_packs(_mirrors(tmp_path)[0])
    again = await source.resolve(reference(f"ref={commit}"), credentials=trust)
    assert again.digest == first.digest


async def test_a_mirror_that_a_crash_left_locked_is_used(
    server: GitServer, source: GitSource, trust: Credentials, reference: Refer, tmp_path: Path
) -> None:
    repository = server.repository()
    repository.commit({"a": "1"})
    await source.resolve(reference("ref=main"), credentials=trust)
    mirror = _mirrors(tmp_path)[0]
    (mirror / "shallow.lock").touch()
    (mirror / "objects" / "pack" / "tmp_pack_x").touch()
    repository.commit({"a": "2"})
    server.journal.clear()
    await source.resolve(reference("ref=main"), credentials=trust)
    assert len(server.fetches) == 1
    assert b"have " in server.fetches[0].body


async def test_the_longest_unused_mirrors_go_when_there_are_too_many(
    server: GitServer, make_source: Make, trust: Credentials, reference: Refer, tmp_path: Path
) -> None:
    source = await make_source(options=_options(MirrorCapacity(mirrors=2)))
    names: list[set[str]] = []
    for name in ("one", "two", "three"):
        server.repository(name).commit({"a": name})
        await source.resolve(reference("ref=main", name), credentials=trust)
        names.append({mirror.name for mirror in _mirrors(tmp_path)})
    first, both, last = names
    assert len(last) == 2
    assert both - first < last
    assert not first & last


async def test_a_mirror_that_has_grown_by_many_fetches_is_made_again(
    server: GitServer, make_source: Make, trust: Credentials, reference: Refer, tmp_path: Path
) -> None:
    source = await make_source(options=_options(MirrorCapacity(packs=2)))
    repository = server.repository()
    for number in range(4):
        repository.commit({"a": str(number)})
        artifact = await source.resolve(reference("ref=main"), credentials=trust)
        assert (artifact.tree / "a").read_text() == str(number)
        packs = list(_mirrors(tmp_path)[0].glob("objects/pack/*.pack"))
        assert len(packs) == 1 + number % 2


async def test_what_the_store_has_lost_is_fetched_from_the_mirror_without_the_server(
    server: GitServer, trust: Credentials, reference: Refer, tmp_path: Path
) -> None:
    commit = server.repository().commit({"a": "1"})
    store = Store(tmp_path / "store", limits=Limits(seconds=20), capacity=Capacity(trees=0))
    await store.open()
    source = GitSource(store, tmp_path / "git", _options(MirrorCapacity()))
    await source.open()
    wanted = reference(f"ref={commit}")
    first = await source.resolve(wanted, credentials=trust)
    await store.evict()
    assert await store.find(first.digest) is None
    server.journal.clear()
    again = await source.resolve(wanted, credentials=trust, known=first)
    assert (again.tree / "a").read_text() == "1"
    assert not server.journal
    source.close()
    store.close()


def _options(capacity: MirrorCapacity) -> GitOptions:
    return GitOptions(
        rule=AddressRule(allow_local=True), resolver=Names(), max_age=0, capacity=capacity
    )
