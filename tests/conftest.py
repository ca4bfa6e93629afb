"""What all tests share: one control plane for a whole run, and a kubectl for it."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from clusters import SharedControlPlane

ROOT = Path(__file__).parents[1]


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
