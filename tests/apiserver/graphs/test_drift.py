"""Rule 4: drift is repaired from the watch's event, conflicts are named, fights are not fought."""

import asyncio
from functools import partial

import pytest

from graphs import Graphs, Object, Start, config_map, deployment, node, object_
from waiting import until

LABEL = "pequod.io/graph"


async def test_rule_4_an_edit_is_repaired_with_one_request(graphs: Graphs, engine: Start) -> None:
    graphs.create("web", node("web", config_map("web", a="1", b="2")))
    async with engine() as running:
        await until(partial(graphs.is_ready, "web"))
        uid = graphs.uid("configmaps", "web")
        running.journal.clear()
        graphs.edit("configmaps", "web", {"data": {"a": "evil", "theirs": "x"}})
        await until(lambda: graphs.live("configmaps", "web")["data"]["a"] == "1")
        await graphs.settled(running)
        assert len(running.journal.of("configmaps/web")) == 1
        assert graphs.live("configmaps", "web")["data"] == {"a": "1", "b": "2", "theirs": "x"}
        assert graphs.uid("configmaps", "web") == uid
        assert graphs.is_ready("web")


async def test_rule_4_a_removed_field_of_ours_comes_back(graphs: Graphs, engine: Start) -> None:
    graphs.create("web", node("web", config_map("web", a="1", b="2")))
    async with engine() as running:
        await until(partial(graphs.is_ready, "web"))
        running.journal.clear()
        graphs.edit("configmaps", "web", {"data": {"a": None}})
        await until(lambda: graphs.live("configmaps", "web")["data"] == {"a": "1", "b": "2"})
        assert len(running.journal.of("configmaps/web")) <= 2


async def test_rule_4_a_deletion_is_repaired_with_two_requests(
    graphs: Graphs, engine: Start
) -> None:
    graphs.create("web", node("web", config_map("web")))
    async with engine() as running:
        await until(partial(graphs.is_ready, "web"))
        running.journal.clear()
        graphs.remove("configmaps", "web")
        await until(lambda: graphs.find("configmaps", "web") is not None)
        await graphs.settled(running)
        assert len(running.journal.of("configmaps/web")) == 2
        assert graphs.inventory("web") == {"ConfigMap/web": graphs.uid("configmaps", "web")}


@pytest.mark.parametrize("value", [None, "00000000-0000-0000-0000-000000000000"])
async def test_rule_4_and_6_a_child_that_lost_our_label_is_labelled_again(
    graphs: Graphs, engine: Start, value: str | None
) -> None:
    graphs.create("web", node("web", config_map("web")))
    async with engine() as running:
        await until(partial(graphs.is_ready, "web"))
        before = graphs.live("configmaps", "web")["metadata"]
        running.journal.clear()
        graphs.edit("configmaps", "web", {"metadata": {"labels": {LABEL: value}}})
        label = before["labels"][LABEL]
        await until(
            lambda: graphs.live("configmaps", "web")["metadata"]["labels"].get(LABEL) == label
        )
        assert graphs.uid("configmaps", "web") == before["uid"]
        await graphs.settled(running)
        assert len(running.journal.of("configmaps/web")) <= 2


async def test_rule_4_drift_that_happened_while_nobody_looked_is_repaired_at_the_start(
    graphs: Graphs, engine: Start
) -> None:
    """Case 24."""
    graphs.create("web", node("a", config_map("a")), node("b", config_map("b")))
    async with engine():
        await until(partial(graphs.is_ready, "web"))
    graphs.edit("configmaps", "a", {"data": {"a": "evil"}})
    graphs.remove("configmaps", "b")
    async with engine():
        await until(lambda: graphs.live("configmaps", "a")["data"] == {"a": "1"})
        await until(lambda: graphs.find("configmaps", "b") is not None)
        await until(partial(graphs.is_ready, "web"))


async def test_rule_4_a_field_that_we_never_owned_is_refused_with_its_manager(
    graphs: Graphs, engine: Start
) -> None:
    graphs.create("web", node("web", config_map("web", a="1")))
    async with engine() as running:
        await until(partial(graphs.is_ready, "web"))
        graphs.edit("configmaps", "web", {"data": {"theirs": "x"}}, manager="other-tool")
        await graphs.settled(running)
        graphs.change("web", node("web", config_map("web", a="2", theirs="y")))
        await until(lambda: graphs.reason("web", "Applied") == "FieldConflict")
        message = graphs.message("web", "Applied")
        assert "other-tool manages .data.theirs" in message
        assert "conflictPolicy" in message
        assert graphs.live("configmaps", "web")["data"] == {"a": "1", "theirs": "x"}
        force = {"conflictPolicy": "Force"}
        graphs.change("web", node("web", config_map("web", a="2", theirs="y"), applyPolicy=force))
        await until(partial(graphs.is_ready, "web"))
    assert graphs.live("configmaps", "web")["data"] == {"a": "2", "theirs": "y"}


