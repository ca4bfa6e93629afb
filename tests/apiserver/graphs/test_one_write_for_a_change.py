"""Rule 3: one write for a change, none without; rule 5: every node as soon as it can."""

from functools import partial

from graphs import Graphs, Start, config_map, deployment, node
from pequod.kube.objects import Key
from waiting import until

CHAIN = (
    node("first", config_map("first")),
    node("second", config_map("second"), dependsOn=["first"]),
    node("third", config_map("third"), dependsOn=["second"]),
)


async def test_rule_3_a_new_object_costs_one_request_and_the_graph_two_statuses(
    graphs: Graphs, engine: Start
) -> None:
    graphs.create("web", *CHAIN, metadata={"finalizers": ["pequod.io/resourcegraph"]})
    async with engine() as running:
        await until(partial(graphs.is_ready, "web"))
        assert [one.method for one in running.journal.of("configmaps")] == ["PATCH"] * 3
        assert len([one for one in running.journal.of("resourcegraphs") if one.writes]) == 2
    assert graphs.status("web")["phase"] == "Ready"
    assert graphs.inventory("web") == {
        f"ConfigMap/{name}": graphs.uid("configmaps", name) for name in ("first", "second", "third")
    }


async def test_rule_3_a_change_of_one_node_is_one_request(graphs: Graphs, engine: Start) -> None:
    graphs.create("web", *CHAIN)
    async with engine() as running:
        await until(partial(graphs.is_ready, "web"))
        running.journal.clear()
        changed = node("second", config_map("second", a="2"), dependsOn=["first"])
        graphs.change("web", CHAIN[0], changed, CHAIN[2])
        await until(partial(graphs.is_ready, "web"))
        assert [one.place.rpartition("/")[2] for one in running.journal.of("configmaps")] == [
            "second"
        ]
    assert graphs.live("configmaps", "second")["data"] == {"a": "2"}


async def test_rule_3_nothing_is_asked_for_while_nothing_changes_also_after_a_restart(
    graphs: Graphs, engine: Start
) -> None:
    graphs.create("web", *CHAIN, node("app", deployment("app")))
    async with engine():
        await until(partial(graphs.is_ready, "web"))
    version = graphs.get("web")["metadata"]["resourceVersion"]
    async with engine() as running:
        graphs.create("later", node("other", config_map("other")))
        await until(partial(graphs.is_ready, "later"))
        running.controller.wake(Key(graphs.namespace, "web"))
        graphs.change("later", node("other", config_map("other", a="2")))
        await until(lambda: graphs.is_ready("later"))
        about = [one for one in running.journal.asked if not one.is_watch]
        names = ("first", "second", "third", "app", "web")
        assert not [one for one in about if one.place.rpartition("/")[2] in names]
    assert graphs.get("web")["metadata"]["resourceVersion"] == version


async def test_rule_3_quantities_and_defaults_are_no_drift(graphs: Graphs, engine: Start) -> None:
    app = deployment("app")
    container = app["spec"]["template"]["spec"]["containers"][0]
    container["resources"] = {"requests": {"cpu": "1000m", "memory": "1024Mi"}}
    graphs.create("web", node("app", app))
    async with engine() as running:
        await until(partial(graphs.is_ready, "web"))
        live = graphs.live("apps/v1/deployments", "app")
        stored = live["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"]
        assert stored["cpu"] == "1"
        running.journal.clear()
        graphs.edit("apps/v1/deployments", "app", {"metadata": {"annotations": {"x": "y"}}})
        await graphs.settled(running)
        assert not running.journal.writes()


async def test_rule_3_string_data_is_folded_and_not_applied_again(
    graphs: Graphs, engine: Start
) -> None:
    graphs.secret("parts", token='{"stringData": {"token": "hidden"}}')
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "token"}}
    part = {"secretRef": {"name": "parts", "key": "token"}}
    graphs.create("web", node("token", secret, objectFrom=part))
    async with engine() as running:
        await until(partial(graphs.is_ready, "web"))
        assert graphs.live("secrets", "token")["data"] == {"token": "aGlkZGVu"}
        running.journal.clear()
        await graphs.settled(running)
        assert not running.journal.writes()
        graphs.edit("secrets", "parts", {"stringData": {"token": '{"data": {"token": "bmV3"}}'}})
        await until(lambda: graphs.live("secrets", "token")["data"] == {"token": "bmV3"})


async def test_rule_3_keyed_lists_of_others_are_left_alone_and_atomic_ones_are_ours(
    graphs: Graphs, engine: Start
) -> None:
    """An injected sidecar is nobody's drift; a changed selector of ours is."""
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "web"},
        "spec": {"selector": {"app": "web"}, "ports": [{"name": "http", "port": 80}]},
    }
    graphs.create("web", node("app", deployment("app")), node("service", service))
    async with engine() as running:
        await until(partial(graphs.is_ready, "web"))
        running.journal.clear()
        sidecar = {"op": "add", "path": "/spec/template/spec/containers/-"}
        sidecar["value"] = {"name": "sidecar", "image": "proxy:1"}  # type: ignore[assignment]
        path = graphs.path("apps/v1/deployments", "app")
        answer = graphs.api.call("PATCH", path, [sidecar], kind="json-patch+json")
        assert answer.code == 200, answer.message
        graphs.edit("services", "web", {"spec": {"selector": {"app": "evil"}}})
        await until(lambda: graphs.live("services", "web")["spec"]["selector"] == {"app": "web"})
        assert not running.journal.writes("deployments")
    containers = graphs.live("apps/v1/deployments", "app")["spec"]["template"]["spec"]["containers"]
    assert [one["name"] for one in containers] == ["app", "sidecar"]


async def test_rule_5_a_failure_blocks_its_dependents_only(graphs: Graphs, engine: Start) -> None:
    """Case 30: the others go on, the message names object and field, and there is no hot loop."""
    bad = node("bad", config_map("bad", metadata={"labels": {"no spaces": "x"}}))
    graphs.create(
        "web",
        bad,
        node("child", config_map("child"), dependsOn=["bad"]),
        node("other", config_map("other")),
    )
    async with engine() as running:
        await until(lambda: graphs.phase("web", "other") == "Ready")
        await until(lambda: graphs.reason("web", "Applied") == "Invalid")
        assert graphs.find("configmaps", "child") is None
        assert graphs.phase("web", "child") == "Pending"
        assert graphs.phase("web", "bad") == "Error"
        message = graphs.message("web", "Applied")
        assert f"ConfigMap/{graphs.namespace}/bad" in message
        assert "metadata.labels" in message
        graphs.change("web", node("bad", config_map("bad")))
        await until(partial(graphs.is_ready, "web"))
        assert len(running.journal.writes("configmaps/bad")) <= 8


async def test_rule_5_the_500_of_duplicate_keys_is_the_authors_mistake(
    graphs: Graphs, engine: Start
) -> None:
    app = deployment("app")
    containers = app["spec"]["template"]["spec"]["containers"]
    containers.append({"name": "app", "image": "other:1"})
    graphs.create("web", node("app", app))
    async with engine():
        await until(lambda: graphs.reason("web", "Applied") == "Invalid")
    assert "duplicate entries" in graphs.message("web", "Applied")
    assert graphs.status("web")["phase"] == "Failed"
