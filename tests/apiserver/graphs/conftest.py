"""Graphs on a real API server: the real controller under the operator's account."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

import evaluators
from clusters import Api, SharedControlPlane
from graphs import TENANT, Engine, Graphs, Start, running
from operators import operator_kubeconfig
from pequod.controllers.platform.identity import IdentityRules
from pequod.controllers.platform.limits import NamespaceLimits
from pequod.graph.probes import Cel
from pequod.kube.kubeconfig import own_access

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


def grant(api: Api, namespace: str, *, account: str = TENANT, role: str = "admin") -> None:
    """An account, and what it may do in its namespace."""
    accounts = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    assert api.create(accounts, {"metadata": {"name": account}}).code in {201, 409}
    binding = {
        "metadata": {"name": f"{account}-{role}"},
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": role},
        "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": namespace}],
    }
    path = f"/apis/{RBAC}/v1/namespaces/{namespace}/rolebindings"
    assert api.create(path, binding).code == 201


@pytest.fixture
def graphs(api: Api, namespace: str, as_operator: Api) -> Graphs:
    """The graphs of the test's namespace, with an account that may do everything in it."""
    grant(api, namespace)
    return Graphs(api, namespace, as_operator)


@pytest.fixture
def engine(operator_account: Path, namespace: str) -> Start:
    """Runs the controller of the test's namespace."""

    @asynccontextmanager
    async def start(
        *,
        identity: IdentityRules | None = None,
        limits: NamespaceLimits | None = None,
        abandon_after: float = 600.0,
        cel: Cel | None = None,
    ) -> AsyncIterator[Engine]:
        async with running(
            own_access(operator_account),
            namespace,
            identity=identity or IdentityRules(),
            limits=limits or NamespaceLimits(),
            abandon_after=abandon_after,
            cel=cel,
        ) as engine:
            yield engine

    return start
