"""Rules 1 and 6: what is removed, in which order, and what is not."""

from functools import partial

import pytest

from graphs import Graphs, Object, Start, config_map, deployment, node, object_
from waiting import until

PRUNE = "pequod.io/prune"
GRACE = "pequod.io/prune-grace-period"
ACKNOWLEDGE = "pequod.io/acknowledge-prune"


def maps(*names: str) -> list[dict[str, object]]:
    return [node(name, config_map(name)) for name in names]


async def test_rule_6_a_node_that_is_gone_from_the_graph_is_pruned_by_uid_and_told(
    graphs: Graphs, engine: Start
) -> None:
    graphs.create("web", *maps("a", "b", "c"))
    async with engine() as running:
        await until(partial(graphs.is_ready, "web"))
        uid = graphs.uid("configmaps", "a")
        graphs.change("web", *maps("a", "b"))
        await until(lambda: graphs.find("configmaps", "c") is None)
        await until(lambda: set(graphs.inventory("web")) == {"ConfigMap/a", "ConfigMap/b"})
        await until(lambda: any(e["reason"] == "Pruned" for e in graphs.events("web")))
        deletes = [one for one in running.journal.writes() if one.method == "DELETE"]
        assert len(deletes) == 1
    assert graphs.uid("configmaps", "a") == uid
    (told,) = [event for event in graphs.events("web") if event["reason"] == "Pruned"]
    assert f"ConfigMap/{graphs.namespace}/c" in told["note"]


async def test_rule_1_the_inventory_is_wider_before_the_first_apply_and_narrower_after_the_last(
    graphs: Graphs, engine: Start
) -> None:
    graphs.create("web", *maps("a", "b"), metadata={"finalizers": ["pequod.io/resourcegraph"]})
    async with engine() as running:
        await until(partial(graphs.is_ready, "web"))
        graphs.change("web", *maps("a", "c"))
        await until(lambda: set(graphs.inventory("web")) == {"ConfigMap/a", "ConfigMap/c"})
        writes = [one for one in running.journal.asked if one.writes and not one.is_event]
    order = [(one.method, one.place.rpartition("/")[2]) for one in writes if not one.is_question]
    first, second = order[:4], order[4:]
    assert first[0] == first[-1] == ("PATCH", "status")
    assert sorted(first[1:-1]) == [("PATCH", "a"), ("PATCH", "b")]
    assert second[:3] == [("PATCH", "status"), ("PATCH", "c"), ("DELETE", "b")]
    assert set(second[3:]) == {("PATCH", "status")}


async def test_rule_6_a_deleted_graph_takes_its_objects_with_it_dependents_first(
    graphs: Graphs, engine: Start
) -> None:
    graphs.create(
        "web",
        node("base", config_map("base")),
        node("middle", config_map("middle"), dependsOn=["base"]),
        node("top", config_map("top"), dependsOn=["middle"]),
    )
    async with engine() as running:
        await until(partial(graphs.is_ready, "web"))
        running.journal.clear()
        graphs.delete("web")
        await until(lambda: not graphs.exists("web"))
        deleted = [one for one in running.journal.writes() if one.method == "DELETE"]
        assert [one.place.rpartition("/")[2] for one in deleted] == ["top", "middle", "base"]
        reads = [one for one in running.journal.of("resourcegraphs") if one.method == "GET"]
        assert len(reads) == 1
    for name in ("base", "middle", "top"):
        assert graphs.find("configmaps", name) is None


async def test_rule_6_case_49_a_change_that_deletes_too_much_needs_an_acknowledgement(
    graphs: Graphs, engine: Start
) -> None:
    graphs.create("web", *maps("a", "b", "c", "d"))
    async with engine():
        await until(partial(graphs.is_ready, "web"))
        graphs.change("web", *maps("a"))
        await until(lambda: graphs.reason("web", "Pruned") == "PruneBlocked")
        message = graphs.message("web", "Pruned")
        assert "would delete 3 of 4 objects" in message
        assert all(graphs.find("configmaps", name) for name in ("a", "b", "c", "d"))
        revision = message.rpartition(f"{ACKNOWLEDGE}=")[2].rstrip("`")
        graphs.patch("web", {"metadata": {"annotations": {ACKNOWLEDGE: "another"}}})
        graphs.patch("web", {"metadata": {"annotations": {ACKNOWLEDGE: revision}}})
        await until(partial(graphs.is_ready, "web"))
        assert graphs.find("configmaps", "d") is None
        graphs.change("web", *maps("a", "x", "y", "z"))
        await until(partial(graphs.is_ready, "web"))
        graphs.change("web", *maps("a"))
        await until(partial(graphs.is_ready, "web"))


