"""Tests against a real API server: a namespace for each test."""

import secrets
from pathlib import Path

import pytest

from clusters import Api, SharedControlPlane
from operators import ACCOUNT, NAMESPACE, operator_kubeconfig


@pytest.fixture
def api(control_plane: SharedControlPlane) -> Api:
    return control_plane.api


@pytest.fixture
def as_operator(api: Api) -> Api:
    """Somebody with all rights whom the admission policy takes for the operator."""
    user = f"system:serviceaccount:{NAMESPACE}:{ACCOUNT}"
    return api.acting_as(user, group="system:masters")


@pytest.fixture
def namespace(api: Api) -> str:
    name = f"test-{secrets.token_hex(4)}"
    answer = api.create("/api/v1/namespaces", {"metadata": {"name": name}})
    assert answer.code == 201, answer.message
    return name


@pytest.fixture(scope="session")
def operator_account(
    control_plane: SharedControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """The kubeconfig of the operator's account."""
    folder = tmp_path_factory.mktemp("operator-account")
    return operator_kubeconfig(control_plane.api, folder / "kubeconfig")
