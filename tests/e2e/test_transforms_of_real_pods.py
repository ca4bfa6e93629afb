"""Transforms of real pods: the shipped modules serve, are updated, go back, adopt, and end."""

import urllib.request
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from adoptions import explicit, kubectl_apply, resource
from graphs import Graphs, Object, object_
from instances import Foreground, eventually
from operators import operator, operator_kubeconfig
from pequod.dev.node.configuration import LOCAL_REGISTRY
from pequod.dev.node.images import write_image
from standin import write_standin
from transforms import Transforms
from volumes import CLAIMS, own_volume

NAMESPACE = "transforms-of-pods"
WEB = {"type": "embedded", "ref": "webservice"}
DATABASE = {"type": "embedded", "ref": "database"}
DEPLOYMENTS = "apps/v1/deployments"
NEXT_IMAGE = f"{LOCAL_REGISTRY}/program:2"
DATABASE_IMAGE = f"{LOCAL_REGISTRY}/standin:1"
DATABASE_USER = 999
USER = 1000
"""The images that are made here have no user of their own, and nothing runs as root."""


@pytest.fixture(scope="module")
def transforms(node: Foreground, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Transforms]:
    """Transforms of a namespace of their own, and an operator as it is shipped."""
    api = node.api
    assert api.create("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}}).code == 201
    folder = tmp_path_factory.mktemp("operator")
    kubeconfig = operator_kubeconfig(api, folder / "kubeconfig")
    with operator(kubeconfig, folder / "log", f"--store={folder / 'store'}") as running:
        running.wait_until_leading()
        yield Transforms(Graphs(api, NAMESPACE, api))


@pytest.fixture(scope="module")
def next_image(node: Foreground, program: Path) -> str:
    """The same program under another name: a new version."""
    write_image(node.root / "node/next.tar", name=NEXT_IMAGE, program=program)
    return load(node, "next.tar", NEXT_IMAGE)


@pytest.fixture(scope="module")
def database_image(node: Foreground, tmp_path_factory: pytest.TempPathFactory) -> str:
    """What takes the place of PostgreSQL: it counts its starts on its volume, and answers."""
    write_standin(
        node.root / "node/standin.tar", DATABASE_IMAGE, tmp_path_factory.mktemp("standin")
    )
    return load(node, "standin.tar", DATABASE_IMAGE)


def load(node: Foreground, archive: str, name: str) -> str:
    ctr = ("ctr", "--namespace=k8s.io", "images")
    node.execute(*ctr, "import", f"/var/lib/pequod/node/{archive}")
    node.execute(*ctr, "push", "--hosts-dir=/var/lib/pequod/node/registries", name)
    return name


def web(image: str, greeting: str) -> Object:
    """The input of a web service that says something, and stops at once."""
    return {
        "image": image,
        "args": ["serve", greeting],
        "probes": {"readiness": {"path": "/", "periodSeconds": 1}},
        "security": {"runAsUser": USER},
        "shutdown": {"drainSeconds": 0, "gracePeriodSeconds": 1},
    }


def said(transforms: Transforms, service: str, port: int = 80) -> str:
    """What a Service answers, once it is there; its rules follow the pods a moment later."""
    found = transforms.find("services", service)
    if found is None:
        return ""
    try:
        url = f"http://{found['spec']['clusterIP']}:{port}/"
        with urllib.request.urlopen(url, timeout=2) as answer:
            return str(answer.read().decode())
    except OSError:
        return ""


def says(transforms: Transforms, service: str, greeting: str) -> bool:
    return said(transforms, service) == greeting


def images(transforms: Transforms, name: str) -> list[str]:
    """The images of the pods of a web service that are not on their way out."""
    query = f"?labelSelector=app.kubernetes.io%2Fname%3D{name}"
    pods = transforms.api.get(transforms.path("pods") + query).body["items"]
    return [
        pod["spec"]["containers"][0]["image"]
        for pod in pods
        if "deletionTimestamp" not in pod["metadata"]
    ]


def assert_nothing_is_left(transforms: Transforms) -> None:
    for one in ("services", "serviceaccounts", DEPLOYMENTS, "policy/v1/poddisruptionbudgets"):
        path = f"{transforms.path(one)}?labelSelector=pequod.io/graph"
        assert transforms.api.get(path).body["items"] == [], one


def test_a_web_service_serves_is_updated_goes_back_and_ends(
    transforms: Transforms, image: str, next_image: str
) -> None:
    transforms.ask("shop", web(image, "first"), cueRef=WEB)
    eventually(partial(transforms.is_done, "shop"))
    eventually(partial(says, transforms, "shop", "first"))
    assert images(transforms, "shop") == [image] * 2

    transforms.alter("shop", input=web(next_image, "second"))
    eventually(lambda: images(transforms, "shop") == [next_image] * 2)
    eventually(partial(says, transforms, "shop", "second"))
    eventually(partial(transforms.is_done, "shop"))
    eventually(lambda: all(one["ready"] for one in transforms.told("shop")["revisions"]))

    transforms.alter("shop", rollbackTo=1)
    eventually(lambda: images(transforms, "shop") == [image] * 2)
    eventually(partial(says, transforms, "shop", "first"))
    eventually(partial(transforms.is_done, "shop"))
    assert "revision 1 (spec.rollbackTo)" in transforms.says("shop")["message"]

    transforms.alter("shop", rollbackTo=None)
    eventually(lambda: images(transforms, "shop") == [next_image] * 2)
    eventually(partial(says, transforms, "shop", "second"))

    transforms.end("shop")
    eventually(partial(transforms.is_gone, "shop"))
    eventually(lambda: images(transforms, "shop") == [])
    assert_nothing_is_left(transforms)


def test_a_deployment_made_by_hand_is_adopted_and_goes_on_serving(
    transforms: Transforms, image: str, tmp_path: Path
) -> None:
    """It keeps its UID, and whoever selects its pods gets those that replace them."""
    labels = {"app.kubernetes.io/name": "legacy", "app.kubernetes.io/instance": "legacy"}
    container = {
        "name": "app",
        "image": image,
        "args": ["serve", "by hand"],
        "readinessProbe": {"httpGet": {"path": "/", "port": 8080}, "periodSeconds": 1},
    }
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    spec = {"replicas": 2, "selector": {"matchLabels": labels}, "template": pod}
    ports = {"selector": labels, "ports": [{"port": 80, "targetPort": 8080}]}
    kubectl_apply(
        transforms,
        tmp_path,
        object_("apps/v1", "Deployment", "legacy", spec=spec),
        object_("v1", "Service", "by-hand", spec=ports),
    )
    eventually(partial(says, transforms, "by-hand", "by hand"))
    before = transforms.uid(DEPLOYMENTS, "legacy")

    adopt = explicit(resource("Deployment", "legacy", "apps/v1"))
    transforms.ask("legacy", web(image, "adopted"), cueRef=WEB, adopt=adopt)
    eventually(partial(says, transforms, "legacy", "adopted"))
    eventually(partial(says, transforms, "by-hand", "adopted"))
    eventually(partial(transforms.is_done, "legacy"))
    assert transforms.uid(DEPLOYMENTS, "legacy") == before

    transforms.end("legacy")
    eventually(partial(transforms.is_gone, "legacy"))
    assert transforms.find(DEPLOYMENTS, "legacy") is None
    assert_nothing_is_left(transforms)
    transforms.remove("services", "by-hand")


def test_a_database_keeps_its_volume_over_restarts_and_its_end(
    transforms: Transforms, node: Foreground, database_image: str
) -> None:
    """A stand-in for PostgreSQL, in everything that the module `database` makes around it."""
    credentials = {"username": "ada", "password": "correct-horse-battery"}
    transforms.secret("shop-db", **credentials)
    given: Object = {
        "engine": "postgres",
        "image": database_image,
        "database": "shop",
        "credentials": {"secretName": "shop-db"},
        "size": "64Mi",
        "resources": {"requests": {"memory": "64Mi"}},
    }
    transforms.ask("shop-db", given, cueRef=DATABASE)
    own_volume(transforms, node, "shop-db-data", DATABASE_USER)
    eventually(partial(transforms.is_done, "shop-db"), within=120)
    eventually(lambda: said(transforms, "shop-db", 5432) == "shop of ada, start 1")
    assert credentials["password"] not in str(transforms.get("transform-shop-db"))

    transforms.alter("shop-db", input={**given, "parameters": {"max_connections": "50"}})
    eventually(lambda: said(transforms, "shop-db", 5432) == "shop of ada, start 2", within=120)
    eventually(partial(transforms.is_done, "shop-db"))

    transforms.end("shop-db")
    eventually(partial(transforms.is_gone, "shop-db"), within=120)
    assert transforms.find("apps/v1/statefulsets", "shop-db") is None
    claim = transforms.live(CLAIMS, "shop-db-data")
    assert claim["status"]["phase"] == "Bound"
    assert "deletionTimestamp" not in claim["metadata"]
