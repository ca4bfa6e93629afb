"""Values that nodes take from the live objects of others: `${nodes.<id>…}`."""

import json
import secrets
from functools import partial
from typing import Any

import pytest

from clusters import Api
from evaluators import evaluating
from graphs import (
    TENANT,
    Graphs,
    Start,
    config_map,
    deployment,
    grant_writing,
    node,
    object_,
)
from waiting import until

DB = node("my-db", config_map("db"))


def service(name: str, port: Any) -> dict[str, Any]:  # noqa: ANN401 -- a number, or what becomes one
    ports = [{"name": "http", "port": port, "targetPort": 8080}]
    return object_("v1", "Service", name, spec={"selector": {"app": name}, "ports": ports})


def data(graphs: Graphs, name: str) -> dict[str, str]:
    """What a ConfigMap holds; nothing when there is none."""
    found = graphs.find("configmaps", name)
    return dict(found["data"]) if found is not None else {}


def details(graphs: Graphs, id_: str) -> str:
    return str(graphs.status("web")["nodeStatus"][id_].get("readyDetails", ""))


async def test_a_value_that_is_not_there_yet_is_waited_for_and_told(
    graphs: Graphs, engine: Start
) -> None:
    """It is looked at again when the source changes, and never before."""
    url = "postgres://${nodes.my-db.data.host}:5432/${HOME}"
    graphs.create("web", DB, node("app", config_map("app", url=url)))
    async with evaluating() as cel, engine(cel=cel) as running:
        await until(lambda: graphs.phase("web", "my-db") == "Ready")
        told = "waits for ${nodes.my-db.data.host} (at data.url): no such field yet"
        await until(lambda: told in graphs.message("web", "Applied"))
        assert graphs.reason("web", "Applied") == "WaitingForNodes"
        assert graphs.phase("web", "app") == "Pending"
        assert details(graphs, "app") == told
        assert graphs.find("configmaps", "app") is None
        running.journal.clear()
        await graphs.settled(running)
        assert not running.journal.of("configmaps/db")
        graphs.edit("configmaps", "db", {"data": {"host": "here"}})
        await until(partial(graphs.is_ready, "web"))
        assert data(graphs, "app") == {"url": "postgres://here:5432/${HOME}"}
        reads = running.journal.of("configmaps/db")
        assert [(one.method, one.user.endswith(f":{TENANT}")) for one in reads] == [("GET", True)]


async def test_values_keep_their_types_and_cel_is_at_hand(graphs: Graphs, engine: Start) -> None:
    copy = config_map("copy") | {"data": "${nodes.my-db.data}"}
    scaled = deployment("scaled")
    scaled["spec"]["replicas"] = "${nodes.app.spec.replicas + 1}"
    texts = config_map(
        "texts",
        uid="${nodes.app.metadata.uid}",
        port=":${nodes.service.spec.ports[0].port}",
        ready='${nodes.app.spec.replicas == 0 ? "none" : "some"}',
        escaped="$${nodes.app.spec.replicas}",
        text="${string(nodes.app.spec.replicas)}",
    )
    graphs.create(
        "web",
        DB,
        node("app", deployment("app")),
        node("service", service("first", 80)),
        node("second", service("second", "${nodes.service.spec.ports[0].port}")),
        node("copy", copy),
        node("scaled", scaled),
        node("texts", texts),
    )
    async with evaluating() as cel, engine(cel=cel):
        await until(partial(graphs.is_ready, "web"))
    assert graphs.live("services", "second")["spec"]["ports"][0]["port"] == 80
    assert graphs.live("apps/v1/deployments", "scaled")["spec"]["replicas"] == 1
    assert data(graphs, "copy") == {"a": "1"}
    assert data(graphs, "texts") == {
        "uid": graphs.uid("apps/v1/deployments", "app"),
        "port": ":80",
        "ready": "none",
        "escaped": "${nodes.app.spec.replicas}",
        "text": "0",
    }
    assert graphs.get("web")["spec"]["nodes"][3].get("dependsOn") is None


