"""A graph of real pods: it becomes Ready, is updated, loses a pod, and is deleted."""

import urllib.request
from collections.abc import Iterator
from functools import partial

import pytest

from clusters import Api
from graphs import Graphs, node, object_
from instances import Foreground, eventually
from operators import operator, operator_kubeconfig

NAMESPACE = "graphs-of-pods"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
LABELS = {"app": "shop"}


@pytest.fixture(scope="module")
def graphs(node: Foreground, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Graphs]:
    """Graphs of a namespace of their own, and an operator that executes them."""
    api = node.api
    assert api.create("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}}).code == 201
    account = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts"
    assert api.create(account, {"metadata": {"name": "tenant"}}).code == 201
    binding = {
        "metadata": {"name": "tenant"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "edit"},
        "subjects": [{"kind": "ServiceAccount", "name": "tenant", "namespace": NAMESPACE}],
    }
    assert api.create(f"{RBAC}/namespaces/{NAMESPACE}/rolebindings", binding).code == 201
    folder = tmp_path_factory.mktemp("operator")
    kubeconfig = operator_kubeconfig(api, folder / "kubeconfig")
    with operator(kubeconfig, folder / "log") as running:
        running.wait_until_leading()
        yield Graphs(api, NAMESPACE, api)


def shop(image: str, greeting: str) -> list[dict[str, object]]:
    """Settings, a Deployment that waits for them, its Service, and a Job after all of it."""
    container = {
        "name": "shop",
        "image": image,
        "args": ["serve", greeting],
        "readinessProbe": {"httpGet": {"path": "/", "port": 8080}, "periodSeconds": 1},
    }
    template = {
        "metadata": {"labels": LABELS},
        "spec": {"containers": [container], "terminationGracePeriodSeconds": 1},
    }
    spec = {"replicas": 2, "selector": {"matchLabels": LABELS}, "template": template}
    ports = [{"port": 80, "targetPort": 8080}]
    url = f"http://shop.{NAMESPACE}.svc.cluster.local/"
    asking = {
        "restartPolicy": "OnFailure",
        "containers": [{"name": "ask", "image": image, "args": ["get", url]}],
    }
    return [
        node("settings", object_("v1", "ConfigMap", "settings", data={"greeting": greeting})),
        node("shop", object_("apps/v1", "Deployment", "shop", spec=spec), dependsOn=["settings"]),
        node(
            "service",
            object_("v1", "Service", "shop", spec={"selector": LABELS, "ports": ports}),
        ),
        node(
            "smoke",
            object_("batch/v1", "Job", "smoke", spec={"template": {"spec": asking}}),
            dependsOn=["shop", "service"],
            readyWhen=[{"type": "JobComplete", "timeout": "2m"}],
            applyPolicy={"mode": "Create"},
        ),
    ]


def pods(api: Api) -> dict[str, str]:
    """The pods of the shop by name, and their UIDs."""
    items = api.get(f"/api/v1/namespaces/{NAMESPACE}/pods?labelSelector=app%3Dshop").body["items"]
    return {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in items}


def serves(api: Api, greeting: str) -> bool:
    """Whether the Service answers so; its rules follow the pods a moment later."""
    address = api.get(f"/api/v1/namespaces/{NAMESPACE}/services/shop").body["spec"]["clusterIP"]
    try:
        with urllib.request.urlopen(f"http://{address}/", timeout=2) as answer:
            return bool(answer.read().decode() == greeting)
    except OSError:
        return False


def test_a_graph_of_real_pods_lives_its_life(graphs: Graphs, image: str) -> None:
    """The Job runs once, after the pods serve; a lost pod is noticed and waited for."""
    api = graphs.api
    graphs.create("shop", *shop(image, "first"))
    eventually(partial(graphs.is_ready, "shop"))
    eventually(partial(serves, api, "first"))
    assert graphs.live("batch/v1/jobs", "smoke")["status"]["succeeded"] == 1
    before = pods(api)
    assert len(before) == 2

    graphs.change("shop", *shop(image, "second"))
    eventually(partial(graphs.is_ready, "shop"))
    eventually(partial(serves, api, "second"))
    eventually(lambda: before.keys().isdisjoint(pods(api)))

    lost = next(iter(pods(api)))
    api.call("DELETE", f"/api/v1/namespaces/{NAMESPACE}/pods/{lost}")
    eventually(lambda: lost not in pods(api))
    eventually(lambda: len(pods(api)) == 2)
    eventually(partial(graphs.is_ready, "shop"))
    eventually(partial(serves, api, "second"))

    graphs.delete("shop")
    eventually(lambda: not graphs.exists("shop"))
    assert pods(api) == {}
    for resource in ("configmaps", "services", "apps/v1/deployments", "batch/v1/jobs"):
        left = api.get(f"{graphs.path(resource)}?labelSelector=pequod.io/graph").body["items"]
        assert left == []


def test_an_image_that_does_not_exist_is_said_with_its_pod(graphs: Graphs, image: str) -> None:
    """Which pod, which container, which message: what a person would look for by hand."""
    nodes = shop(f"{image}-missing", "never")[:3]
    nodes[1]["readyWhen"] = [{"type": "Current", "timeout": "4s"}]
    graphs.create("broken", *nodes)
    eventually(lambda: graphs.phase("broken", "shop") == "Error")
    eventually(lambda: "ImagePull" in graphs.message("broken") or _pulls(graphs))
    message = graphs.status("broken")["nodeStatus"]["shop"]["lastError"]
    assert "Pod/" in message
    graphs.delete("broken")
    eventually(lambda: not graphs.exists("broken"))


def _pulls(graphs: Graphs) -> bool:
    error = graphs.status("broken")["nodeStatus"]["shop"].get("lastError", "")
    return "ImagePull" in error or "ErrImage" in error
