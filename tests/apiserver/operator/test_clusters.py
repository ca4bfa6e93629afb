"""Clusters on three control planes side by side: found, pinned, refused, and found again."""

import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest
import yaml

from clusters import Api
from instances import Foreground, eventually, foreground
from operators import ClusterObjects, Operator, operator, operator_kubeconfig
from pequod.dev.kubeconfig import token_kubeconfig

ACKNOWLEDGE = "pequod.io/acknowledge-identity"


@dataclass(frozen=True)
class Fleet:
    """Where the operator runs, and two clusters that it is told of."""

    home: Foreground
    east: Foreground
    west: Foreground
    operator: Operator


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    folder = tmp_path_factory.mktemp("fleet")
    state = folder / "state"
    with ExitStack() as stack:
        options: dict[str, tuple[str, ...]] = {"home": ("--crds",), "east": (), "west": ()}
        planes = {
            name: stack.enter_context(foreground(state, "up", "--node=none", *more, name=name))
            for name, more in options.items()
        }
        for plane in planes.values():
            plane.wait_until_ready()
        account = operator_kubeconfig(planes["home"].api, folder / "kubeconfig")
        running = stack.enter_context(operator(account, folder / "operator.log"))
        yield Fleet(**planes, operator=running)


@pytest.fixture
def clusters(fleet: Fleet) -> Iterator[ClusterObjects]:
    objects = ClusterObjects(fleet.home.api, "default")
    yield objects
    where = "--namespace=default"
    fleet.home.api.kubectl("delete", "clusters.ajj.io", "--all", where)
    fleet.home.api.kubectl("delete", "secrets", "--all", where)


def admin(plane: Foreground) -> str:
    """The administrator's kubeconfig: nothing in it but what is allowed."""
    return (plane.root / "kubeconfig").read_text()


def reader(api: Api, name: str, *rules: dict[str, list[str]]) -> bytes:
    """A kubeconfig of an account with some rights."""
    account = {"metadata": {"name": name}}
    api.create("/api/v1/namespaces/default/serviceaccounts", account)
    rbac = "/apis/rbac.authorization.k8s.io/v1"
    api.create(f"{rbac}/clusterroles", {"metadata": {"name": name}, "rules": [*rules]})
    binding = {
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": "default"}],
    }
    api.create(f"{rbac}/clusterrolebindings", binding)
    token = api.token("default", name)
    authority = (api.kubeconfig.parent / "pki/ca.crt").read_bytes()
    return token_kubeconfig(name=name, server=api.server, authority=authority, token=token)


def identity_of(plane: Foreground) -> str:
    uid: str = plane.api.get("/api/v1/namespaces/kube-system").body["metadata"]["uid"]
    return uid


SYSTEM = {"apiGroups": [""], "resources": ["namespaces"], "verbs": ["get"]}
NODES = {"apiGroups": [""], "resources": ["nodes"], "verbs": ["list"]}


def test_the_operators_own_cluster_needs_no_kubeconfig(
    fleet: Fleet, clusters: ClusterObjects
) -> None:
    clusters.create("home")
    eventually(lambda: clusters.is_ready("home"))
    status = clusters.status("home")
    assert status["reachable"] is True
    assert status["identity"] == identity_of(fleet.home)
    assert status["version"].startswith("v1.")
    assert status["nodes"] == 0
    assert status["lastProbeTime"]
    assert [c["type"] for c in status["conditions"]] == ["Reachable", "Authorized", "Ready"]


def test_other_clusters_are_reached_by_their_kubeconfigs(
    fleet: Fleet, clusters: ClusterObjects
) -> None:
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "made-by-hand"}}
    fleet.east.api.create("/api/v1/nodes", node)
    for name in ("east", "west"):
        plane: Foreground = getattr(fleet, name)
        clusters.put_secret(f"{name}-kubeconfig", admin(plane))
        clusters.create(name, secret=f"{name}-kubeconfig")
    for name in ("east", "west"):
        eventually(partial(clusters.is_ready, name))
        assert clusters.status(name)["identity"] == identity_of(getattr(fleet, name))
    assert clusters.status("east")["nodes"] == 1
    printed = fleet.home.api.kubectl("get", "clusters.ajj.io").stdout
    assert "ENVIRONMENT" in printed.splitlines()[0]


