"""Case 97, as the API server itself saw it: nothing of a tenant's under another identity."""

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from graphs import Graphs, config_map, deployment, node
from instances import Foreground, eventually, foreground
from operators import operator, operator_kubeconfig

NAMESPACE = "audited"
OPERATOR = "system:serviceaccount:pequod-system:pequod-operator"
TENANT = f"system:serviceaccount:{NAMESPACE}:tenant"
POLICY = """\
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
  - level: Metadata
"""


class User(msgspec.Struct, frozen=True):
    username: str = ""


class Subject(msgspec.Struct, frozen=True):
    resource: str = ""
    namespace: str = ""
    name: str = ""


class Audited(msgspec.Struct, frozen=True, rename="camel"):
    """One request, as the API server wrote it down."""

    verb: str
    user: User
    impersonated_user: User | None = None
    object_ref: Subject = Subject()

    @property
    def is_child(self) -> bool:
        """Whether it is about objects that the graph made, by name and not by a shared cache."""
        about = self.object_ref
        kinds = {"configmaps", "deployments", "secrets"}
        return about.namespace == NAMESPACE and about.resource in kinds


@pytest.fixture
def audit(tmp_path: Path) -> tuple[Path, tuple[str, ...]]:
    policy, log = tmp_path / "policy.yaml", tmp_path / "audit.log"
    policy.write_text(POLICY)
    flags = (f"audit-policy-file={policy}", f"audit-log-path={log}")
    return log, tuple(part for flag in flags for part in ("--api-server", flag))


@pytest.fixture
def plane(tmp_path: Path, audit: tuple[Path, tuple[str, ...]]) -> Iterator[Foreground]:
    state = tmp_path / "state"
    with foreground(state, "up", "--node=none", "--crds", *audit[1]) as running:
        running.wait_until_ready()
        yield running


def test_case_97_every_request_for_a_tenants_objects_is_the_tenants(
    plane: Foreground, audit: tuple[Path, tuple[str, ...]], tmp_path: Path
) -> None:
    """Created, read after a refusal, repaired, pruned, finalised: under one identity."""
    api = plane.api
    assert api.create("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}}).code == 201
    accounts = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts"
    assert api.create(accounts, {"metadata": {"name": "tenant"}}).code == 201
    binding = {
        "metadata": {"name": "tenant"},
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "ClusterRole",
            "name": "admin",
        },
        "subjects": [{"kind": "ServiceAccount", "name": "tenant", "namespace": NAMESPACE}],
    }
    rbac = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{NAMESPACE}/rolebindings"
    assert api.create(rbac, binding).code == 201
    graphs = Graphs(api, NAMESPACE, api)
    graphs.secret("parts", token='{"stringData": {"a": "b"}}')
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "token"}}
    part = {"secretRef": {"name": "parts", "key": "token"}}
    nodes = [
        node("a", config_map("a")),
        node("b", config_map("b"), dependsOn=["a"]),
        node("token", secret, objectFrom=part),
        node("app", deployment("app"), readyWhen=[{"type": "CEL", "expression": "has(self.spec)"}]),
        node("seen", config_map("seen"), applyPolicy={"mode": "Observe"}),
    ]
    graphs.make("configmaps", config_map("seen"))
    kubeconfig = operator_kubeconfig(api, tmp_path / "kubeconfig")
    with operator(kubeconfig, tmp_path / "log") as running:
        running.wait_until_leading()
        graphs.create("web", *nodes)
        eventually(lambda: graphs.is_ready("web"))
        graphs.remove("configmaps", "b")
        eventually(lambda: graphs.find("configmaps", "b") is not None)
        graphs.edit("configmaps", "a", {"data": {"a": "evil"}})
        eventually(lambda: graphs.live("configmaps", "a")["data"] == {"a": "1"})
        graphs.change("web", *nodes[:1], *nodes[2:])
        eventually(lambda: graphs.find("configmaps", "b") is None)
        graphs.delete("web")
        eventually(lambda: not graphs.exists("web"))
    lines = audit[0].read_bytes().splitlines()
    events = [msgspec.json.decode(line, type=Audited) for line in lines]
    ours = [event for event in events if event.user.username == OPERATOR]
    children = [event for event in ours if event.is_child and event.object_ref.name]
    assert {event.verb for event in children} == {"get", "patch", "delete"}
    for event in children:
        assert event.impersonated_user is not None, event
        assert event.impersonated_user.username == TENANT, event
    others = [event for event in ours if event.is_child and not event.object_ref.name]
    assert {event.verb for event in others} <= {"list", "watch"}
    impersonated = {e.impersonated_user.username for e in ours if e.impersonated_user is not None}
    assert impersonated == {TENANT}
