"""What is left when somebody no longer waits, or dies: nothing."""

import asyncio
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from doubles.gitserver import GitServer
from pequod.sources.credentials import Credentials
from pequod.sources.git.address import GitReference
from pequod.sources.git.command import Call, Git, TooMuchError
from pequod.sources.git.source import GitSource
from pequod.sources.limits import Limits
from waiting import eventually

Refer = Callable[..., GitReference]

OPERATOR = """
import asyncio, sys
from pathlib import Path
from pequod.kube.addresses import AddressRule
from pequod.sources.git.address import parse
from pequod.sources.git.source import GitOptions, GitSource
from pequod.sources.store import Store

async def main(root, url):
    store = Store(root / "store")
    await store.open()
    source = GitSource(store, root / "git", GitOptions(rule=AddressRule(allow_local=True)))
    await source.open()
    await source.commit_of(parse(url))

asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
"""


def _processes(mark: str) -> list[int]:
    """The processes that have a text in their environment."""
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if mark.encode() in path.read_bytes():
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


async def test_case_8_whoever_stops_waiting_ends_git_and_leaves_nothing(
    server: GitServer, source: GitSource, trust: Credentials, reference: Refer, tmp_path: Path
) -> None:
    server.repository().commit({"a": "1"})
    wanted = reference("ref=main")
    home = f"HOME={tmp_path / 'git' / '0' / 'home'}\0"

    async def stall_fetches(request: object) -> None:
        if server.journal[-1].fetches:
            await server.stall(request)  # type: ignore[arg-type]

    server.behaviour = stall_fetches
    waiting = asyncio.create_task(source.resolve(wanted, credentials=trust))
    await eventually(lambda: server.fetches, "the fetch has begun")
    assert _processes(home)
    assert list((tmp_path / "git" / "0" / "private").iterdir())
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    await eventually(lambda: not _processes(home), "every process has ended")
    assert not list((tmp_path / "git" / "0" / "private").iterdir())
    assert not list((tmp_path / "git").rglob("tmp_*"))
    assert not list((tmp_path / "store" / "incoming").iterdir())
    server.behaviour = None
    assert (await source.resolve(wanted, credentials=trust)).digest


async def test_case_8_one_who_stops_waiting_does_not_end_it_for_the_others(
    server: GitServer, source: GitSource, trust: Credentials, reference: Refer
) -> None:
    server.repository().commit({"a": "1"})
    go_on = asyncio.Event()

    async def hold(_request: object) -> None:
        await go_on.wait()

    server.behaviour = hold
    first, second = (
        asyncio.create_task(source.resolve(reference("ref=main"), credentials=trust))
        for _ in range(2)
    )
    await eventually(lambda: server.journal, "the server was asked")
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    go_on.set()
    assert (await second).digest


async def test_case_8_git_and_its_helpers_die_with_an_operator_that_is_killed(
    tmp_path: Path,
) -> None:
    """A server that accepts connections and never speaks."""
    asked = asyncio.Event()
    gone = asyncio.Event()

    async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.set()
        while await reader.read(2**16):
            pass
        gone.set()
        writer.close()

    silent = await asyncio.start_server(listen, "127.0.0.1", 0)
    port = silent.sockets[0].getsockname()[1]
    url = f"https://127.0.0.1:{port}/app.git?ref=main"
    operator = await asyncio.create_subprocess_exec(
        sys.executable, "-c", OPERATOR, str(tmp_path), url, env=dict(os.environ)
    )
    home = f"HOME={tmp_path / 'git' / '0' / 'home'}\0"
    try:
        await asyncio.wait_for(asked.wait(), 30)
        assert _processes(home)
    finally:
        operator.send_signal(signal.SIGKILL)
        await operator.wait()
    await eventually(lambda: not _processes(home), "every process has ended")
    await asyncio.wait_for(gone.wait(), 10)
    silent.close()


async def test_case_8_what_a_killed_process_left_behind_is_removed_at_the_next_start(
    source: GitSource, make_source: Callable[[], Awaitable[GitSource]], tmp_path: Path
) -> None:
    private = tmp_path / "git" / "0" / "private"
    (private / "left").mkdir()
    (private / "left" / "key").write_text("secret")
    draft = tmp_path / "git" / "0" / "mirrors" / "abc.new"
    draft.mkdir()
    source.close()
    await make_source()
    assert not list(private.iterdir())
    assert not draft.exists()


async def test_two_processes_do_not_share_a_folder(
    make_source: Callable[[], Awaitable[GitSource]], tmp_path: Path
) -> None:
    await make_source()
    await make_source()
    assert sorted(one.name for one in (tmp_path / "git").iterdir()) == ["0", "1"]


async def test_a_process_that_prints_without_end_is_ended(tmp_path: Path) -> None:
    git = Git(tmp_path, Limits(seconds=20))
    with pytest.raises(TooMuchError):
        await git.run(Call(arguments=("-c", "alias.x=!yes", "x"), records=(b"\n", 1000)))


async def test_the_environment_is_made_from_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_SSH_COMMAND", "touch canary")
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.test")
    git = Git(tmp_path, Limits(seconds=20))
    seen = (await git.run(Call(arguments=("-c", "alias.x=!env", "x")))).decode()
    assert "proxy.test" not in seen
    assert "canary" not in seen
    assert f"HOME={tmp_path}" in seen
