"""A git server, a store, and sources that may reach this machine."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from doubles.gitserver import GitServer, Names
from pequod.kube.addresses import AddressRule
from pequod.sources.credentials import Credentials
from pequod.sources.git.address import GitReference, parse
from pequod.sources.git.source import GitOptions, GitSource
from pequod.sources.limits import Limits
from pequod.sources.store import Store

MakeSource = Callable[..., Awaitable[GitSource]]


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[GitServer]:
    server = GitServer(tmp_path / "served")
    await server.start()
    yield server
    await server.stop()


@pytest.fixture
async def make_source(tmp_path: Path) -> AsyncIterator[MakeSource]:
    """Makes sources; those of one test share their folders."""
    async with AsyncExitStack() as ends:

        async def make(
            limits: Limits | None = None, options: GitOptions | None = None
        ) -> GitSource:
            store = Store(tmp_path / "store", limits=limits or Limits(seconds=20))
            await store.open()
            ends.callback(store.close)
            usual = GitOptions(rule=AddressRule(allow_local=True), resolver=Names(), max_age=0)
            source = GitSource(store, tmp_path / "git", options or usual)
            ends.callback(source.close)
            await source.open()
            return source

        yield make


@pytest.fixture
async def source(make_source: MakeSource) -> GitSource:
    return await make_source()


@pytest.fixture
def trust(server: GitServer) -> Credentials:
    """Nothing but the authority of the server."""
    return Credentials(authority=server.authority.certificate.decode(), fingerprint="trust")


@pytest.fixture
def reference(server: GitServer) -> Callable[..., GitReference]:
    """References to the server's repository, by their query."""

    def refer(query: str = "", name: str = "app") -> GitReference:
        return parse(f"{server.url(name)}?{query}" if query else server.url(name))

    return refer
