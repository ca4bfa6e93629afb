"""Tests against a real API server: a namespace for each test."""

import secrets

import pytest

from clusters import Api, SharedControlPlane


@pytest.fixture
def api(control_plane: SharedControlPlane) -> Api:
    return control_plane.api


@pytest.fixture
def namespace(api: Api) -> str:
    name = f"test-{secrets.token_hex(4)}"
    answer = api.create("/api/v1/namespaces", {"metadata": {"name": name}})
    assert answer.code == 201, answer.message
    return name
