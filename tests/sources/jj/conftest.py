"""The jj that the product would use, and somebody who works with it."""

import asyncio
from pathlib import Path

import pytest

from doubles.jjrepo import Person, Workspace
from pequod.dev.failure import DevError
from pequod.dev.jujutsu import find_jujutsu
from pequod.sources.jj.command import Jj
from pequod.sources.jj.repository import JjRepository


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
