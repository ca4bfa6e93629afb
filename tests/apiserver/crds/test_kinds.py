"""What kubectl and generic tools see of our kinds."""

from pathlib import Path
from typing import Any

import pytest

from clusters import Api
from schemas import Kind, kinds, load, properties, sample_files

KINDS = pytest.mark.parametrize("kind", kinds().values(), ids=lambda kind: kind.name)


def _stored(kind: Kind, api: Api, namespace: str) -> dict[str, Any]:
    (path,) = (one for one in sample_files() if _is_plain(one, kind))
    (sample,) = load(path)
    sample["metadata"]["namespace"] = namespace
    answer = api.create(kind.collection(namespace), sample)
    assert answer.code == 201, answer.message
    return answer.body


def _is_plain(path: Path, kind: Kind) -> bool:
    return path.stem == kind.name.lower() and path.parent.name != "complete"


@KINDS
def test_a_fresh_object_is_not_current_for_kstatus(kind: Kind, api: Api, namespace: str) -> None:
    """kstatus calls an object in progress while its observedGeneration is not its generation."""
    stored = _stored(kind, api, namespace)
    assert stored["metadata"]["generation"] == 1
    assert stored["status"]["observedGeneration"] == -1


@KINDS
def test_kubectl_wait_does_not_take_a_fresh_object_for_ready(
    kind: Kind, api: Api, namespace: str
) -> None:
    name = _stored(kind, api, namespace)["metadata"]["name"]
    waited = api.kubectl(
        "wait",
        f"--namespace={namespace}",
        "--for=condition=Ready",
        "--timeout=1s",
        f"{kind.plural}/{name}",
        check=False,
    )
    assert waited.returncode != 0
    assert "timed out waiting for the condition" in waited.stderr


@KINDS
def test_every_field_has_text_for_kubectl_explain(kind: Kind, api: Api) -> None:
    document = api.get(f"/openapi/v3/apis/{kind.api_version}").body
    (served,) = (
        schema
        for schema in document["components"]["schemas"].values()
        if any(
            entry["kind"] == kind.name
            for entry in schema.get("x-kubernetes-group-version-kind", ())
        )
    )
    fields = dict(properties(served))
    assert len(fields) > 20
    assert [path for path, field in fields.items() if not field.get("description")] == []


def test_kubectl_explain_shows_the_text_of_a_field(api: Api) -> None:
    text = api.kubectl("explain", "transform.spec.cueRef.ref").stdout
    assert "an OCI reference, a git URL" in " ".join(text.split())


@pytest.mark.parametrize("short", ["tf", "rg"])
def test_short_names_work(short: str, api: Api, namespace: str) -> None:
    listed = api.kubectl("get", short, f"--namespace={namespace}")
    assert "No resources found" in listed.stderr


def test_one_word_lists_every_kind(api: Api, namespace: str) -> None:
    for kind in kinds().values():
        _stored(kind, api, namespace)
    listed = api.kubectl("get", "pequod", f"--namespace={namespace}").stdout
    assert "transform.platform.pequod.io/hello" in listed
    assert "resourcegraph.platform.pequod.io/by-hand" in listed
    assert "cluster.ajj.io/in-cluster" in listed


COLUMNS = {
    "Transform": ["NAME", "PHASE", "READY", "STATUS", "AGE"],
    "ResourceGraph": ["NAME", "PHASE", "READY", "STATUS", "AGE"],
    "OPChain": ["NAME", "PHASE", "CHAINID", "READY", "STATUS", "AGE"],
    "Cluster": ["NAME", "ENVIRONMENT", "VERSION", "REACHABLE", "READY", "STATUS", "AGE"],
}


@KINDS
def test_the_columns_of_kubectl_get(kind: Kind, api: Api, namespace: str) -> None:
    _stored(kind, api, namespace)
    header = api.kubectl("get", kind.plural, f"--namespace={namespace}").stdout.splitlines()[0]
    assert header.split() == COLUMNS[kind.name]


@KINDS
def test_a_status_goes_through_its_own_door_and_leaves_the_generation_alone(
    kind: Kind, api: Api, as_operator: Api, namespace: str
) -> None:
    stored = _stored(kind, api, namespace)
    url = f"{kind.collection(namespace)}/{stored['metadata']['name']}"
    condition = {
        "type": "Ready",
        "status": "True",
        "reason": "Tested",
        "message": "the status can be written",
        "lastTransitionTime": "2026-11-01T12:00:00Z",
        "observedGeneration": 1,
    }
    patch = {"status": {"observedGeneration": 1, "conditions": [condition]}}
    answer = as_operator.patch(f"{url}/status", patch)
    assert answer.code == 200, answer.message
    assert answer.body["metadata"]["generation"] == 1
    waited = api.kubectl(
        "wait",
        f"--namespace={namespace}",
        "--for=condition=Ready",
        f"{kind.plural}/{stored['metadata']['name']}",
    )
    assert "condition met" in waited.stdout
