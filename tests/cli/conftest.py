"""What the tests of the command line share."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

import evaluators
from commandline import Pequod
from doubles.registry import running
from pequod.dev.programs import find_add_ons


@pytest.fixture(scope="session", autouse=True)
def the_evaluator_is_built() -> None:
    evaluators.program()


@pytest.fixture
def pequod(tmp_path: Path) -> Pequod:
    return Pequod(tmp_path)


@pytest.fixture(scope="session")
def registry_port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    command = asyncio.run(find_add_ons(lambda _: None)).command("registry")
    with running(command, tmp_path_factory.mktemp("registry")) as port:
        yield port
