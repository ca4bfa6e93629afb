"""What the tests of the command line share."""

from pathlib import Path

import pytest

import evaluators
from commandline import Pequod


@pytest.fixture(scope="session", autouse=True)
def the_evaluator_is_built() -> None:
    evaluators.program()


@pytest.fixture
def pequod(tmp_path: Path) -> Pequod:
    return Pequod(tmp_path)
