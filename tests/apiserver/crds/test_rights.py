"""What the operator may do with the objects of graphs, as a cluster understands it."""

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from clusters import Api
from instances import eventually
from operators import ACCOUNT, NAMESPACE
from pequod.dev.places import shipped

ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
USER = f"system:serviceaccount:{NAMESPACE}:{ACCOUNT}"
READ = ["get", "list", "watch"]
WRITTEN = ["get", "create", "patch", "delete"]

pytestmark = pytest.mark.usefixtures("_roles")


@pytest.fixture
def _roles(api: Api) -> None:
    _apply_roles(api)


def _apply_roles(api: Api) -> None:
    api.kubectl("apply", "--server-side", f"--filename={shipped('deploy/rbac')}")


def _rules(api: Api, role: str) -> list[dict[str, Any]]:
    rules: list[dict[str, Any]] | None = api.get(f"{ROLES}/{role}").body.get("rules")
    return rules or []


def _may(api: Api, verb: str, resource: str, *, group: str = "") -> bool:
    resource, _, below = resource.partition("/")
    attributes = {"verb": verb, "group": group, "resource": resource, "subresource": below}
    spec = {"user": USER, "resourceAttributes": attributes | {"namespace": "default"}}
    answer = api.create(REVIEWS, {"spec": spec})
    assert answer.code == 201, answer.message
    return bool(answer.body["status"]["allowed"])


@contextmanager
def _labelled_role(api: Api, purpose: str, group: str, verbs: list[str]) -> Iterator[None]:
    """A ClusterRole of a platform team, labelled to join one of ours."""
    labels = {f"rbac.pequod.io/aggregate-to-{purpose}": "true"}
    rule = {"apiGroups": [group], "resources": ["widgets"], "verbs": verbs}
    answer = api.create(ROLES, {"metadata": {"name": group, "labels": labels}, "rules": [rule]})
    assert answer.code == 201, answer.message
    try:
        yield
    finally:
        assert api.call("DELETE", f"{ROLES}/{group}").code == 200


@pytest.mark.parametrize("purpose", ["watch", "write"])
def test_a_role_is_put_together_from_its_defaults(purpose: str, api: Api) -> None:
    role = f"pequod-operator-children-{purpose}"
    defaults = _rules(api, f"{role}-defaults")
    assert defaults
    eventually(lambda: all(rule in _rules(api, role) for rule in defaults))
    _apply_roles(api)
    assert all(rule in _rules(api, role) for rule in defaults)


@pytest.mark.parametrize(
    ("verb", "resource", "group", "allowed"),
    [
        ("watch", "configmaps", "", True),
        ("patch", "deployments", "apps", True),
        ("delete", "jobs", "batch", True),
        ("watch", "clusterroles", "rbac.authorization.k8s.io", True),
        ("list", "namespaces", "", True),
        ("create", "namespaces", "", False),
        ("create", "rolebindings", "rbac.authorization.k8s.io", False),
        ("patch", "customresourcedefinitions", "apiextensions.k8s.io", False),
        ("update", "configmaps", "", False),
        ("deletecollection", "secrets", "", False),
        ("create", "pods/exec", "", False),
        ("create", "serviceaccounts/token", "", False),
    ],
)
def test_what_the_operator_may_do_by_default(
    verb: str, resource: str, group: str, *, allowed: bool, api: Api
) -> None:
    eventually(lambda: _may(api, "watch", "services") and _may(api, "patch", "services"))
    assert _may(api, verb, resource, group=group) is allowed


@pytest.mark.parametrize(("purpose", "verbs"), [("watch", READ), ("write", WRITTEN)])
def test_a_labelled_role_of_a_platform_team_joins_and_leaves(
    purpose: str, verbs: list[str], api: Api
) -> None:
    group = f"g{secrets.token_hex(4)}.example.com"

    def allowed() -> set[str]:
        return {verb for verb in {*READ, *WRITTEN} if _may(api, verb, "widgets", group=group)}

    assert allowed() == set()
    with _labelled_role(api, purpose, group, verbs):
        eventually(lambda: allowed() == set(verbs))
    eventually(lambda: allowed() == set())
