"""How a process of git is started, watched and ended."""

from pathlib import Path
from typing import BinaryIO

import pytest

from pequod.sources.errors import UnavailableError
from pequod.sources.git.command import AbsentError, Call, CommandError, Git
from pequod.sources.git.settings import environment
from pequod.sources.git.version import check_version
from pequod.sources.limits import Limits


@pytest.fixture
def git(tmp_path: Path) -> Git:
    return Git(tmp_path, Limits(seconds=20))


async def test_whoever_takes_the_output_may_fail(git: Git) -> None:
    def fail(stream: BinaryIO) -> None:
        stream.read(1)
        raise LookupError

    endless = Call(arguments=("-c", "alias.x=!yes", "x"), consume=fail)
    with pytest.raises(LookupError):
        await git.run(endless)


async def test_whoever_takes_the_output_gets_all_of_it(git: Git) -> None:
    taken: list[bytes] = []
    call = Call(
        arguments=("-c", "alias.x=!cat", "x"),
        stdin=b"x" * 200_000,
        consume=lambda stream: taken.append(stream.read()),
    )
    await git.run(call)
    assert taken == [b"x" * 200_000]


async def test_a_failure_has_the_end_of_the_complaint(git: Git) -> None:
    with pytest.raises(CommandError, match="is not a git command"):
        await git.run(Call(arguments=("no-such-thing",)))


async def test_a_missing_program_is_told(
    git: Git, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(AbsentError, match="setpriv"):
        await git.run(Call(arguments=("version",)))
    with pytest.raises(UnavailableError, match="install git"):
        await check_version(git)


async def test_the_version_of_git_is_good_enough(git: Git) -> None:
    assert (await check_version(git)).startswith("git version ")


def test_settings_are_in_the_environment_and_local_work_has_no_protocol(tmp_path: Path) -> None:
    made = environment(home=tmp_path, settings=[("a.b", "c")])
    assert made["GIT_ALLOW_PROTOCOL"] == ""
    last = int(made["GIT_CONFIG_COUNT"]) - 1
    assert (made[f"GIT_CONFIG_KEY_{last}"], made[f"GIT_CONFIG_VALUE_{last}"]) == ("a.b", "c")
    values = {made[f"GIT_CONFIG_KEY_{one}"]: made[f"GIT_CONFIG_VALUE_{one}"] for one in range(last)}
    assert values["protocol.allow"] == "never"
    assert values["core.hooksPath"] == "/dev/null"
    assert values["http.followRedirects"] == "false"
