"""What a source costs, beside plain git on the same repository.

A repository of many files on a server of this machine, over HTTPS: a poll that finds nothing new,
one more commit, and a first fetch; the whole tree and one folder of it. Run it with
`python -m bench.sources`.
"""

import argparse
import asyncio
import os
import resource
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from bench.plane import own_cpu_seconds

from pequod.kube.addresses import AddressRule
from pequod.sources.artifact import Artifact
from pequod.sources.credentials import Credentials
from pequod.sources.git.address import parse
from pequod.sources.git.source import GitOptions, GitSource
from pequod.sources.store import Store

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from doubles.gitrepo import Repository
from doubles.gitserver import HOST, GitServer, Names

FOLDER = "services/d007"


@dataclass(frozen=True, slots=True)
class Row:
    """One way of doing it."""

    name: str
    wall: float
    cpu: float
    requests: float
    fetches: float

    def line(self) -> str:
        """The row of a table."""
        return (
            f"  {self.name:<34}{self.wall * 1e3:>9.0f} ms{self.cpu * 1e3:>9.0f} ms CPU"
            f"{self.requests:>6.1f} requests{self.fetches:>6.1f} fetches"
        )


class Bench:
    """A served repository, and the two who read it."""

    def __init__(self, folder: Path, server: GitServer, repository: Repository) -> None:
        self.folder = folder
        self.server = server
        self.repository = repository
        self.trust = Credentials(
            authority=server.authority.certificate.decode(), fingerprint="bench"
        )
        authority = folder / "authority.pem"
        authority.write_bytes(server.authority.certificate)
        self._environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_SSL_CAINFO": str(authority),
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": "http.curloptResolve",
            "GIT_CONFIG_VALUE_0": f"{HOST}:{server.port}:127.0.0.1",
        }
        self._numbers = iter(range(1_000_000))

    def commit(self) -> None:
        """One more commit, which changes one file of the folder."""
        self.repository.commit({f"{FOLDER}/file-0.yaml": f"changed: {next(self._numbers)}\n"})

    async def git(self, *arguments: str | Path) -> None:
        """Plain git, as somebody would run it."""
        process = await asyncio.create_subprocess_exec(
            "git",
            *arguments,
            env=self._environment,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )
        assert await process.wait() == 0, arguments

    async def measured(
        self,
        name: str,
        work: Callable[[], Awaitable[object]],
        *,
        rounds: int,
        before: Callable[[], object] = lambda: None,
    ) -> Row:
        """The median time, and the processor time of everybody but the server's own git."""
        walls, cpus, asked, fetched = [], [], 0, 0
        for _ in range(rounds):
            before()
            journal, fetches = len(self.server.journal), len(self.server.fetches)
            used, began = own_cpu_seconds(), time.perf_counter()
            await work()
            walls.append(time.perf_counter() - began)
            cpus.append(own_cpu_seconds() - used)
            asked += len(self.server.journal) - journal
            fetched += len(self.server.fetches) - fetches
        return Row(
            name,
            statistics.median(walls),
            statistics.median(cpus),
            asked / rounds,
            fetched / rounds,
        )


def _filled(repository: Repository, files: int) -> None:
    text = "kind: ConfigMap\n" + "# a line that compresses\n" * 20
    repository.commit(
        {
            f"services/d{number % 200:03}/file-{number // 200}.yaml": f"number: {number}\n{text}"
            for number in range(files)
        }
    )


async def plain(bench: Bench, rounds: int) -> list[Row]:
    """The same with the command alone."""
    url = bench.server.url()
    clone = bench.folder / "clone"

    def nothing_there() -> None:
        shutil.rmtree(clone, ignore_errors=True)

    async def pull() -> None:
        await bench.git("-C", clone, "fetch", "--depth=1", "origin", "main")
        await bench.git("-C", clone, "reset", "--hard", "FETCH_HEAD")

    return [
        await bench.measured(
            "git clone --depth=1",
            lambda: bench.git("clone", "--depth=1", url, clone),
            rounds=rounds,
            before=nothing_there,
        ),
        await bench.measured("git ls-remote", lambda: bench.git("ls-remote", url), rounds=10),
        await bench.measured("git fetch, git reset", pull, rounds=rounds, before=bench.commit),
    ]


async def ours(bench: Bench, rounds: int, *, path: str) -> list[Row]:
    """A first fetch, a poll without news, and one more commit."""
    reference = parse(f"{bench.server.url()}?ref=main" + (f"&path={path}" if path else ""))
    options = GitOptions(rule=AddressRule(allow_local=True), resolver=Names(), max_age=0)
    known: list[Artifact] = []

    async def first() -> None:
        place = Path(tempfile.mkdtemp(dir=bench.folder))
        store = Store(place / "store")
        await store.open()
        source = GitSource(store, place / "git", options)
        await source.open()
        known[:] = [await source.resolve(reference, credentials=bench.trust)]
        sources[:] = [source]

    async def again() -> None:
        known[:] = [await sources[0].resolve(reference, credentials=bench.trust, known=known[0])]

    sources: list[GitSource] = []
    what = f"folder of {FOLDER}" if path else "whole tree"
    return [
        await bench.measured(f"first fetch, {what}", first, rounds=rounds),
        await bench.measured(f"poll without news, {what}", again, rounds=10),
        await bench.measured(f"one more commit, {what}", again, rounds=rounds, before=bench.commit),
    ]


def _make_removable(folder: Path) -> None:
    """The trees of a store are read-only."""
    for path in folder.rglob("*"):
        if path.is_dir() and not path.is_symlink():
            path.chmod(0o700)


async def main() -> None:
    """Measure everything in one run."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--files", type=int, default=20_000)
    options.add_argument("--rounds", type=int, default=5)
    asked = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        server = GitServer(Path(folder) / "served")
        await server.start()
        try:
            repository = server.repository()
            _filled(repository, asked.files)
            bench = Bench(Path(folder), server, repository)
            print(f"{asked.files} files; requests and processor time include the server's")
            for rows in (
                await plain(bench, asked.rounds),
                await ours(bench, asked.rounds, path=""),
                await ours(bench, asked.rounds, path=FOLDER),
            ):
                print("\n".join(row.line() for row in rows))
        finally:
            await server.stop()
            _make_removable(Path(folder))
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"memory of this process, most: {most:.0f} MiB")


if __name__ == "__main__":
    asyncio.run(main())
