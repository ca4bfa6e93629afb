"""What all tests share: one control plane for a run, and the rules for tests on a real node."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from xdist.remote import Producer  # type: ignore[import-untyped]
from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

from clusters import SharedControlPlane
from lateness import make_late
from pequod.dev.node.packages import obstacle

E2E = Path(__file__).parent / "e2e"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--late", type=float, default=0.0, metavar="SECONDS", help="longest delay of every request"
    )


@pytest.fixture(autouse=True, scope="session")
def lateness(request: pytest.FixtureRequest) -> Iterator[None]:
    """Everything is late where that was asked for."""
    seconds = request.config.getoption("--late")
    with pytest.MonkeyPatch.context() as patch:
        if seconds:
            make_late(patch, seconds)
        yield


@pytest.fixture(scope="session")
def control_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SharedControlPlane]:
    """One control plane with the CRDs, shared by all workers; the last one to leave ends it."""
    base = tmp_path_factory.getbasetemp()
    common = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    plane = SharedControlPlane(common / "control-plane")
    plane.join()
    try:
        yield plane
    finally:
        plane.leave()


class OneWorkerForWhatIsShared(LoadScopeScheduling):  # type: ignore[misc]
    """Tests that share something costly run one after the other in one worker.

    Those on a real node look at the whole machine; those of the operator and of its faults share a
    file's control planes, and kill parts of them.
    """

    def _split_scope(self, nodeid: str) -> str:
        if nodeid.startswith("tests/e2e/"):
            return "real node"
        if nodeid.startswith(
            ("tests/apiserver/operator/", "tests/apiserver/kube/", "tests/faults/")
        ):
            return nodeid.partition("::")[0]
        return nodeid


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadScopeScheduling:
    """Every test goes to whichever worker is free, except those that share something."""
    return OneWorkerForWhatIsShared(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests on a real node are skipped where there can be none, but never in CI."""
    problem = obstacle()
    for item in items:
        if E2E in item.path.parents:
            item.add_marker(pytest.mark.e2e)
            if problem is not None and "CI" not in os.environ:
                item.add_marker(pytest.mark.skip(reason=str(problem)))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say loudly that something was not tested, and how to have it tested."""
    problem = obstacle()
    if problem is not None and "CI" not in os.environ:
        terminalreporter.section("THE TESTS ON A REAL NODE WERE SKIPPED", sep="!", red=True)
        terminalreporter.line(f"{problem}. {problem.next_step}", red=True)
