"""Graphs that are stored here and executed on another cluster, by a real operator."""

import secrets
from pathlib import Path

import pytest

from clusters import Api, SharedControlPlane
from graphs import Graphs, config_map, node
from instances import Foreground, eventually
from operators import ClusterObjects, Operator, operator
from pequod.dev.kubeconfig import token_kubeconfig

RBAC = "/apis/rbac.authorization.k8s.io/v1"


@pytest.fixture
def elsewhere(control_plane: SharedControlPlane) -> Api:
    """The other cluster: the one that all tests share."""
    return control_plane.api


def registered(clusters: ClusterObjects, elsewhere: Api) -> str:
    """Register the other cluster under a name of the test's own; everything is allowed there."""
    name = f"far-{secrets.token_hex(3)}"
    accounts = "/api/v1/namespaces/default/serviceaccounts"
    assert elsewhere.create(accounts, {"metadata": {"name": name}}).code == 201
    binding = {
        "metadata": {"name": name},
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "ClusterRole",
            "name": "cluster-admin",
        },
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": "default"}],
    }
    assert elsewhere.create(f"{RBAC}/clusterrolebindings", binding).code == 201
    authority = (elsewhere.kubeconfig.parent / "pki/ca.crt").read_bytes()
    token = elsewhere.token("default", name)
    kubeconfig = token_kubeconfig(
        name=name, server=elsewhere.server, authority=authority, token=token
    )
    clusters.put_secret(name, kubeconfig)
    clusters.create(name, secret=name)
    return name


def far(elsewhere: Api, name: str) -> int:
    return elsewhere.get(f"/api/v1/namespaces/default/configmaps/{name}").code


def test_a_graph_is_executed_on_the_cluster_that_it_names_and_followed_there(
    plane: Foreground,
    account: Path,
    clusters: ClusterObjects,
    elsewhere: Api,
    tmp_path: Path,
) -> None:
    """Created, repaired after an edit over there, pruned, deleted; nothing of it is made here."""
    name = f"far-{secrets.token_hex(3)}"
    graphs = Graphs(plane.api, "default", plane.api)
    with operator(account, tmp_path / "log", "--cluster-probe-interval=2s") as running:
        running.wait_until_leading()
        cluster = registered(clusters, elsewhere)
        bind(elsewhere)
        graphs.create(
            name,
            node("one", config_map(name)),
            node("two", config_map(f"{name}-two")),
            clusterRef={"name": cluster},
            serviceAccountName="default",
        )
        eventually(lambda: graphs.is_ready(name))
        assert far(elsewhere, name) == 200
        assert graphs.find("configmaps", name) is None
        path = f"/api/v1/namespaces/default/configmaps/{name}"
        assert elsewhere.patch(path, {"data": {"a": "evil"}}).code == 200
        eventually(lambda: elsewhere.get(path).body["data"] == {"a": "1"})
        graphs.change(name, node("one", config_map(name)))
        eventually(lambda: far(elsewhere, f"{name}-two") == 404)
        graphs.delete(name)
        eventually(lambda: not graphs.exists(name))
        assert far(elsewhere, name) == 404
        assert_nothing_went_wrong(running)


def bind(elsewhere: Api) -> None:
    """What the account `default` may do over there: graphs act in its name."""
    binding = {
        "metadata": {"name": "default-edits"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "edit"},
        "subjects": [{"kind": "ServiceAccount", "name": "default", "namespace": "default"}],
    }
    answer = elsewhere.create(f"{RBAC}/namespaces/default/rolebindings", binding)
    assert answer.code in {201, 409}, answer.message


def assert_nothing_went_wrong(running: Operator) -> None:
    assert "InternalError" not in running.text
    assert "Traceback" not in running.text


def test_case_63_a_cluster_that_is_not_there_keeps_everything_as_it_is(
    plane: Foreground,
    account: Path,
    clusters: ClusterObjects,
    elsewhere: Api,
    tmp_path: Path,
) -> None:
    """Its Cluster is removed: the graph waits, deletes nothing, and ends when it is given up."""
    name = f"far-{secrets.token_hex(3)}"
    graphs = Graphs(plane.api, "default", plane.api)
    options = ("--cluster-probe-interval=2s", "--abandon-after=3s")
    with operator(account, tmp_path / "log", *options) as running:
        running.wait_until_leading()
        cluster = registered(clusters, elsewhere)
        bind(elsewhere)
        graphs.create(
            name,
            node("one", config_map(name)),
            clusterRef={"name": cluster},
            serviceAccountName="default",
        )
        eventually(lambda: graphs.is_ready(name))
        clusters.delete(cluster)
        graphs.patch(name, {"metadata": {"annotations": {"poke": "1"}}})
        eventually(lambda: graphs.reason(name) == "ClusterNotReady")
        assert far(elsewhere, name) == 200
        graphs.delete(name)
        eventually(lambda: not graphs.exists(name))
        assert far(elsewhere, name) == 200
        assert_nothing_went_wrong(running)