async def test_a_changed_value_is_one_write_and_an_unchanged_one_is_none(
    graphs: Graphs, engine: Start
) -> None:
    graphs.create(
        "web",
        DB,
        node("one", config_map("one", x="${nodes.my-db.data.a}")),
        node("two", config_map("two", x="<${nodes.my-db.data.?b.orValue('')}>")),
        node("after", config_map("after", x="${nodes.one.data.x}")),
    )
    async with evaluating() as cel, engine(cel=cel) as running:
        await until(partial(graphs.is_ready, "web"))
        assert len(running.journal.writes()) == 4
        running.journal.clear()
        version = graphs.get("web")["metadata"]["resourceVersion"]
        graphs.edit("configmaps", "db", {"metadata": {"annotations": {"x": "y"}}})
        await graphs.settled(running)
        assert not running.journal.writes()
        assert graphs.get("web")["metadata"]["resourceVersion"] == version
        reads = [one for one in running.journal.of("configmaps/db") if one.method == "GET"]
        assert len(reads) == 1, "once for both that take values from it"
        graphs.edit("configmaps", "db", {"data": {"b": "new"}})
        await until(lambda: data(graphs, "two") == {"x": "<new>"})
        await graphs.settled(running)
        assert [one.place.rpartition("/")[2] for one in running.journal.writes()] == ["two"]
        running.journal.clear()
        changed = node("my-db", config_map("db", a="2"))
        nodes = graphs.get("web")["spec"]["nodes"]
        graphs.change("web", changed, *nodes[1:])
        await until(lambda: data(graphs, "after") == {"x": "2"})
        await until(partial(graphs.is_ready, "web"))
        written = [one.place.rpartition("/")[2] for one in running.journal.writes()]
        assert written == ["db", "one", "after"], "a change walks through the graph in one pass"


async def test_a_restart_reads_and_does_not_write(graphs: Graphs, engine: Start) -> None:
    graphs.create("web", DB, node("app", config_map("app", x="${nodes.my-db.data.a}")))
    async with evaluating() as cel:
        async with engine(cel=cel):
            await until(partial(graphs.is_ready, "web"))
        version = graphs.get("web")["metadata"]["resourceVersion"]
        async with engine(cel=cel) as running:
            await graphs.settled(running)
            assert not running.journal.writes()
            assert [one.method for one in running.journal.of("configmaps/db")] == ["GET"]
        assert graphs.get("web")["metadata"]["resourceVersion"] == version


async def test_what_somebody_edits_is_put_back_with_its_values(
    graphs: Graphs, engine: Start
) -> None:
    """Drift of the taker is repaired; drift of the source never reaches the taker."""
    graphs.create("web", DB, node("app", config_map("app", x="${nodes.my-db.data.a}")))
    async with evaluating() as cel, engine(cel=cel) as running:
        await until(partial(graphs.is_ready, "web"))
        graphs.edit("configmaps", "app", {"data": {"x": "evil"}})
        await until(lambda: data(graphs, "app") == {"x": "1"})
        running.journal.clear()
        graphs.edit("configmaps", "db", {"data": {"a": "evil"}})
        await until(lambda: data(graphs, "db") == {"a": "1"})
        await graphs.settled(running)
        assert not running.journal.writes("configmaps/app")
        assert data(graphs, "app") == {"x": "1"}


async def test_large_values_are_not_kept_and_read_again_when_they_are_needed(
    graphs: Graphs, engine: Start
) -> None:
    large = "x" * 20_000
    graphs.create(
        "web",
        node("large", config_map("large", x=large)),
        node("app", config_map("app", x="${nodes.large.data.x}")),
    )
    async with evaluating() as cel, engine(cel=cel) as running:
        await until(partial(graphs.is_ready, "web"))
        await graphs.settled(running)
        running.journal.clear()
        graphs.edit("configmaps", "app", {"data": {"x": "evil"}})
        await until(lambda: data(graphs, "app") == {"x": large})
        await graphs.settled(running)
        assert [one.method for one in running.journal.of("configmaps/large")] == ["GET"]
        assert len(running.journal.writes()) <= 2


