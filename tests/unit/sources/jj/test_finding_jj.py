"""The first jj that is new enough is taken: from PATH, then from the cache."""

from pathlib import Path

import pytest

from pequod.sources.errors import UnavailableError
from pequod.sources.jj.program import find_program


def pretend(folder: Path, answer: str) -> Path:
    """A program that is called jj, and says something else."""
    folder.mkdir()
    program = folder / "jj"
    program.write_text(f"#!/bin/sh\n{answer}\n")
    program.chmod(0o755)
    return program


@pytest.fixture(autouse=True)
def only_this_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path / 'path'}")


async def test_the_one_on_path_wins(tmp_path: Path) -> None:
    wanted = pretend(tmp_path / "path", "echo jj 0.46.0-abc")
    pretend(tmp_path / "cache", "echo jj 0.45.1")
    assert await find_program(tmp_path / "cache") == wanted


@pytest.mark.parametrize(
    "answer",
    ["echo jj 0.44.9", "echo Joe 9.9", "exit 1", "exec /nonexistent", "echo jj x.y.z"],
)
async def test_one_that_is_too_old_or_another_program_is_passed_over(
    tmp_path: Path, answer: str
) -> None:
    pretend(tmp_path / "path", answer)
    with pytest.raises(UnavailableError, match=r"no jj 0\.45 or newer \(.*cannot be used\)"):
        await find_program(tmp_path / "cache")
    wanted = pretend(tmp_path / "cache", "echo jj 1.0.0")
    assert await find_program(tmp_path / "cache") == wanted


async def test_where_there_is_none_the_next_step_is_said() -> None:
    with pytest.raises(UnavailableError, match="make tools"):
        await find_program()