async def test_rule_4_a_field_that_is_removed_from_the_graph_disappears(
    graphs: Graphs, engine: Start
) -> None:
    """Case 56, the most common defect of operators."""
    graphs.create("web", node("web", config_map("web", a="1", b="2")))
    async with engine():
        await until(partial(graphs.is_ready, "web"))
        graphs.change("web", node("web", config_map("web", a="1")))
        await until(lambda: graphs.live("configmaps", "web")["data"] == {"a": "1"})


@pytest.mark.parametrize("policy", ["Error", "Force"])
async def test_rule_4_case_55_a_fight_is_reported_and_not_fought(
    graphs: Graphs, engine: Start, policy: str
) -> None:
    how = {"conflictPolicy": policy}
    graphs.create("web", node("web", config_map("web", a="ours"), applyPolicy=how))
    async with engine() as running:
        await until(partial(graphs.is_ready, "web"))
        running.journal.clear()
        fighting = asyncio.create_task(_fight(graphs))
        await until(lambda: graphs.reason("web", "Applied") == "OwnershipConflict")
        message = graphs.message("web", "Applied")
        assert "fighter manages .data.a" in message
        fighting.cancel()
        await asyncio.gather(fighting, return_exceptions=True)
        running.journal.clear()
        graphs.edit("configmaps", "web", {"data": {"a": "once more"}}, manager="fighter")
        await graphs.settled(running)
        assert not running.journal.writes("configmaps/web")


async def _fight(graphs: Graphs) -> None:
    """Another manager that wants its value whenever it is not there."""
    while True:
        live = await asyncio.to_thread(graphs.live, "configmaps", "web")
        if live["data"]["a"] != "theirs":
            body = {"data": {"a": "theirs"}}
            await asyncio.to_thread(graphs.edit, "configmaps", "web", body, manager="fighter")
        await asyncio.sleep(0.02)


async def test_rule_4_replicas_that_an_autoscaler_has_are_left_alone(
    graphs: Graphs, engine: Start
) -> None:
    graphs.create("web", node("app", deployment("app", replicas=None)))
    async with engine() as running:
        await until(lambda: graphs.phase("web", "app") in {"Applied", "Ready"})
        running.journal.clear()
        scale = graphs.path("apps/v1/deployments", "app/scale")
        assert graphs.api.patch(scale, {"spec": {"replicas": 0}}).code == 200
        await until(partial(graphs.is_ready, "web"))
        assert not running.journal.writes("deployments")
    assert graphs.live("apps/v1/deployments", "app")["spec"]["replicas"] == 0


async def test_replicas_that_the_graph_lets_go_of_stay_as_they_are(
    graphs: Graphs, engine: Start
) -> None:
    """Switching an autoscaler on must not scale down to one first."""
    graphs.create("web", node("app", deployment("app", replicas=3)))
    async with engine():
        await until(lambda: graphs.phase("web", "app") in {"Applied", "Ready"})
        graphs.change("web", node("app", deployment("app", replicas=None, image="app:2")))
        await until(lambda: _image(graphs) == "app:2")
        assert graphs.live("apps/v1/deployments", "app")["spec"]["replicas"] == 3
        scale = graphs.path("apps/v1/deployments", "app/scale")
        assert graphs.api.patch(scale, {"spec": {"replicas": 5}}).code == 200
        await until(lambda: graphs.live("apps/v1/deployments", "app")["spec"]["replicas"] == 5)


def _image(graphs: Graphs) -> str:
    live = graphs.live("apps/v1/deployments", "app")
    return str(live["spec"]["template"]["spec"]["containers"][0]["image"])


async def test_an_immutable_field_is_explained_and_recreated_only_when_asked(
    graphs: Graphs, engine: Start
) -> None:
    changed = deployment("app")
    changed["spec"]["selector"]["matchLabels"]["tier"] = "web"
    changed["spec"]["template"]["metadata"]["labels"]["tier"] = "web"
    graphs.create("web", node("app", deployment("app")))
    async with engine():
        await until(partial(graphs.is_ready, "web"))
        before = graphs.uid("apps/v1/deployments", "app")
        graphs.change("web", node("app", changed))
        await until(lambda: graphs.reason("web", "Applied") == "Immutable")
        message = graphs.message("web", "Applied")
        assert "spec.selector" in message
        assert "recreate" in message
        assert graphs.uid("apps/v1/deployments", "app") == before
        graphs.change("web", node("app", changed, applyPolicy={"recreate": "OnImmutable"}))
        await until(partial(graphs.is_ready, "web"))
        after = graphs.live("apps/v1/deployments", "app")
        assert after["metadata"]["uid"] != before
        assert after["spec"]["selector"]["matchLabels"]["tier"] == "web"