async def test_what_is_made_once_keeps_the_values_of_that_time(
    graphs: Graphs, engine: Start
) -> None:
    create = {"mode": "Create"}
    app = node("app", config_map("app", x="${nodes.my-db.data.host}"), applyPolicy=create)
    graphs.create("web", DB, app)
    async with evaluating() as cel, engine(cel=cel) as running:
        await until(lambda: graphs.phase("web", "my-db") == "Ready")
        graphs.edit("configmaps", "db", {"data": {"host": "here"}})
        await until(partial(graphs.is_ready, "web"))
        running.journal.clear()
        graphs.edit("configmaps", "db", {"data": {"host": "there"}})
        await graphs.settled(running)
        assert not running.journal.of("configmaps/db")
        assert graphs.is_ready("web")
    assert data(graphs, "app") == {"x": "here"}


async def test_a_value_that_vanishes_leaves_its_taker_as_it_was(
    graphs: Graphs, engine: Start
) -> None:
    graphs.create("web", DB, node("app", config_map("app", x="${nodes.my-db.data.host}")))
    async with evaluating() as cel, engine(cel=cel) as running:
        await until(lambda: graphs.phase("web", "my-db") == "Ready")
        graphs.edit("configmaps", "db", {"data": {"host": "here"}})
        await until(partial(graphs.is_ready, "web"))
        running.journal.clear()
        graphs.edit("configmaps", "db", {"data": {"host": None}})
        await until(lambda: graphs.phase("web", "app") == "Pending")
        assert data(graphs, "app") == {"x": "here"}
        graphs.edit("configmaps", "db", {"data": {"host": "here"}})
        await until(partial(graphs.is_ready, "web"))
        assert not running.journal.writes("configmaps/app")


async def test_an_expression_that_cannot_be_evaluated_is_told_and_not_tried_in_vain(
    graphs: Graphs, engine: Start
) -> None:
    graphs.create(
        "web",
        DB,
        node("wrong", config_map("wrong", x="${nodes.my-db.data.a + 1}")),
        node("inside", config_map("inside", x="all: ${nodes.my-db.data}")),
        node(
            "label", config_map("label", metadata={"labels": {"x": "${nodes.my-db.data.size()}"}})
        ),
        node("child", config_map("child", x="${nodes.wrong.data.x}")),
        node("other", config_map("other")),
    )
    async with evaluating() as cel, engine(cel=cel) as running:
        await until(lambda: graphs.reason("web", "Applied") == "NodesFailed")
        status = graphs.status("web")["nodeStatus"]
        place = f"ConfigMap/{graphs.namespace}/wrong: ${{nodes.my-db.data.a + 1}} at data.x"
        assert status["wrong"]["lastError"].startswith(f"{place} cannot be evaluated (no such over")
        assert "at data.x is a map, and only a string" in status["inside"]["lastError"]
        assert "metadata.labels must be a map of strings" in status["label"]["lastError"]
        assert {id_: one["phase"] for id_, one in status.items()} == {
            "my-db": "Ready",
            "wrong": "Error",
            "inside": "Error",
            "label": "Error",
            "child": "Pending",
            "other": "Ready",
        }
        running.journal.clear()
        await graphs.settled(running)
        assert not running.journal.of("configmaps/db")
        nodes = graphs.get("web")["spec"]["nodes"]
        nodes[1]["object"]["data"]["x"] = "${nodes.my-db.data.a + '1'}"
        graphs.change("web", nodes[0], nodes[1], nodes[4])
        await until(partial(graphs.is_ready, "web"))
        assert data(graphs, "child") == {"x": "11"}


async def test_a_source_that_others_provide_is_read_as_well(graphs: Graphs, engine: Start) -> None:
    observe = {"mode": "Observe"}
    graphs.create(
        "web",
        node("theirs", config_map("theirs"), applyPolicy=observe),
        node("app", config_map("app", x="${nodes.theirs.data.host}")),
    )
    graphs.make("configmaps", config_map("theirs", host="there"))
    async with evaluating() as cel, engine(cel=cel) as running:
        await until(partial(graphs.is_ready, "web"))
        assert not running.journal.writes("configmaps/theirs")
    assert data(graphs, "app") == {"x": "there"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("${nodes.nowhere.x}", "nowhere, which is no node of the graph"),
        ("${nodes.app.metadata.uid}", "mentions the node itself"),
        ("${nodes.password.data.x}", "refer to the Secret instead, with secretKeyRef"),
        ("${nodes.above.data.x}", "in a circle"),
    ],
)
async def test_values_that_nobody_may_take_are_refused_before_anything_is_written(
    graphs: Graphs, engine: Start, text: str, said: str
) -> None:
    graphs.create(
        "web",
        node("password", object_("v1", "Secret", "password")),
        node("app", config_map("app", x=text)),
        node("above", config_map("above"), dependsOn=["app"]),
    )
    async with evaluating() as cel, engine(cel=cel) as running:
        await until(lambda: graphs.reason("web") == "InvalidGraph")
        message = graphs.message("web")
        assert said in message
        assert "circle" in message or f"node app: {text} at data.x" in message
        assert not running.journal.writes()


