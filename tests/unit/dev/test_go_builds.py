"""A Go program is built once, kept, checked before it is used, and built again when it is harmed.

The module is tiny and has no dependencies, so that a build takes a moment and no network.
"""

import asyncio
import shutil
from pathlib import Path

import pytest

from pequod.dev import gomodule
from pequod.dev.builds import Progress
from pequod.dev.failure import DevError
from pequod.dev.gomodule import GoModule, ensure_built

MAIN = 'package main\n\nfunc main() { println("%s") }\n'


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PEQUOD_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def module(tmp_path: Path) -> GoModule:
    folder = tmp_path / "source"
    folder.mkdir()
    (folder / "go.mod").write_text("module example.com/tiny\n\ngo 1.26.0\n")
    (folder / "main.go").write_text(MAIN % "one")
    return GoModule(name="tiny", version="v1", packages=(("tiny", "."),), folder=folder)


def ignore(_: Progress) -> None:
    """Nobody looks."""


async def test_a_build_is_found_again_and_reports_its_progress(module: GoModule) -> None:
    steps: list[Progress] = []
    folder = await ensure_built(module, steps.append)
    assert (folder / "tiny").stat().st_mode & 0o111
    assert steps[-1].done == steps[-1].total > 0
    steps.clear()
    assert await ensure_built(module, steps.append) == folder
    assert steps == []


async def test_another_source_is_another_build(module: GoModule) -> None:
    first = await ensure_built(module, ignore)
    (module.source / "main.go").write_text(MAIN % "two")
    second = await ensure_built(module, ignore)
    assert first != second
    assert first.exists()


@pytest.mark.parametrize("damage", ["truncate", "delete the program", "delete the manifest"])
async def test_a_damaged_build_is_made_again(module: GoModule, damage: str) -> None:
    folder = await ensure_built(module, ignore)
    sound = (folder / "tiny").read_bytes()
    if damage == "truncate":
        (folder / "tiny").write_bytes(sound[:1000])
    else:
        (folder / ("tiny" if damage.endswith("program") else "manifest.json")).unlink()
    assert await ensure_built(module, ignore) == folder
    assert (folder / "tiny").read_bytes() == sound


async def test_what_a_build_that_was_cut_short_left_is_removed(
    module: GoModule, cache: Path
) -> None:
    leftover = cache / f".{module.key()}.cut-short"
    leftover.mkdir(parents=True)
    await ensure_built(module, ignore)
    assert not leftover.exists()


async def test_two_at_once_build_once(module: GoModule) -> None:
    steps: list[Progress] = []
    folders = await asyncio.gather(*(ensure_built(module, steps.append) for _ in range(2)))
    assert len(set(folders)) == 1
    assert sum(step.detail == "done" for step in steps) == 1
    assert any(step.what.startswith("Waiting for another build") for step in steps)


async def test_source_that_does_not_compile_is_shown(module: GoModule, cache: Path) -> None:
    (module.source / "main.go").write_text("package main\n\nfunc main() { nonsense }\n")
    with pytest.raises(DevError) as failure:
        await ensure_built(module, ignore)
    assert "undefined: nonsense" in failure.value.problem
    assert str(module.source) in failure.value.next_step
    assert [path.suffix for path in cache.iterdir()] == [".lock"]


async def test_a_cancelled_build_leaves_nothing_in_the_cache(module: GoModule, cache: Path) -> None:
    started = asyncio.Event()
    building = asyncio.create_task(ensure_built(module, lambda _: started.set()))
    await started.wait()
    building.cancel()
    with pytest.raises(asyncio.CancelledError):
        await building
    assert [path.suffix for path in cache.iterdir()] == [".lock"]


async def test_no_go_toolchain_is_said_before_anything_is_tried(
    module: GoModule, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(DevError, match="there is no Go toolchain"):
        await ensure_built(module, ignore)


async def test_an_old_go_toolchain_is_named(
    module: GoModule, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gomodule, "MINIMUM_GO", (99, 0))
    with pytest.raises(DevError, match=r"tiny needs Go 99\.0 and this is go1\."):
        await ensure_built(module, ignore)


async def test_too_little_space_is_said_before_anything_is_tried(
    module: GoModule, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = shutil.disk_usage("/")._replace(free=1024**3)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    with pytest.raises(DevError, match=r"needs about 6 GiB and .* has 1\.0 GiB free"):
        await ensure_built(module, ignore)