def test_an_account_with_two_rights_is_enough_and_with_one_the_nodes_stay_unknown(
    fleet: Fleet, clusters: ClusterObjects
) -> None:
    clusters.put_secret("both", reader(fleet.east.api, "both", SYSTEM, NODES))
    clusters.put_secret("one", reader(fleet.east.api, "one", SYSTEM))
    clusters.create("both", secret="both")
    clusters.create("one", secret="one")
    for name in ("both", "one"):
        eventually(partial(clusters.is_ready, name))
    assert "nodes" in clusters.status("both")
    assert "nodes" not in clusters.status("one")


def test_what_is_missing_is_named_and_found_when_it_comes(
    fleet: Fleet, clusters: ClusterObjects
) -> None:
    clusters.create("east", secret="late")
    eventually(lambda: clusters.reason("east") == "SecretNotFound")
    assert "Secret default/late does not exist" in clusters.condition("east")["message"]
    clusters.put_secret("late", admin(fleet.east), key="other")
    eventually(lambda: clusters.reason("east") == "KeyNotFound")
    assert clusters.condition("east", "Stalled")["status"] == "True"
    clusters.put_secret("late", admin(fleet.east))
    eventually(lambda: clusters.is_ready("east"))
    assert clusters.condition("east", "Stalled") == {}


def test_a_rotated_secret_is_picked_up_without_a_restart(
    fleet: Fleet, clusters: ClusterObjects
) -> None:
    good = yaml.safe_load(admin(fleet.east))
    bad = good | {"users": [{"name": good["users"][0]["name"], "user": {"token": "expired"}}]}
    clusters.put_secret("rotating", yaml.safe_dump(bad))
    clusters.create("east", secret="rotating")
    eventually(lambda: clusters.reason("east") == "Unauthorized")
    assert clusters.condition("east", "Reachable")["status"] == "True"
    assert "credentials" in clusters.condition("east", "Authorized")["message"]
    clusters.put_secret("rotating", yaml.safe_dump(good))
    eventually(lambda: clusters.is_ready("east"))
    clusters.put_secret("rotating", yaml.safe_dump(bad))
    eventually(lambda: clusters.reason("east") == "Unauthorized")


def test_an_account_without_rights_is_forbidden_and_told_what_to_allow(
    fleet: Fleet, clusters: ClusterObjects
) -> None:
    clusters.put_secret("nobody", reader(fleet.east.api, "nobody"))
    clusters.create("east", secret="nobody")
    eventually(lambda: clusters.reason("east", "Authorized") == "Forbidden")
    assert clusters.condition("east", "Reachable")["status"] == "True"
    assert "allow it `get`" in clusters.condition("east", "Authorized")["message"]


def test_case_63_a_replaced_cluster_is_refused_until_it_is_acknowledged(
    fleet: Fleet, clusters: ClusterObjects
) -> None:
    clusters.put_secret("moving", admin(fleet.east))
    clusters.create("moving", secret="moving")
    eventually(lambda: clusters.is_ready("moving"))
    clusters.put_secret("moving", admin(fleet.west))
    eventually(lambda: clusters.reason("moving") == "IdentityChanged")
    assert clusters.status("moving")["identity"] == identity_of(fleet.east)
    said = clusters.condition("moving")["message"]
    command = said.partition("run `")[2].partition("`")[0].split()
    assert command[:2] == ["kubectl", "annotate"]
    fleet.home.api.kubectl(*command[1:])
    eventually(lambda: clusters.is_ready("moving"))
    assert clusters.status("moving")["identity"] == identity_of(fleet.west)
    clusters.put_secret("moving", admin(fleet.east))
    eventually(lambda: clusters.reason("moving") == "IdentityChanged")


def test_a_kubeconfig_that_leads_home_is_refused(fleet: Fleet, clusters: ClusterObjects) -> None:
    clusters.put_secret("home", admin(fleet.home))
    clusters.create("disguised", secret="home")
    eventually(lambda: clusters.reason("disguised") == "OwnCluster")
    assert clusters.condition("disguised", "Stalled")["status"] == "True"