async def test_what_takes_values_is_deleted_before_what_they_come_from(
    graphs: Graphs, engine: Start
) -> None:
    graphs.create(
        "web",
        node("a-base", config_map("base")),
        node("b", config_map("middle", x="${nodes.a-base.data.a}")),
        node("c", config_map("top", x="${nodes.b.data.x}")),
        node("d", config_map("kept")),
        node("e", config_map("kept-too")),
        node("f", config_map("kept-as-well")),
        node("g", config_map("kept-in-the-end")),
    )
    async with evaluating() as cel, engine(cel=cel) as running:
        await until(partial(graphs.is_ready, "web"))
        levels = {one["node"]: one.get("level", 0) for one in graphs.status("web")["inventory"]}
        assert [levels[id_] for id_ in ("a-base", "b", "c", "d")] == [0, 1, 2, 0]
        running.journal.clear()
        graphs.delete("web")
        await until(lambda: not graphs.exists("web"))
        deleted = [one for one in running.journal.writes() if one.method == "DELETE"]
        names = [one.place.rpartition("/")[2] for one in deleted]
        assert [name for name in names if "kept" not in name] == ["top", "middle", "base"]


async def test_the_right_to_read_a_source_is_asked_for_beforehand(
    graphs: Graphs, api: Api, engine: Start
) -> None:
    writer = grant_writing(api, graphs.namespace, "configmaps")
    app = node("app", config_map("app", x="${nodes.my-db.data.a}"))
    graphs.create("web", DB, app, serviceAccountName=writer)
    async with evaluating() as cel, engine(cel=cel) as running:
        await until(lambda: graphs.reason("web", "Applied") == "Forbidden")
        assert "may not get configmaps" in graphs.message("web", "Applied")
        assert not running.journal.writes()


async def test_a_confined_graph_does_not_reach_further_by_a_value(
    graphs: Graphs, as_operator: Api, engine: Start
) -> None:
    """The account of a pod is judged with everything filled in."""
    path = f"/apis/platform.pequod.io/v1alpha1/namespaces/{graphs.namespace}/transforms"
    body = {
        "apiVersion": "platform.pequod.io/v1alpha1",
        "kind": "Transform",
        "metadata": {"name": "source"},
        "spec": {"cueRef": {"type": "embedded", "ref": "webservice"}, "input": {}},
    }
    made = graphs.api.create(path, body).body
    source = {key: made[key] for key in ("apiVersion", "kind")} | {
        key: made["metadata"][key] for key in ("name", "namespace", "uid")
    }
    containers = [{"name": "a", "image": "a:1"}]

    def pod(name: str, account: str) -> dict[str, Any]:
        spec = {"serviceAccountName": account, "containers": containers}
        return object_("v1", "Pod", name, spec=spec)

    other = Graphs(as_operator, graphs.namespace, as_operator)
    other.create(
        "web",
        node("names", config_map("names", account="admin", own="own")),
        node("own", object_("v1", "ServiceAccount", "own")),
        node("far", pod("far", "${nodes.names.data.account}")),
        node("guessed", pod("guessed", "${nodes.names.data.own}")),
        node("fine", pod("fine", "${nodes.own.metadata.name}")),
        sourceRef=source,
        serviceAccountName=None,
    )
    async with evaluating() as cel, engine(cel=cel) as running:
        await until(lambda: graphs.phase("web", "far") == "Error")
        await until(lambda: graphs.phase("web", "guessed") == "Error")
        await until(lambda: graphs.find("pods", "fine") is not None)
        status = graphs.status("web")["nodeStatus"]
        assert "would run as ServiceAccount admin" in status["far"]["lastError"]
        assert "add that to its dependsOn" in status["guessed"]["lastError"]
        await until(lambda: graphs.reason("web", "Applied") == "OutOfReach")
        assert not running.journal.writes("pods/far")
        assert not running.journal.writes("pods/guessed")
    assert graphs.live("pods", "fine")["spec"]["serviceAccountName"] == "own"


