"""The jj that the product would use, somebody who works with it, and a server to push to."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from doubles.gitserver import GitServer, Names
from doubles.jjrepo import Person, Workspace
from pequod.dev.failure import DevError
from pequod.dev.jujutsu import find_jujutsu
from pequod.kube.addresses import AddressRule
from pequod.sources.credentials import Credentials
from pequod.sources.git.source import GitOptions, GitSource
from pequod.sources.jj.command import Jj
from pequod.sources.jj.repository import JjRepository
from pequod.sources.jj.source import JjSource
from pequod.sources.limits import Limits
from pequod.sources.store import Store


@pytest.fixture(scope="session")
def jj_program() -> Path:
    """Found as the product finds it; a test without it fails, and says what to do."""
    try:
        return asyncio.run(find_jujutsu())
    except DevError as error:
        pytest.fail(f"{error.problem}. {error.next_step}", pytrace=False)


@pytest.fixture
def person(tmp_path: Path, jj_program: Path) -> Person:
    return Person.at(tmp_path / "home", jj_program)


@pytest.fixture
def workspace(person: Person, tmp_path: Path) -> Workspace:
    return person.workspace(tmp_path / "work")


@pytest.fixture
def jj(jj_program: Path) -> Jj:
    return Jj(jj_program)


@pytest.fixture
def repository(workspace: Workspace, jj: Jj) -> JjRepository:
    return JjRepository(jj, workspace.root)


@pytest.fixture
def served(tmp_path: Path) -> Path:
    """The folder with the repositories of the server."""
    return tmp_path / "served"


@pytest.fixture
async def server(served: Path) -> AsyncIterator[GitServer]:
    server = GitServer(served)
    await server.start()
    yield server
    await server.stop()


@pytest.fixture
def trust(server: GitServer) -> Credentials:
    """Nothing but the authority of the server."""
    return Credentials(authority=server.authority.certificate.decode(), fingerprint="trust")


@pytest.fixture
async def git_source(tmp_path: Path) -> AsyncIterator[GitSource]:
    store = Store(tmp_path / "store", limits=Limits(seconds=20))
    await store.open()
    options = GitOptions(rule=AddressRule(allow_local=True), resolver=Names(), max_age=0)
    source = GitSource(store, tmp_path / "git", options)
    await source.open()
    yield source
    source.close()
    store.close()


@pytest.fixture
def source(git_source: GitSource, jj: Jj) -> JjSource:
    return JjSource(git_source, jj)
