"""jj is built once and kept; cargo is a double here, since the real build takes minutes."""

import asyncio
import os
from pathlib import Path

import pytest

from pequod.dev import jujutsu
from pequod.dev.builds import Progress
from pequod.dev.failure import DevError
from pequod.dev.jujutsu import ensure_jujutsu, find_jujutsu

CARGO = r"""#!/bin/sh
set -e
echo "$@" >> "$CALLS"
for argument; do
    case "$argument" in --root=*) root="${argument#--root=}" ;; esac
done
printf '  Downloaded one v1\n' >&2
printf '    Building [==>    ] 1/3: one, two\r    Building [=====> ] 2/3: jj\r' >&2
mkdir -p "$root/bin" "$CARGO_TARGET_DIR"
printf '#!/bin/sh\necho jj 0.45.1\n' > "$root/bin/jj"
chmod +x "$root/bin/jj"
"""
FAILING = "#!/bin/sh\necho 'error: no matching package' >&2\nexit 101\n"
ENDLESS = '#!/bin/sh\necho "$$" > "$CALLS"\nexec sleep 600\n'


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, and nothing but the tools of the system on PATH."""
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in ("mkdir", "chmod", "sleep", "sh"):
        (programs / name).symlink_to(f"/bin/{name}")
    monkeypatch.setenv("PATH", str(programs))
    monkeypatch.setenv("PEQUOD_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("CALLS", str(tmp_path / "calls"))
    return tmp_path / "cache"


@pytest.fixture
def calls(tmp_path: Path) -> Path:
    return tmp_path / "calls"


def install_cargo(script: str) -> None:
    cargo = Path(os.environ["PATH"]) / "cargo"
    cargo.write_text(script)
    cargo.chmod(0o755)


def ignore(_: Progress) -> None:
    """Nobody looks."""


async def test_a_build_is_found_again_and_reports_its_progress(cache: Path, calls: Path) -> None:
    install_cargo(CARGO)
    steps: list[Progress] = []
    program = await ensure_jujutsu(steps.append)
    assert program == jujutsu.cached_folder() / "jj"
    assert [(step.done, step.total) for step in steps] == [(0, 0), (1, 3), (2, 3), (1, 1)]
    steps.clear()
    assert await ensure_jujutsu(steps.append) == program == await find_jujutsu()
    assert steps == []
    assert len(calls.read_text().splitlines()) == 1
    assert f"jj-cli@{jujutsu.VERSION}" in calls.read_text()
    assert sorted(path.suffix for path in cache.iterdir() if path.is_file()) == [".lock"]


async def test_a_damaged_build_is_made_again(cache: Path, calls: Path) -> None:
    install_cargo(CARGO)
    program = await ensure_jujutsu(ignore)
    program.write_text("")
    assert await ensure_jujutsu(ignore) == program
    assert len(calls.read_text().splitlines()) == 2
    assert cache in program.parents


async def test_two_at_once_build_once(cache: Path, calls: Path) -> None:
    install_cargo(CARGO)
    programs = await asyncio.gather(*(ensure_jujutsu(ignore) for _ in range(2)))
    assert len(set(programs)) == 1
    assert len(calls.read_text().splitlines()) == 1
    assert cache in programs[0].parents


async def test_a_failed_build_says_why_and_leaves_nothing(cache: Path) -> None:
    install_cargo(FAILING)
    with pytest.raises(DevError, match="no matching package") as failure:
        await ensure_jujutsu(ignore)
    assert "rustup" in failure.value.next_step
    assert [path.suffix for path in cache.iterdir()] == [".lock"]


async def test_a_cancelled_build_is_ended_and_leaves_nothing(cache: Path, calls: Path) -> None:
    os.mkfifo(calls)
    install_cargo(ENDLESS)
    building = asyncio.create_task(ensure_jujutsu(ignore))
    pid = int(await asyncio.to_thread(calls.read_text))
    building.cancel()
    with pytest.raises(asyncio.CancelledError):
        await building
    assert not Path(f"/proc/{pid}").exists()
    assert [path.suffix for path in cache.iterdir()] == [".lock"]


async def test_without_cargo_the_next_step_is_said(cache: Path) -> None:
    with pytest.raises(DevError, match="there is no cargo") as failure:
        await ensure_jujutsu(ignore)
    assert "rustup" in failure.value.next_step
    assert not cache.exists()
    with pytest.raises(DevError) as missing:
        await find_jujutsu()
    assert "make tools" in missing.value.next_step
