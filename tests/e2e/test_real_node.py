"""Pods that really run: images, names, volumes, logs; and a node that survives its parts."""

import secrets
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from clusters import Api
from instances import Foreground, eventually

GREETING = "hello from a real pod"


@pytest.fixture
def api(node: Foreground) -> Api:
    return node.api


def run_job(api: Api, name: str, image: str, *arguments: str, claim: str | None = None) -> str:
    """Run a program to its end in a pod, with a claim as /data, and return what it printed."""
    container: dict[str, object] = {"name": "main", "image": image, "args": list(arguments)}
    spec: dict[str, object] = {"restartPolicy": "Never", "containers": [container]}
    if claim:
        container["volumeMounts"] = [{"name": "data", "mountPath": "/data"}]
        spec["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}]
    job = {"metadata": {"name": name}, "spec": {"backoffLimit": 0, "template": {"spec": spec}}}
    answer = api.create("/apis/batch/v1/namespaces/default/jobs", job)
    assert answer.code == 201, answer.message
    api.kubectl("wait", "--for=condition=Complete", "--timeout=90s", f"job/{name}")
    return api.kubectl("logs", f"job/{name}").stdout


@pytest.fixture(scope="session")
def web(node: Foreground, image: str) -> str:
    """A web server with two pods behind a Service; yields the name of the Service."""
    labels = {"app": "web"}
    container = {
        "name": "web",
        "image": image,
        "args": ["serve", GREETING],
        "readinessProbe": {"httpGet": {"path": "/", "port": 8080}},
    }
    deployment = {
        "metadata": {"name": "web"},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }
    service = {
        "metadata": {"name": "web"},
        "spec": {"selector": labels, "ports": [{"port": 80, "targetPort": 8080}]},
    }
    api = node.api
    assert api.create("/apis/apps/v1/namespaces/default/deployments", deployment).code == 201
    assert api.create("/api/v1/namespaces/default/services", service).code == 201
    api.kubectl("wait", "--for=condition=Available", "--timeout=90s", "deployment/web")
    return "web"


def test_a_pod_is_pulled_from_the_local_registry_and_serves_http_through_its_service_name(
    api: Api, image: str, web: str
) -> None:
    url = f"http://{web}.default.svc.cluster.local/"
    assert run_job(api, "ask-by-name", image, "get", url).endswith(GREETING)
    # Whichever test came first had it pulled.
    pulled = ("events", "--all-namespaces", "--field-selector=reason=Pulled")
    events = api.kubectl("get", *pulled).stdout
    assert f'Successfully pulled image "{image}"' in events


def test_a_claim_is_bound_and_what_is_written_to_it_is_still_there_for_the_next_pod(
    api: Api, image: str
) -> None:
    claim = {
        "metadata": {"name": "data"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
    claims = "/api/v1/namespaces/default/persistentvolumeclaims"
    assert api.create(claims, claim).code == 201
    assert run_job(api, "write", image, "write", "/data/file", "kept", claim="data") == "kept"
    assert run_job(api, "read", image, "read", "/data/file", claim="data") == "kept"
    assert api.get(f"{claims}/data").body["status"]["phase"] == "Bound"


def test_services_and_pods_are_reached_from_this_machine_too(api: Api, web: str) -> None:
    address = api.get(f"/api/v1/namespaces/default/services/{web}").body["spec"]["clusterIP"]
    with urllib.request.urlopen(f"http://{address}/", timeout=10) as answer:
        assert answer.read().decode() == GREETING


@pytest.fixture
def outside() -> Iterator[str]:
    """A host beyond this machine that knows no way back to pods; yields its name."""
    name = f"outside-{secrets.token_hex(2)}"
    here, there, address = f"o{name[-4:]}h", f"o{name[-4:]}o", "10.230.77.2"
    inside = ("ip", "netns", "exec", name)
    for command in (
        ("ip", "netns", "add", name),
        ("ip", "link", "add", here, "type", "veth", "peer", "name", there, "netns", name),
        ("ip", "address", "add", "10.230.77.1/24", "dev", here),
        ("ip", "link", "set", here, "up"),
        (*inside, "ip", "address", "add", f"{address}/24", "dev", there),
        (*inside, "ip", "link", "set", there, "up"),
    ):
        subprocess.run(command, check=True)
    try:
        yield name
    finally:
        subprocess.run(["ip", "netns", "delete", name], check=True)


def test_a_pod_reaches_beyond_this_machine(
    api: Api, image: str, outside: str, program: Path
) -> None:
    server = subprocess.Popen(["ip", "netns", "exec", outside, program, "serve", "far away"])
    try:
        url = "http://10.230.77.2:8080/"
        assert run_job(api, "ask-outside", image, "get", url).endswith("far away")
    finally:
        server.kill()
        server.wait()


def test_kubectl_exec_reaches_into_a_pod(api: Api, web: str) -> None:
    printed = api.kubectl("exec", f"deployment/{web}", "--", "/program", "write", "/x", "inside")
    assert printed.stdout == "inside"


def test_killing_the_parts_of_the_node_leaves_its_pods_running(
    node: Foreground, api: Api, image: str, web: str
) -> None:
    before = _containers(api)
    for part in ("containerd", "kubelet", "kube-proxy", "coredns", "registry"):
        node.kill_component(part)
    api.kubectl("wait", "--for=condition=Ready", "--timeout=60s", "node/real")
    url = f"http://{web}.default.svc.cluster.local/"
    assert run_job(api, "ask-again", image, "get", url).endswith(GREETING)
    eventually(lambda: _containers(api) == before)


def _containers(api: Api) -> set[str]:
    pods = api.get("/api/v1/namespaces/default/pods?labelSelector=app%3Dweb").body["items"]
    return {status["containerID"] for pod in pods for status in pod["status"]["containerStatuses"]}