def test_case_93_a_plugin_in_a_secret_is_refused_and_never_run(
    fleet: Fleet, clusters: ClusterObjects, tmp_path: Path
) -> None:
    canary = tmp_path / "canary"
    config = yaml.safe_load(admin(fleet.east))
    config["users"][0]["user"]["exec"] = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": "touch",
        "args": [str(canary)],
        "interactiveMode": "Never",
    }
    clusters.put_secret("hostile", yaml.safe_dump(config))
    clusters.create("hostile", secret="hostile")
    eventually(lambda: clusters.reason("hostile") == "InvalidKubeconfig")
    assert "users[0].user.exec" in clusters.condition("hostile")["message"]
    assert not canary.exists()


def test_a_cluster_that_is_away_is_unreachable_and_the_others_are_served(
    fleet: Fleet, clusters: ClusterObjects
) -> None:
    config = yaml.safe_load(admin(fleet.east))
    config["clusters"][0]["cluster"]["server"] = "https://127.0.0.1:1"
    clusters.put_secret("nowhere", yaml.safe_dump(config))
    clusters.create("nowhere", secret="nowhere")
    clusters.create("home")
    eventually(lambda: clusters.is_ready("home"))
    eventually(lambda: clusters.reason("nowhere") == "Unreachable")
    assert clusters.status("nowhere")["reachable"] is False
    assert "check that the server's address" in clusters.condition("nowhere")["message"]


def test_a_server_with_another_authority_is_not_trusted(
    fleet: Fleet, clusters: ClusterObjects
) -> None:
    config = yaml.safe_load(admin(fleet.east))
    other = yaml.safe_load(admin(fleet.west))
    authority = other["clusters"][0]["cluster"]["certificate-authority-data"]
    config["clusters"][0]["cluster"]["certificate-authority-data"] = authority
    clusters.put_secret("mixed", yaml.safe_dump(config))
    clusters.create("mixed", secret="mixed")
    eventually(lambda: clusters.reason("mixed") == "UntrustedServer")


def test_a_cluster_that_hangs_times_out_and_recovers(
    fleet: Fleet, clusters: ClusterObjects
) -> None:
    server = fleet.west.state().components["kube-apiserver"].pid
    clusters.put_secret("west", admin(fleet.west))
    os.kill(server, signal.SIGSTOP)
    try:
        clusters.create("west", secret="west")
        clusters.create("home")
        eventually(lambda: clusters.is_ready("home"))
        eventually(lambda: clusters.reason("west") == "TimedOut")
        assert clusters.status("west")["reachable"] is False
    finally:
        os.kill(server, signal.SIGCONT)
    clusters.patch(
        "west", {"metadata": {"annotations": {"reconcile.pequod.io/requestedAt": "now"}}}
    )
    eventually(lambda: clusters.is_ready("west"))


def test_a_suspended_cluster_is_not_asked(fleet: Fleet, clusters: ClusterObjects) -> None:
    clusters.create("home", labels={"pequod.io/paused": "true"})
    eventually(lambda: clusters.reason("home") == "Suspended")
    assert "identity" not in clusters.status("home")
    clusters.patch("home", {"metadata": {"labels": {"pequod.io/paused": None}}})
    eventually(lambda: clusters.is_ready("home"))
    assert fleet.operator.process.poll() is None


def test_no_canary_of_a_secret_is_in_the_log_the_status_or_an_event(
    fleet: Fleet, clusters: ClusterObjects
) -> None:
    canary = "canary-d5f1c0a9"
    config = yaml.safe_load(admin(fleet.east))
    config["users"][0]["user"] = {"token": canary}
    clusters.put_secret("canary", yaml.safe_dump(config))
    clusters.create("canary", secret="canary")
    eventually(lambda: clusters.reason("canary") == "Unauthorized")
    broken = yaml.safe_dump(config | {"extra": canary, "users": [{"user": {"tokn": canary}}]})
    clusters.put_secret("canary", broken)
    eventually(lambda: clusters.reason("canary") == "InvalidKubeconfig")
    api = fleet.home.api
    log = fleet.operator.text
    told = api.kubectl("get", "events", "--output=yaml").stdout
    assert canary not in log + told + str(clusters.get("canary"))