async def test_who_asks_for_a_pass_does_not_wait_for_the_next_try(
    graphs: Graphs, engine: Start
) -> None:
    graphs.make("configmaps", config_map("web"))
    graphs.create("web", node("web", config_map("web")))
    async with engine() as running:
        await until(lambda: graphs.reason("web", "Applied") == "AlreadyExists")
        (run,) = running.reconciler._runs.values()
        run.records["web"].retry_at += 1e6
        graphs.remove("configmaps", "web")
        asked = {"reconcile.pequod.io/requestedAt": "now"}
        graphs.patch("web", {"metadata": {"annotations": asked}})
        await until(partial(graphs.is_ready, "web"))
    assert graphs.status("web")["lastHandledReconcileAt"] == "now"


@pytest.mark.parametrize("what", ["Service", "Job"])
async def test_what_cannot_be_changed_is_made_anew_as_soon_as_it_is_gone(
    graphs: Graphs, engine: Start, what: str
) -> None:
    """However often it has failed before somebody agreed to that."""
    plural = {"Service": "services", "Job": "batch/v1/jobs"}[what]
    before, after = _unchangeable(what)
    graphs.create("web", node("it", before))
    async with engine() as running:
        await until(lambda: graphs.find(plural, "it") is not None)
        uid = graphs.uid(plural, "it")
        graphs.change("web", node("it", after))
        await until(lambda: graphs.reason("web", "Applied") == "Immutable")
        (run,) = running.reconciler._runs.values()
        run.records["it"].failures = 20
        graphs.change("web", node("it", after, applyPolicy={"recreate": "OnImmutable"}))
        await until(lambda: (graphs.find(plural, "it") or {}).get("metadata", {}).get("uid") != uid)
        await until(lambda: graphs.find(plural, "it") is not None)


def _unchangeable(what: str) -> tuple[Object, Object]:
    """An object, and the same with something that cannot be changed."""
    if what == "Service":
        ports = [{"port": 80}]
        headless = {"clusterIP": "None", "ports": ports}
        before = object_("v1", "Service", "it", spec={"ports": ports})
        return before, object_("v1", "Service", "it", spec=headless)
    jobs = []
    for image in ("app:1", "app:2"):
        pod = {"containers": [{"name": "app", "image": image}], "restartPolicy": "Never"}
        spec = {"suspend": True, "template": {"spec": pod}}
        jobs.append(object_("batch/v1", "Job", "it", spec=spec))
    return jobs[0], jobs[1]


async def test_an_object_that_a_user_deletes_in_the_foreground_is_made_anew_when_it_is_gone(
    graphs: Graphs, engine: Start
) -> None:
    graphs.create("web", node("app", deployment("app")))
    async with engine():
        await until(partial(graphs.is_ready, "web"))
        before = graphs.uid("apps/v1/deployments", "app")
        options = {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Foreground"}
        graphs.remove("apps/v1/deployments", "app", options)
        await until(lambda: _replaced(graphs, before))
        await until(partial(graphs.is_ready, "web"))


def _replaced(graphs: Graphs, before: str) -> bool:
    found = graphs.find("apps/v1/deployments", "app")
    return found is not None and found["metadata"]["uid"] != before


async def test_rule_4_case_55_a_fight_that_names_nobody_is_given_up_as_well(
    graphs: Graphs, engine: Start
) -> None:
    """Somebody deletes the object whenever it is there: no field, no manager, no end."""
    graphs.create("web", node("web", config_map("web")))
    async with engine() as running:
        await until(partial(graphs.is_ready, "web"))
        running.journal.clear()
        deleting = asyncio.create_task(_keep_deleting(graphs))
        await until(lambda: graphs.reason("web", "Applied") == "OwnershipConflict")
        deleting.cancel()
        await asyncio.gather(deleting, return_exceptions=True)
        assert "keeps undoing" in graphs.message("web", "Applied")
        assert len(running.journal.writes("configmaps/web")) <= 22


async def _keep_deleting(graphs: Graphs) -> None:
    while True:
        path = graphs.path("configmaps", "web")
        await asyncio.to_thread(graphs.api.call, "DELETE", path)
        await asyncio.sleep(0.02)
