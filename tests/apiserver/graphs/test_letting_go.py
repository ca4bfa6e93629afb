"""What a graph lets go of is nobody's: others may have it, and it is not taken back by accident."""

from functools import partial

import pytest

from clusters import Api
from graphs import Graphs, Object, Start, config_map, grant, grant_writing, node
from pequod.controllers.platform import claims
from pequod.kube.objects import Key
from waiting import until

LABEL = "pequod.io/graph"
ORPHAN = {"deletionPolicy": "Orphan"}
ADOPT = {"mode": "Adopt"}
PROTECTED = {"annotations": {"pequod.io/prune": "disabled"}}


def maps(*names: str) -> list[Object]:
    return [node(name, config_map(name)) for name in names]


def labels(graphs: Graphs, name: str) -> Object:
    return dict(graphs.live("configmaps", name)["metadata"].get("labels", {}))


async def test_an_orphan_is_not_deleted_by_a_graph_that_asks_for_it_again(
    graphs: Graphs, engine: Start
) -> None:
    graphs.create("web", node("t", config_map("t"), applyPolicy=ORPHAN), *maps("a", "b"))
    async with engine():
        await until(partial(graphs.is_ready, "web"))
        uid = graphs.uid("configmaps", "t")
        graphs.change("web", *maps("a", "b"))
        await until(partial(graphs.is_ready, "web"))
        assert LABEL not in labels(graphs, "t")
        graphs.edit("configmaps", "t", {"data": {"a": "edited"}})
        graphs.change("web", *maps("t", "a", "b"))
        await until(lambda: graphs.reason("web", "Applied") == "FieldConflict")
        graphs.change("web", *maps("a", "b"))
        await until(partial(graphs.is_ready, "web"))
    assert graphs.uid("configmaps", "t") == uid
    assert graphs.live("configmaps", "t")["data"] == {"a": "edited"}


async def test_a_graph_may_take_back_what_it_has_let_go_of(graphs: Graphs, engine: Start) -> None:
    """As a return to an earlier revision does, in which nobody can say that it is adopted."""
    orphan = node("t", config_map("t"), applyPolicy=ORPHAN)
    web = graphs.create("web", orphan, *maps("a", "b"))
    async with engine():
        await until(partial(graphs.is_ready, "web"))
        uid = graphs.uid("configmaps", "t")
        graphs.change("web", *maps("a", "b"))
        await until(partial(graphs.is_ready, "web"))
        graphs.change("web", orphan, *maps("a", "b"))
        await until(partial(graphs.is_ready, "web"))
    assert graphs.uid("configmaps", "t") == uid
    assert labels(graphs, "t")[LABEL] == web


@pytest.mark.parametrize("how", ["orphaned", "protected"])
async def test_what_a_living_graph_let_go_another_one_may_adopt(
    graphs: Graphs, engine: Start, how: str
) -> None:
    policy, metadata = (ORPHAN, {}) if how == "orphaned" else ({}, PROTECTED)
    shared = config_map("t", metadata=metadata)
    graphs.create("from", node("t", shared, applyPolicy=policy), *maps("a", "b"))
    async with engine():
        await until(partial(graphs.is_ready, "from"))
        uid = graphs.uid("configmaps", "t")
        graphs.change("from", *maps("a", "b"))
        await until(partial(graphs.is_ready, "from"))
        heir = graphs.create("to", node("t", config_map("t"), applyPolicy=ADOPT))
        await until(partial(graphs.is_ready, "to"))
    assert graphs.uid("configmaps", "t") == uid
    assert labels(graphs, "t")[LABEL] == heir


@pytest.mark.parametrize("how", ["pruned", "deleted"])
async def test_case_47_an_orphan_goes_to_the_graph_that_asks_for_it(
    graphs: Graphs, engine: Start, how: str
) -> None:
    graphs.create("from", node("t", config_map("t"), applyPolicy=ORPHAN), *maps("a", "b"))
    async with engine():
        await until(partial(graphs.is_ready, "from"))
        uid = graphs.uid("configmaps", "t")
        heir = graphs.create("to", *maps("t"))
        await until(lambda: graphs.reason("to", "Applied") == "AlreadyExists")
        if how == "pruned":
            graphs.change("from", *maps("a", "b"))
        else:
            graphs.delete("from")
        await until(partial(graphs.is_ready, "to"))
    assert graphs.uid("configmaps", "t") == uid
    assert labels(graphs, "t")[LABEL] == heir


