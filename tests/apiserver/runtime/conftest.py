"""The loop on a real API server: a kind of the tests' own, under an account with its rights."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from clusters import Api, SharedControlPlane
from pequod.base.backoff import Backoff
from pequod.base.tasks import end
from pequod.crd.definition import custom_resource_definition
from pequod.crd.rbac import rules
from pequod.dev.kubeconfig import token_kubeconfig
from pequod.kube.caches import Caches
from pequod.kube.client import Client, Selection
from pequod.kube.kubeconfig import own_access
from pequod.kube.transport import Transport
from pequod.runtime.controller import Controller
from pequod.runtime.events import Recorder
from widgets import HeldWidgetReconciler, Start, Widget, WidgetReconciler, Widgets

ACCOUNT = "widgets"
RBAC = "rbac.authorization.k8s.io"


@pytest.fixture(scope="session", autouse=True)
def widget_kind(control_plane: SharedControlPlane) -> None:
    """The kind and the account's rights to it; made once, whoever comes first."""
    api = control_plane.api
    crd = custom_resource_definition(Widget)
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    made = api.create(path, crd)
    assert made.code in {201, 409}, made.message
    api.kubectl("wait", "--for=condition=Established", f"crd/{crd['metadata']['name']}")
    role = {"metadata": {"name": ACCOUNT}, "rules": rules([HeldWidgetReconciler])}
    assert api.create(f"/apis/{RBAC}/v1/clusterroles", role).code in {201, 409}


@pytest.fixture
def account(api: Api, namespace: str, tmp_path: Path) -> Path:
    """The kubeconfig of an account that may do in its namespace what the reconciler declares."""
    metadata = {"name": ACCOUNT}
    accounts = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    assert api.create(accounts, {"metadata": metadata}).code == 201
    binding = {
        "metadata": metadata,
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": ACCOUNT},
        "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": namespace}],
    }
    assert api.create(f"/apis/{RBAC}/v1/namespaces/{namespace}/rolebindings", binding).code == 201
    token = api.token(namespace, ACCOUNT)
    path = tmp_path / "account.kubeconfig"
    authority = (api.kubeconfig.parent / "pki/ca.crt").read_bytes()
    path.write_bytes(
        token_kubeconfig(name="test", server=api.server, authority=authority, token=token)
    )
    return path


@pytest.fixture
def widgets(api: Api, namespace: str) -> Widgets:
    return Widgets(api, namespace)


@pytest.fixture
def started(account: Path, namespace: str) -> Start:
    """Runs a reconciler in the test's own loop until the block ends."""

    @asynccontextmanager
    async def start(
        reconciler: WidgetReconciler, *, pass_limit: float = 30.0
    ) -> AsyncIterator[Controller[Widget]]:
        transport = Transport(own_access(account))
        caches = Caches(Client(transport))
        recorder = Recorder(caches.client, instance="test")
        controller = Controller(
            reconciler,
            caches,
            recorder,
            selection=Selection(namespace=namespace),
            backoff=Backoff(first=0.05, limit=1.0),
            pass_limit=pass_limit,
        )
        tasks = [asyncio.create_task(controller.run()), asyncio.create_task(recorder.run())]
        try:
            yield controller
            assert not any(task.done() for task in tasks), "the controller ended by itself"
        finally:
            await end(*tasks)
            await caches.close()
            await transport.close()

    return start
