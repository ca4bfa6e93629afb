"""Rule 8: Secrets stay in Secrets."""

import json
import secrets
from base64 import b64encode
from functools import partial

import pytest

from graphs import Graphs, Start, node, object_
from waiting import until

SECRET = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "token"}}


def part(key: str) -> dict[str, object]:
    return {"secretRef": {"name": "parts", "key": key}}


async def test_rule_8_a_canary_is_in_no_object_event_or_log_but_its_secrets(
    graphs: Graphs, engine: Start, capfd: pytest.CaptureFixture[str]
) -> None:
    """Applied, drifted, refused by the API server, changed and pruned: nothing shows the value."""
    canary = f"canary-{secrets.token_hex(16)}"
    graphs.secret(
        "parts",
        good=json.dumps({"stringData": {"password": canary}}),
        broken=json.dumps({"data": {"password": f"{canary} is not base64"}}),
        text=canary,
    )
    bad = SECRET | {"metadata": {"name": "bad"}}
    text = SECRET | {"metadata": {"name": "text"}}
    graphs.create(
        "web",
        node("token", SECRET, objectFrom=part("good")),
        node("bad", bad, objectFrom=part("broken")),
        node("text", text, objectFrom=part("text")),
    )
    async with engine():
        await until(lambda: graphs.phase("web", "token") == "Ready")
        await until(lambda: graphs.phase("web", "bad") == "Error")
        await until(lambda: graphs.phase("web", "text") == "Error")
        graphs.edit("secrets", "token", {"stringData": {"password": "evil"}})
        encoded = b64encode(canary.encode()).decode()
        await until(lambda: graphs.live("secrets", "token")["data"]["password"] == encoded)
        graphs.change("web", node("token", SECRET, objectFrom=part("good")))
        await until(partial(graphs.is_ready, "web"))
    leaks = (canary, encoded, encoded[:24])
    everything = json.dumps(_everything(graphs))
    said = "".join(capfd.readouterr())
    for leak in leaks:
        assert leak not in everything
        assert leak not in said


def _everything(graphs: Graphs) -> list[object]:
    """Every object of the namespace that is no Secret, events included."""
    found: list[object] = []
    for resource in ("configmaps", "events", "serviceaccounts", "apps/v1/controllerrevisions"):
        found += graphs.api.get(graphs.path(resource)).body["items"]
    for path in ("platform.pequod.io/v1alpha1", "events.k8s.io/v1"):
        plural = "resourcegraphs" if "pequod" in path else "events"
        found += graphs.api.get(f"/apis/{path}/namespaces/{graphs.namespace}/{plural}").body[
            "items"
        ]
    return found


async def test_rule_8_data_of_a_secret_in_a_graph_is_refused(graphs: Graphs, engine: Start) -> None:
    graphs.create("web", node("token", SECRET | {"stringData": {"password": "visible"}}))
    async with engine() as running:
        await until(lambda: graphs.reason("web") == "InvalidGraph")
        assert "objectFrom" in graphs.message("web")
        assert not running.journal.writes()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ({"kind": "ConfigMap"}, "must not hold kind"),
        ({"metadata": {"name": "other"}}, "must not hold metadata"),
        ({"type": "bootstrap.kubernetes.io/token"}, "would replace .type"),
    ],
)
async def test_a_sensitive_part_may_add_to_an_object_and_replace_nothing_of_it(
    graphs: Graphs, engine: Start, content: dict[str, object], said: str
) -> None:
    """Policies have judged the node as it stands in the graph."""
    graphs.secret("parts", token=json.dumps(content))
    graphs.create("web", node("token", SECRET | {"type": "Opaque"}, objectFrom=part("token")))
    async with engine() as running:
        await until(lambda: graphs.reason("web", "Applied") == "Invalid")
        assert said in graphs.message("web", "Applied")
        assert not running.journal.writes()


async def test_a_confined_graph_does_not_reach_further_by_its_sensitive_part(
    graphs: Graphs, engine: Start
) -> None:
    """The account of a pod is judged with everything merged."""
    graphs.secret("parts", pod=json.dumps({"spec": {"serviceAccountName": "admin"}}))
    pod = object_("v1", "Pod", "pod", spec={"containers": [{"name": "a", "image": "a:1"}]})
    other = Graphs(graphs.as_operator, graphs.namespace, graphs.as_operator)
    path = f"/apis/platform.pequod.io/v1alpha1/namespaces/{graphs.namespace}/transforms"
    body = {
        "apiVersion": "platform.pequod.io/v1alpha1",
        "kind": "Transform",
        "metadata": {"name": "source"},
        "spec": {"cueRef": {"type": "embedded", "ref": "webservice"}, "input": {}},
    }
    source = graphs.api.create(path, body).body
    reference = {
        "apiVersion": source["apiVersion"],
        "kind": "Transform",
        "name": "source",
        "namespace": graphs.namespace,
        "uid": source["metadata"]["uid"],
    }
    other.create(
        "web",
        node("pod", pod, objectFrom=part("pod")),
        sourceRef=reference,
        serviceAccountName=None,
    )
    async with engine() as running:
        await until(lambda: "ServiceAccount admin" in graphs.message("web", "Applied"))
        assert not running.journal.writes()


async def test_the_secret_of_a_sensitive_part_is_waited_for_and_read_as_the_tenant(
    graphs: Graphs, engine: Start
) -> None:
    graphs.create("web", node("token", SECRET, objectFrom=part("token")))
    async with engine() as running:
        await until(lambda: "does not exist" in graphs.message("web", "Applied"))
        graphs.secret("parts", token=json.dumps({"stringData": {"a": "b"}}))
        await until(partial(graphs.is_ready, "web"))
        reads = [one for one in running.journal.of("secrets/parts") if one.method == "GET"]
        assert reads
        assert all(one.user.endswith(":tenant") for one in reads)
