"""ConfigMaps as modules."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from doubles.archives import files_of, member, tar, tar_of, targz_of, zip_of
from pequod.sources.configmap import add
from pequod.sources.errors import MissingError, RefusedError, TooLargeError
from pequod.sources.limits import MEBIBYTE, Limits
from pequod.sources.store import Store

NAME = "ConfigMap/team/module"


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    store = Store(tmp_path / "store", limits=Limits(tree_bytes=4 * MEBIBYTE))
    await store.open()
    yield store
    store.close()


async def test_cue_keys_become_files_and_others_are_ignored(store: Store) -> None:
    found = await add(store, NAME, {"a.cue": "a: 1", "README.md": "read me"}, {"logo.png": b"\x89"})
    assert files_of(found.tree) == {"a.cue": b"a: 1"}
    assert found.revision == found.digest


@pytest.mark.parametrize(
    ("key", "make"),
    [("m.tar.gz", targz_of), ("m.tgz", targz_of), ("m.tar", tar_of), ("m.zip", zip_of)],
)
async def test_archives_are_extracted_beside_them(store: Store, key: str, make: object) -> None:
    assert callable(make)
    files = {"cue.mod/module.cue": b"module: x"}
    found = await add(store, NAME, {"a.cue": "a: 1"}, {key: make(files), "b.cue": b"b: 2"})
    assert files_of(found.tree) == {"a.cue": b"a: 1", "b.cue": b"b: 2", **files}


async def test_the_same_content_is_the_same_revision(store: Store) -> None:
    first = await add(store, NAME, {"a.cue": "a: 1"}, {})
    second = await add(
        store, "ConfigMap/other/name", {"x.md": ""}, {"m.zip": zip_of({"a.cue": b"a: 1"})}
    )
    assert first.revision == second.revision


@pytest.mark.parametrize("data", [{}, {"README.md": "", "values.yaml": ""}, {"cue": ""}])
async def test_a_configmap_without_a_module_says_what_is_looked_for(
    store: Store, data: dict[str, str]
) -> None:
    with pytest.raises(
        MissingError, match=r"add \*\.cue to data, or \*\.tar\.gz, .* to binaryData"
    ):
        await add(store, NAME, data, {})


async def test_case_82_the_same_name_twice_is_refused(store: Store) -> None:
    with pytest.raises(RefusedError, match=r"m\.zip: a\.cue is there twice"):
        await add(store, NAME, {"a.cue": ""}, {"m.zip": zip_of({"a.cue": b""})})


async def test_case_82_a_hostile_archive_is_refused_with_its_key(store: Store) -> None:
    link = tar(member("a", type=b"2", linkname="/etc/passwd"))
    with pytest.raises(
        RefusedError, match=r"ConfigMap/team/module: tree: m\.tar: 'a' is a symbolic"
    ):
        await add(store, NAME, {}, {"m.tar": link})


async def test_case_82_a_bomb_of_one_megabyte_is_too_large(store: Store) -> None:
    bomb = targz_of({"a": b"\0" * (60 * MEBIBYTE)})
    assert len(bomb) < MEBIBYTE
    with pytest.raises(TooLargeError, match="correct the ConfigMap"):
        await add(store, NAME, {}, {"m.tgz": bomb})


@pytest.mark.parametrize("key", ["../a.cue", "a/../../b.cue", "/a.cue", "a\n.cue"])
async def test_a_key_that_is_no_name_is_refused(store: Store, key: str) -> None:
    with pytest.raises(RefusedError, match="the name"):
        await add(store, NAME, {key: ""}, {})
