"""One evaluator for each test, found before any event loop runs."""

from collections.abc import AsyncIterator

import pytest

import evaluators
from pequod.evaluator.evaluator import Evaluator


@pytest.fixture(scope="session", autouse=True)
def the_program_is_built() -> None:
    evaluators.version()


@pytest.fixture
async def evaluator() -> AsyncIterator[Evaluator]:
    async with evaluators.evaluating() as made:
        yield made