async def test_rule_6_case_49_a_claim_is_never_pruned_without_an_acknowledgement(
    graphs: Graphs, engine: Start
) -> None:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    claim = object_("v1", "PersistentVolumeClaim", "data", spec=spec)
    ready = [{"type": "Exists"}]
    graphs.create("web", *maps("a", "b", "c"), node("data", claim, readyWhen=ready))
    async with engine():
        await until(partial(graphs.is_ready, "web"))
        graphs.change("web", *maps("a", "b", "c"))
        await until(lambda: graphs.reason("web", "Pruned") == "PruneBlocked")
        assert "PersistentVolumeClaim" in graphs.message("web", "Pruned")
        assert graphs.find("persistentvolumeclaims", "data") is not None
        graphs.delete("web")
        await until(lambda: not graphs.exists("web"))
    found = graphs.find("persistentvolumeclaims", "data")
    assert found is None or found["metadata"].get("deletionTimestamp")


async def test_rule_6_case_48_an_empty_graph_is_refused_unless_it_is_allowed(
    graphs: Graphs, engine: Start
) -> None:
    graphs.create("web", *maps("a", "b"))
    async with engine():
        await until(partial(graphs.is_ready, "web"))
        path = f"/apis/platform.pequod.io/v1alpha1/namespaces/{graphs.namespace}/resourcegraphs/web"
        refused = graphs.api.patch(path, {"spec": {"nodes": []}})
        assert refused.code == 422
        assert graphs.find("configmaps", "a") is not None
        graphs.patch("web", {"spec": {"nodes": [], "allowEmpty": True}})
        await until(lambda: graphs.find("configmaps", "a") is None)
        await until(lambda: graphs.find("configmaps", "b") is None)
        await until(partial(graphs.is_ready, "web"))


async def test_protected_objects_are_left_behind_and_others_have_their_grace(
    graphs: Graphs, engine: Start
) -> None:
    kept = config_map("kept", metadata={"annotations": {PRUNE: "disabled"}})
    late = config_map("late", metadata={"annotations": {GRACE: "2s"}})
    graphs.create("web", node("kept", kept), node("late", late), *maps("a", "b", "c"))
    async with engine():
        await until(partial(graphs.is_ready, "web"))
        graphs.change("web", *maps("a", "b", "c"))
        await until(lambda: "grace period" in graphs.message("web", "Pruned"))
        assert graphs.find("configmaps", "late") is not None
        await until(lambda: graphs.find("configmaps", "late") is None)
        await until(partial(graphs.is_ready, "web"))
        assert graphs.live("configmaps", "kept")
        await until(lambda: any(e["reason"] == "Orphaned" for e in graphs.events("web")))


async def test_orphans_survive_by_graph_and_by_node(graphs: Graphs, engine: Start) -> None:
    orphan = {"deletionPolicy": "Orphan"}
    graphs.create("all", *maps("a"), deletionPolicy="Orphan")
    graphs.create("some", node("b", config_map("b"), applyPolicy=orphan), *maps("c", "d"))
    async with engine():
        await until(partial(graphs.is_ready, "all"))
        await until(partial(graphs.is_ready, "some"))
        graphs.change("some", *maps("c", "d"))
        await until(partial(graphs.is_ready, "some"))
        assert graphs.find("configmaps", "b") is not None
        for name in ("all", "some"):
            graphs.delete(name)
            await until(lambda name=name: not graphs.exists(name))  # type: ignore[misc]
    assert graphs.find("configmaps", "a") is not None
    assert graphs.find("configmaps", "b") is not None
    assert graphs.find("configmaps", "c") is None


@pytest.mark.parametrize(("before", "after"), [("Delete", "Orphan"), ("Orphan", "Delete")])
async def test_what_becomes_of_an_object_is_what_its_node_said_last(
    graphs: Graphs, engine: Start, before: str, after: str
) -> None:
    """Also when that is all that has changed: nothing has to be applied for it."""

    def said(policy: str) -> list[Object]:
        return [node("a", config_map("a"), applyPolicy={"deletionPolicy": policy}), *maps("b")]

    graphs.create("web", *said(before))
    async with engine():
        await until(partial(graphs.is_ready, "web"))
        graphs.change("web", *said(after))
        await until(partial(graphs.is_ready, "web"))
        graphs.delete("web")
        await until(lambda: not graphs.exists("web"))
    assert (graphs.find("configmaps", "a") is not None) == (after == "Orphan")
    assert graphs.find("configmaps", "b") is None


