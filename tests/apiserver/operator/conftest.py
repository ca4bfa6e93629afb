"""Operators on control planes of their own: one plane for each file, since parts of it die."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from instances import Foreground, foreground
from operators import ClusterObjects, operator_kubeconfig


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Foreground]:
    """A control plane with the CRDs, and without an operator."""
    state = tmp_path_factory.mktemp("plane") / "state"
    with foreground(state, "up", "--node=none", "--crds") as running:
        running.wait_until_ready()
        yield running


@pytest.fixture(scope="module")
def account(plane: Foreground, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The kubeconfig of the operator's account."""
    return operator_kubeconfig(plane.api, tmp_path_factory.mktemp("account") / "kubeconfig")


@pytest.fixture
def clusters(plane: Foreground) -> Iterator[ClusterObjects]:
    """The Clusters of the default namespace; nothing of them is left for the next test."""
    yield ClusterObjects(plane.api, "default")
    for kind in ("clusters.ajj.io", "secrets"):
        plane.api.kubectl("delete", kind, "--all", "--namespace=default")