@pytest.mark.parametrize("why", ["without rights", "that only rehearses"])
async def test_case_47_a_graph_that_never_executes_is_nobodys_heir(
    graphs: Graphs, engine: Start, api: Api, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claims, "HOPE", 1.0)
    accounts = f"/api/v1/namespaces/{graphs.namespace}/serviceaccounts"
    assert api.create(accounts, {"metadata": {"name": "nobody"}}).code == 201
    graphs.create("from", *maps("t", "a"))
    async with engine():
        await until(partial(graphs.is_ready, "from"))
        if why == "without rights":
            graphs.create("to", *maps("t"), serviceAccountName="nobody")
            await until(lambda: graphs.reason("to", "Applied") == "Forbidden")
        else:
            one = {"apiVersion": "v1", "kind": "ConfigMap", "name": "t"}
            adopt = {"mode": "Explicit", "resources": [one], "dryRun": True}
            graphs.create("to", *maps("t"), adopt=adopt)
            await until(lambda: bool(graphs.reason("to")))
        graphs.delete("from")
        await until(lambda: not graphs.exists("from"))
    assert graphs.find("configmaps", "t") is None


async def test_case_47_a_graph_whose_rights_come_late_gets_what_it_asks_for(
    graphs: Graphs, engine: Start, api: Api
) -> None:
    accounts = f"/api/v1/namespaces/{graphs.namespace}/serviceaccounts"
    assert api.create(accounts, {"metadata": {"name": "late"}}).code == 201
    graphs.create("from", *maps("t", "a"))
    async with engine() as running:
        await until(partial(graphs.is_ready, "from"))
        uid = graphs.uid("configmaps", "t")
        graphs.create("to", *maps("t"), serviceAccountName="late")
        await until(lambda: graphs.reason("to", "Applied") == "Forbidden")
        graphs.delete("from")
        await until(lambda: "asked for by ResourceGraph to" in graphs.message("from"))
        grant(api, graphs.namespace, account="late")
        running.controller.wake(Key(graphs.namespace, "to"))
        await until(partial(graphs.is_ready, "to"))
    assert graphs.uid("configmaps", "t") == uid


async def test_a_grace_is_given_each_time(graphs: Graphs, engine: Start) -> None:
    late = config_map("late", metadata={"annotations": {"pequod.io/prune-grace-period": "1h"}})
    graphs.create("web", node("late", late), *maps("a", "b"))
    async with engine() as running:
        await until(partial(graphs.is_ready, "web"))
        graphs.change("web", *maps("a", "b"))
        await until(lambda: "grace period" in graphs.message("web", "Pruned"))
        (run,) = running.reconciler._runs.values()
        assert run.stale_since
        graphs.change("web", node("late", late), *maps("a", "b"))
        await until(partial(graphs.is_ready, "web"))
        assert not run.stale_since


async def test_an_object_that_came_back_is_not_believed_to_be_on_its_way_out(
    graphs: Graphs, engine: Start
) -> None:
    graphs.create("web", *maps("t", "a", "b"))
    async with engine() as running:
        await until(partial(graphs.is_ready, "web"))
        graphs.edit("configmaps", "t", {"metadata": {"finalizers": ["example.com/hold"]}})
        graphs.change("web", *maps("a", "b"))
        await until(lambda: "example.com/hold" in graphs.message("web", "Pruned"))
        graphs.change("web", *maps("t", "a", "b"))
        graphs.edit("configmaps", "t", {"metadata": {"finalizers": None}})
        await until(partial(graphs.is_ready, "web"))
        graphs.patch("web", {"spec": {"suspend": True}})
        await graphs.settled(running)
        graphs.edit("configmaps", "t", {"metadata": {"labels": {LABEL: None}}})
        graphs.change("web", *maps("a", "b"), suspend=False)
        await until(partial(graphs.is_ready, "web"))
    assert graphs.find("configmaps", "t") is None


async def test_the_right_to_delete_is_asked_for_before_anything_is_made(
    graphs: Graphs, engine: Start, api: Api
) -> None:
    """Who could make objects and never take them away again would find that out too late."""
    maker = grant_writing(api, graphs.namespace, "configmaps", verbs=("create", "patch"))
    graphs.create("web", *maps("a", "b"), serviceAccountName=maker)
    graphs.create("kept", *maps("c"), serviceAccountName=maker, deletionPolicy="Orphan")
    async with engine():
        await until(lambda: graphs.reason("web", "Applied") == "Forbidden")
        assert "may not delete" in graphs.message("web", "Applied")
        await until(partial(graphs.is_ready, "kept"))
    assert graphs.find("configmaps", "a") is None