async def test_case_47_an_object_that_moves_to_another_graph_keeps_its_uid(
    graphs: Graphs, engine: Start
) -> None:
    graphs.create("from", *maps("moved", "stays", "too"))
    async with engine():
        await until(partial(graphs.is_ready, "from"))
        uid = graphs.uid("configmaps", "moved")
        to = graphs.create("to", node("moved", config_map("moved", a="2")))
        await until(lambda: graphs.reason("to", "Applied") == "AlreadyExists")
        graphs.change("from", *maps("stays", "too"))
        await until(partial(graphs.is_ready, "to"))
        await until(partial(graphs.is_ready, "from"))
        moved = graphs.live("configmaps", "moved")
        assert moved["metadata"]["uid"] == uid
        assert moved["metadata"]["labels"]["pequod.io/graph"] == to
        assert moved["data"] == {"a": "2"}
        assert "ConfigMap/moved" not in graphs.inventory("from")
        assert graphs.inventory("to") == {"ConfigMap/moved": uid}
        graphs.delete("from")
        await until(lambda: not graphs.exists("from"))
    assert graphs.uid("configmaps", "moved") == uid


async def test_case_47_the_heir_of_a_deleted_graph_gets_its_objects(
    graphs: Graphs, engine: Start
) -> None:
    graphs.create("from", *maps("moved"))
    async with engine():
        await until(partial(graphs.is_ready, "from"))
        uid = graphs.uid("configmaps", "moved")
        graphs.create("to", *maps("moved"))
        graphs.delete("from")
        await until(lambda: not graphs.exists("from"))
        await until(partial(graphs.is_ready, "to"))
    assert graphs.uid("configmaps", "moved") == uid


async def test_case_52_a_foreign_finalizer_is_reported_and_holds_nobody_else(
    graphs: Graphs, engine: Start
) -> None:
    graphs.create(
        "web", *maps("base"), node("top", config_map("top"), dependsOn=["base"]), *maps("x", "y")
    )
    async with engine():
        await until(partial(graphs.is_ready, "web"))
        graphs.edit("configmaps", "top", {"metadata": {"finalizers": ["example.com/hold"]}})
        graphs.delete("web")
        await until(lambda: graphs.find("configmaps", "base") is None)
        await until(lambda: "example.com/hold" in graphs.message("web"))
        assert graphs.exists("web")
        assert graphs.reason("web") == "Finalizing"
        graphs.edit("configmaps", "top", {"metadata": {"finalizers": None}})
        await until(lambda: not graphs.exists("web"))
    assert graphs.find("configmaps", "top") is None


async def test_case_51_what_a_broken_graph_in_between_hid_is_pruned_in_the_end(
    graphs: Graphs, engine: Start
) -> None:
    bad = node("bad", config_map("bad", metadata={"labels": {"no spaces": "x"}}))
    graphs.create("web", *maps("a", "b", "x"))
    async with engine():
        await until(partial(graphs.is_ready, "web"))
        graphs.change("web", *maps("a", "b"), bad)
        await until(lambda: graphs.reason("web", "Applied") == "Invalid")
        assert graphs.find("configmaps", "x") is not None
        graphs.change("web", *maps("a", "b"))
        await until(partial(graphs.is_ready, "web"))
    assert graphs.find("configmaps", "x") is None


async def test_case_62_edits_of_a_graph_that_is_being_deleted_are_not_applied(
    graphs: Graphs, engine: Start
) -> None:
    graphs.create("web", *maps("a"))
    async with engine():
        await until(partial(graphs.is_ready, "web"))
        graphs.edit("configmaps", "a", {"metadata": {"finalizers": ["example.com/hold"]}})
        graphs.delete("web")
        await until(lambda: "example.com/hold" in graphs.message("web"))
        graphs.change("web", *maps("a", "new"))
        graphs.edit("configmaps", "a", {"metadata": {"finalizers": None}})
        await until(lambda: not graphs.exists("web"))
    assert graphs.find("configmaps", "new") is None


