"""Modules that are written where they are used, and those that are shipped."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from doubles.archives import files_of
from pequod.sources.embedded import EmbeddedSource
from pequod.sources.errors import BadReferenceError, MissingError, RefusedError, TooLargeError
from pequod.sources.inline import InlineSource
from pequod.sources.store import Store


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    store = Store(tmp_path / "store")
    await store.open()
    yield store
    store.close()


@pytest.fixture
def embedded(store: Store, tmp_path: Path) -> EmbeddedSource:
    for name in ("web", "database", "Not-a-name", ".hidden"):
        (tmp_path / "modules" / name / "cue.mod").mkdir(parents=True)
        (tmp_path / "modules" / name / "cue.mod" / "module.cue").write_text(name)
    (tmp_path / "modules" / "README.md").write_text("no module")
    return EmbeddedSource(store, tmp_path / "modules", version="1.2.3")


async def test_a_text_is_the_only_file_of_its_module(store: Store) -> None:
    found = await InlineSource(store).resolve("a: 1")
    assert files_of(found.tree) == {"module.cue": b"a: 1"}
    assert found.revision == found.digest


async def test_the_same_text_is_what_is_known(store: Store) -> None:
    known = await InlineSource(store).resolve("a: 1")
    assert await InlineSource(store).resolve("a: 1", known=known) is known
    assert await InlineSource(store).resolve("a: 2", known=known) is not known


async def test_a_text_that_is_too_large_is_not_shown(store: Store) -> None:
    with pytest.raises(TooLargeError, match="1048577 bytes") as caught:
        await InlineSource(store).resolve("x" * (2**20 + 1))
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(("text", "path"), [("", ""), (" \n", ""), ("a: 1", "folder")])
async def test_an_empty_text_and_a_folder_in_it_are_refused(
    store: Store, text: str, path: str
) -> None:
    with pytest.raises(BadReferenceError):
        await InlineSource(store).resolve(text, path=path)


async def test_a_shipped_module_has_the_version_of_the_product(embedded: EmbeddedSource) -> None:
    found = await embedded.resolve("web")
    assert files_of(found.tree) == {"cue.mod/module.cue": b"web"}
    assert found.revision == f"1.2.3@{found.digest}"
    assert await embedded.resolve("web", known=found) is found


async def test_a_shipped_module_is_there_again_when_the_store_lost_it(
    embedded: EmbeddedSource, store: Store
) -> None:
    found = await embedded.resolve("web")
    store._discard(found.digest)
    assert (await embedded.resolve("web")).tree.exists()


async def test_a_module_that_is_not_shipped_is_missed_with_those_that_are(
    embedded: EmbeddedSource,
) -> None:
    with pytest.raises(MissingError, match="write one of: database, web"):
        await embedded.resolve("cache")


@pytest.mark.parametrize("name", ["", "../web", "Web", "web/", "/etc", "web\n", ".hidden", "-web"])
async def test_case_75_what_is_no_name_is_refused(embedded: EmbeddedSource, name: str) -> None:
    with pytest.raises(BadReferenceError):
        await embedded.resolve(name)


async def test_a_link_in_a_shipped_module_is_refused(
    embedded: EmbeddedSource, tmp_path: Path
) -> None:
    (tmp_path / "modules" / "web" / "link").symlink_to("/etc/passwd")
    with pytest.raises(RefusedError, match="install the product again"):
        await embedded.resolve("web")


async def test_a_product_without_modules_has_none(store: Store, tmp_path: Path) -> None:
    with pytest.raises(MissingError, match="none is shipped"):
        await EmbeddedSource(store, tmp_path / "nowhere", version="1").resolve("web")


async def test_the_modules_of_this_repository_are_found(store: Store) -> None:
    folder = Path(__file__).parents[3] / "modules"
    source = EmbeddedSource(store, folder, version="dev")
    for name in source.names():
        assert (await source.resolve(name)).tree.is_dir()
    assert "webservice" in source.names()
