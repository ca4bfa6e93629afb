"""Operators behind proxies that fail on demand, on a control plane for each file."""

from collections.abc import AsyncIterator, Callable, Iterable, Iterator

import pytest
import pytest_asyncio

from faults.runs import Run
from faults.stage import Stage, stage
from instances import Foreground, foreground


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Foreground]:
    """A control plane with the CRDs; no operator but ours may see its graphs."""
    state = tmp_path_factory.mktemp("plane") / "state"
    with foreground(state, "up", "--node=none", "--crds") as running:
        running.wait_until_ready()
        yield running


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def theatre(
    plane: Foreground, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Stage]:
    """An operator behind its proxy, for all tests of a file."""
    async with stage(plane, tmp_path_factory.mktemp("stage")) as running:
        yield running


@pytest.fixture
def replay(request: pytest.FixtureRequest) -> str:
    """The command that repeats a test."""
    return f".venv/bin/pytest '{request.node.nodeid}'"


Tell = Callable[[Iterable[Run]], None]
_RUNS, _SLOWEST = "runs with a fault", "slowest recovery"


@pytest.fixture
def tell(record_property: Callable[[str, object], None]) -> Tell:
    """Have the runs of a test counted in the summary."""

    def told(runs: Iterable[Run]) -> None:
        hit = [run for run in runs if run.hit is not None]
        record_property(_RUNS, len(hit))
        if hit:
            slowest = max(hit, key=lambda run: run.seconds)
            point = f"{slowest.scenario.name}/{slowest.fault}/{slowest.write}"
            record_property(_SLOWEST, (slowest.seconds, point))

    return told


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how much was swept."""
    reports = terminalreporter.getreports("passed") + terminalreporter.getreports("failed")
    told = [property_ for report in reports for property_ in report.user_properties]
    runs = sum(value for name, value in told if name == _RUNS)
    if runs:
        seconds, point = max(value for name, value in told if name == _SLOWEST)
        terminalreporter.section("faults")
        terminalreporter.line(
            f"{runs} runs with a fault; the slowest took {seconds:.1f} s: {point}"
        )