async def test_workloads_that_depend_on_others_are_gone_with_their_pods_before_those(
    graphs: Graphs, engine: Start
) -> None:
    graphs.create(
        "web", *maps("base"), node("app", deployment("app", replicas=1), dependsOn=["base"])
    )
    async with engine() as running:
        await until(partial(graphs.is_ready, "web"))
        graphs.delete("web")
        await until(lambda: not graphs.exists("web"))
        deletes = [one.place for one in running.journal.writes() if one.method == "DELETE"]
        assert deletes[0].endswith("/app")
        assert deletes[-1].endswith("/base")
    pods = graphs.api.get(graphs.path("pods")).body["items"]
    assert pods == []


async def test_suspended_graphs_are_left_alone_and_deleted_all_the_same(
    graphs: Graphs, engine: Start
) -> None:
    graphs.create("web", *maps("a"))
    async with engine() as running:
        await until(partial(graphs.is_ready, "web"))
        graphs.patch("web", {"spec": {"suspend": True}})
        await graphs.settled(running)
        graphs.edit("configmaps", "a", {"data": {"a": "edited"}})
        graphs.remove("configmaps", "a")
        await graphs.settled(running)
        assert graphs.find("configmaps", "a") is None
        graphs.patch("web", {"spec": {"suspend": False}})
        await until(lambda: graphs.find("configmaps", "a") is not None)
        graphs.patch("web", {"spec": {"suspend": True}})
        graphs.delete("web")
        await until(lambda: not graphs.exists("web"))
    assert graphs.find("configmaps", "a") is None


async def test_an_object_that_lost_our_label_is_looked_at_before_it_is_deleted(
    graphs: Graphs, engine: Start
) -> None:
    """Protection counts with and without the label; what another graph has is not ours."""
    protected = {"annotations": {PRUNE: "disabled"}}
    graphs.create("web", node("kept", config_map("kept", metadata=protected)), *maps("gone", "x"))
    async with engine():
        await until(partial(graphs.is_ready, "web"))
    stranger = "00000000-0000-0000-0000-000000000000"
    for name, label in (("kept", None), ("gone", None), ("x", stranger)):
        graphs.edit("configmaps", name, {"metadata": {"labels": {"pequod.io/graph": label}}})
    graphs.delete("web")
    async with engine():
        await until(lambda: not graphs.exists("web"))
    assert graphs.find("configmaps", "kept") is not None
    assert graphs.find("configmaps", "x") is not None
    assert graphs.find("configmaps", "gone") is None


async def test_case_49_replacing_everything_is_deleting_everything(
    graphs: Graphs, engine: Start
) -> None:
    """What a change adds does not make up for what it takes away."""
    graphs.create("web", *maps("a", "b", "c"))
    async with engine():
        await until(partial(graphs.is_ready, "web"))
        graphs.change("web", *maps("d", "e", "f"))
        await until(lambda: graphs.reason("web", "Pruned") == "PruneBlocked")
        assert "3 of 3 objects" in graphs.message("web", "Pruned")
        assert graphs.find("configmaps", "a") is not None


async def test_case_52_what_is_only_held_up_is_never_given_up(
    graphs: Graphs, engine: Start
) -> None:
    """Finalizers and graces take as long as they take; only refusals are given up."""
    graphs.create("web", *maps("a", "b"))
    async with engine(abandon_after=1.0) as running:
        await until(partial(graphs.is_ready, "web"))
        graphs.edit("configmaps", "a", {"metadata": {"finalizers": ["example.com/hold"]}})
        graphs.delete("web")
        await until(lambda: "example.com/hold" in graphs.message("web"))
        began = graphs.get("web")["metadata"]["deletionTimestamp"]
        for _ in range(3):
            await graphs.settled(running)
        assert graphs.get("web")["metadata"]["deletionTimestamp"] == began
        graphs.edit("configmaps", "a", {"metadata": {"finalizers": None}})
        await until(lambda: not graphs.exists("web"))


async def test_a_node_that_only_looks_from_now_on_lets_its_object_go(
    graphs: Graphs, engine: Start
) -> None:
    graphs.create("web", *maps("a", "b"))
    async with engine():
        await until(partial(graphs.is_ready, "web"))
        observe = {"mode": "Observe"}
        graphs.change("web", node("a", config_map("a"), applyPolicy=observe), *maps("b"))
        await until(partial(graphs.is_ready, "web"))
        assert set(graphs.inventory("web")) == {"ConfigMap/b"}
        graphs.delete("web")
        await until(lambda: not graphs.exists("web"))
    assert graphs.find("configmaps", "a") is not None
    assert graphs.find("configmaps", "b") is None