async def test_rule_8_what_came_from_a_secret_is_not_to_be_had(
    graphs: Graphs, engine: Start, capfd: pytest.CaptureFixture[str]
) -> None:
    """Of a node with a sensitive part only metadata and status are seen, and no value is told."""
    canary = f"canary-{secrets.token_hex(16)}"
    graphs.secret("parts", hidden=json.dumps({"data": {"password": canary}}))
    part = {"secretRef": {"name": "parts", "key": "hidden"}}
    graphs.create(
        "web",
        node("db", config_map("db"), objectFrom=part),
        node("uid", config_map("uid", x="${nodes.db.metadata.name}")),
        node("stolen", config_map("stolen", x="${nodes.db.data.password}")),
        node("guessed", config_map("guessed", x="${int(nodes.db.metadata.name)}")),
    )
    async with evaluating() as cel, engine(cel=cel):
        await until(lambda: graphs.phase("web", "uid") == "Ready")
        await until(lambda: graphs.phase("web", "guessed") == "Error")
        await until(lambda: "only metadata and status" in details(graphs, "stolen"))
        status = graphs.status("web")["nodeStatus"]
        assert "values are not shown" in status["guessed"]["lastError"]
    assert data(graphs, "uid") == {"x": "db"}
    assert graphs.find("configmaps", "stolen") is None
    assert canary not in json.dumps(graphs.get("web"))
    assert canary not in json.dumps(graphs.events("web"))
    assert canary not in "".join(capfd.readouterr())


async def test_what_is_filled_in_has_the_limits_of_every_object(
    graphs: Graphs, engine: Start
) -> None:
    text = "${nodes.large.data.x}" * 2
    graphs.create(
        "web",
        node("large", config_map("large", x="x" * 300 * 1024)),
        node("larger", config_map("larger", x=text)),
    )
    async with evaluating() as cel, engine(cel=cel) as running:
        await until(lambda: graphs.phase("web", "larger") == "Error")
        error = graphs.status("web")["nodeStatus"]["larger"]["lastError"]
        assert "with values of other nodes filled in: the object is larger than 512 KiB" in error
        assert not running.journal.writes("configmaps/larger")


async def test_without_an_evaluator_the_node_says_so(graphs: Graphs, engine: Start) -> None:
    graphs.create(
        "web",
        DB,
        node("app", config_map("app", x="${nodes.my-db.data.a}")),
        node("escaped", config_map("escaped", x="$${nodes.my-db.data.a}")),
    )
    async with engine():
        await until(lambda: graphs.phase("web", "app") == "Error")
        await until(lambda: graphs.reason("web", "Applied") == "EvaluationFailed")
        assert "--evaluator" in graphs.message("web", "Applied")
    assert data(graphs, "escaped") == {"x": "${nodes.my-db.data.a}"}


async def test_a_sensitive_part_and_values_are_put_together(graphs: Graphs, engine: Start) -> None:
    graphs.secret("parts", hidden=json.dumps({"data": {"password": "a"}}))
    part = {"secretRef": {"name": "parts", "key": "hidden"}}
    app = node("app", config_map("app", x="${nodes.my-db.data.a}"), objectFrom=part)
    graphs.create("web", DB, app)
    async with evaluating() as cel, engine(cel=cel):
        await until(partial(graphs.is_ready, "web"))
        assert data(graphs, "app") == {"x": "1", "password": "a"}
        changed = json.dumps({"data": {"password": "b"}})
        graphs.edit("secrets", "parts", {"stringData": {"hidden": changed}})
        await until(lambda: data(graphs, "app") == {"x": "1", "password": "b"})
