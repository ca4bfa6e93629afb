"""Transforms on a real API server: the real controllers under the operator's account."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

import evaluators
from clusters import Api, SharedControlPlane
from graphs import TENANT, Graphs
from operators import operator_kubeconfig
from pequod.controllers.platform.identity import IdentityRules
from pequod.kube.kubeconfig import own_access
from pequod.sources.resolver import Reference
from transforms import Platform, StartPlatform, Transforms, running

RBAC = "rbac.authorization.k8s.io"


@pytest.fixture(scope="session", autouse=True)
def the_evaluator_is_built() -> None:
    evaluators.version()


@pytest.fixture(scope="session")
def operator_account(
    control_plane: SharedControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """The kubeconfig of the operator's account."""
    folder = tmp_path_factory.mktemp("operator-account")
    return operator_kubeconfig(control_plane.api, folder / "kubeconfig")


@pytest.fixture
def transforms(api: Api, namespace: str, as_operator: Api) -> Transforms:
    """The Transforms of the test's namespace."""
    return Transforms(Graphs(api, namespace, as_operator))


@pytest.fixture
def tenant(api: Api, namespace: str) -> str:
    """An account that may do everything in its namespace."""
    accounts = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    assert api.create(accounts, {"metadata": {"name": TENANT}}).code == 201
    binding = {
        "metadata": {"name": "tenant-admin"},
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "admin"},
        "subjects": [{"kind": "ServiceAccount", "name": TENANT, "namespace": namespace}],
    }
    path = f"/apis/{RBAC}/v1/namespaces/{namespace}/rolebindings"
    assert api.create(path, binding).code == 201
    return TENANT


@pytest.fixture
def platform(operator_account: Path, namespace: str, tmp_path: Path) -> StartPlatform:
    """Runs the controllers of the test's namespace."""

    @asynccontextmanager
    async def start(
        *,
        identity: IdentityRules | None = None,
        policies: Reference | None = None,
        plain_http: frozenset[str] = frozenset(),
    ) -> AsyncIterator[Platform]:
        async with running(
            own_access(operator_account),
            namespace,
            tmp_path / "store",
            identity=identity or IdentityRules(),
            policies=policies,
            plain_http=plain_http,
        ) as started:
            yield started

    return start
