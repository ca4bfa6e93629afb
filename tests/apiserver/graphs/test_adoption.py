"""Objects that exist already join a graph: `spec.adopt` with strategy TakeOwnership."""

from functools import partial
from pathlib import Path

import pytest

import graphs as engines
from adoptions import (
    DEPLOYMENTS,
    LABEL,
    assert_all_ours,
    by_label,
    container_of,
    explicit,
    is_adopted,
    kubectl_apply,
    legacy,
    managers,
    previous_managers,
    resource,
    wanted,
    web,
)
from clusters import Api
from graphs import (
    Graphs,
    Object,
    Start,
    config_map,
    deployment,
    grant_writing,
    node,
    object_,
)
from pequod.controllers.platform.identity import IdentityRules
from pequod.kube.errors import UnreachableError
from pequod.kube.transport import Request
from waiting import until


async def test_what_kubectl_applied_is_adopted_and_what_the_node_does_not_name_goes_away(
    graphs: Graphs, engine: Start, tmp_path: Path
) -> None:
    kubectl_apply(graphs, tmp_path, legacy())
    before = graphs.uid(DEPLOYMENTS, "web")
    uid = graphs.create("shop", node("web", wanted()), adopt=explicit(web()))
    async with engine() as running:
        await until(partial(graphs.is_ready, "shop"))
        assert_all_ours(graphs, uid)
        assert graphs.message("shop", "Adopted") == "1 object adopted"
        assert graphs.inventory("shop") == {"Deployment/web": before}
        assert previous_managers(graphs, "shop", "web") == ["kubectl-client-side-apply"]
        said = f"adopted: Deployment/{graphs.namespace}/web"
        await until(lambda: [e["note"] for e in adoptions(graphs)] == [said])
        running.journal.clear()
        await graphs.settled(running)
        assert not running.journal.of("deployments/web"), "one write for a change, none without"
    async with engine() as running:
        await graphs.settled(running)
        assert not running.journal.of("deployments/web"), "also after a restart"
        graphs.delete("shop")
        await until(lambda: not graphs.exists("shop"))
    assert graphs.find(DEPLOYMENTS, "web") is None


def adoptions(graphs: Graphs) -> list[Object]:
    return [event for event in graphs.events("shop") if event["reason"] == "Adopted"]


async def test_what_helm_installed_is_adopted_with_its_marks_removed(
    graphs: Graphs, engine: Start
) -> None:
    release = {
        "labels": {"app.kubernetes.io/managed-by": "Helm", "helm.sh/chart": "web-1"},
        "annotations": {"meta.helm.sh/release-name": "web"},
    }
    made = config_map("web", metadata=release, a="1", gone="x")
    path = graphs.path("configmaps")
    assert graphs.api.call("POST", f"{path}?fieldManager=helm", made).code == 201
    uid = graphs.create("shop", node("a", config_map("web", a="2")), adopt=explicit(cm("web")))
    async with engine():
        await until(partial(graphs.is_ready, "shop"))
        live = graphs.live("configmaps", "web")
        assert live["data"] == {"a": "2"}
        ours = {LABEL: uid, "app.kubernetes.io/managed-by": "pequod"}
        assert live["metadata"]["labels"] == ours
        assert not live["metadata"].get("annotations")
        assert previous_managers(graphs, "shop", "a") == ["helm"]


def cm(name: str, **more: str) -> Object:
    return resource("ConfigMap", name, **more)


@pytest.mark.parametrize("manager", ["kubectl", "kustomize-controller", "argocd-controller"])
async def test_what_another_tool_applies_on_the_servers_side_is_adopted(
    graphs: Graphs, engine: Start, tmp_path: Path, manager: str
) -> None:
    kubectl_apply(graphs, tmp_path, legacy(), server_side="true", field_manager=manager)
    uid = graphs.create("shop", node("web", wanted()), adopt=explicit(web()))
    async with engine():
        await until(partial(graphs.is_ready, "shop"))
        assert_all_ours(graphs, uid)
        assert previous_managers(graphs, "shop", "web") == [manager]


async def test_what_several_tools_and_people_have_worked_on_is_adopted_as_a_whole(
    graphs: Graphs, engine: Start, tmp_path: Path
) -> None:
    kubectl_apply(graphs, tmp_path, legacy())
    image = {"spec": {"template": {"spec": {"containers": [{"name": "app", "image": "app:9"}]}}}}
    path = f"{graphs.path(DEPLOYMENTS, 'web')}?fieldManager=kubectl-set"
    answer = graphs.api.call("PATCH", path, image, kind="strategic-merge-patch+json")
    assert answer.code == 200, answer.message
    more = {"metadata": {"annotations": {"by-helm": "1"}}}
    graphs.edit(DEPLOYMENTS, "web", more, manager="helm")
    uid = graphs.create("shop", node("web", wanted()), adopt=explicit(web()))
    async with engine():
        await until(partial(graphs.is_ready, "shop"))
        assert_all_ours(graphs, uid)
        assert container_of(graphs.live(DEPLOYMENTS, "web"))["image"] == "app:1"
        known = previous_managers(graphs, "shop", "web")
        assert {*known} == {"kubectl-client-side-apply", "kubectl-set", "helm"}


async def test_an_object_that_nobody_is_known_to_manage_is_adopted_as_a_whole(
    graphs: Graphs, engine: Start, tmp_path: Path
) -> None:
    """As they come out of old clusters and some backups."""
    kubectl_apply(graphs, tmp_path, legacy())
    cleared = graphs.edit(DEPLOYMENTS, "web", {"metadata": {"managedFields": [{}]}})
    assert not managers(cleared)
    uid = graphs.create("shop", node("web", wanted()), adopt=explicit(web()))
    async with engine():
        await until(partial(graphs.is_ready, "shop"))
        assert_all_ours(graphs, uid)
        assert previous_managers(graphs, "shop", "web") == ["before-first-apply"]


async def test_objects_that_exist_and_objects_that_do_not_come_to_the_same(
    graphs: Graphs, engine: Start, tmp_path: Path
) -> None:
    kubectl_apply(graphs, tmp_path, config_map("old", a="0", gone="x"))
    graphs.create(
        "shop",
        node("old", config_map("old", a="1")),
        node("new", config_map("new", a="1")),
        node("other", config_map("other")),
        adopt=explicit(cm("old"), cm("new", nodeId="new"), cm("lost"), cm("new", nodeId="other")),
    )
    async with engine():
        await until(partial(graphs.is_ready, "shop"))
        assert {name: graphs.live("configmaps", name)["data"] for name in ("old", "new")} == {
            "old": {"a": "1"},
            "new": {"a": "1"},
        }
        where = f"ConfigMap/{graphs.namespace}"
        assert graphs.message("shop", "Adopted") == (
            "1 object adopted; 1 did not exist and was made; "
            f"{where}/lost is no node and was left alone; {where}/new was left alone: node other "
            f"is {where}/other; correct its nodeId"
        )
        assert previous_managers(graphs, "shop", "new") == []


async def test_what_a_selector_finds_is_adopted_if_it_is_a_node_and_left_alone_if_not(
    graphs: Graphs, engine: Start, tmp_path: Path
) -> None:
    labels = {"labels": {"team": "shop"}}
    kubectl_apply(
        graphs,
        tmp_path,
        config_map("mine", metadata=labels, a="0"),
        config_map("stranger", metadata=labels, a="0"),
        config_map("unlabelled", a="0"),
    )
    nodes = [node(name, config_map(name, a="1")) for name in ("mine", "unlabelled", "new")]
    graphs.create("shop", *nodes, adopt=by_label())
    async with engine() as running:
        await until(lambda: graphs.reason("shop", "Applied") == "AlreadyExists")
        assert graphs.phase("shop", "mine") == graphs.phase("shop", "new") == "Ready"
        assert graphs.live("configmaps", "unlabelled")["data"] == {"a": "0"}
        left = f"ConfigMap/{graphs.namespace}/stranger is no node and was left alone"
        assert graphs.message("shop", "Adopted") == f"1 object adopted; {left}"
        lists = [one for one in running.journal.asked if "team%3Dshop" in one.path]
        assert {one.user.rpartition(":")[2] for one in lists} == {"tenant"}
    graphs.edit("configmaps", "unlabelled", {"metadata": labels})
    async with engine():
        await until(partial(graphs.is_ready, "shop"))
        assert graphs.message("shop", "Adopted") == f"2 objects adopted; {left}"
    stranger = graphs.live("configmaps", "stranger")
    assert stranger["data"] == {"a": "0"}
    assert managers(stranger) == {"kubectl-client-side-apply": "Update"}
    async with engine() as running:
        await graphs.settled(running)
        assert not [one for one in running.journal.asked if "team%3Dshop" in one.path]
        assert graphs.message("shop", "Adopted") == f"2 objects adopted; {left}"


async def test_an_object_of_another_living_graph_is_refused_and_others_go_on(
    graphs: Graphs, engine: Start, tmp_path: Path
) -> None:
    first = graphs.create("first", node("taken", config_map("taken", a="first")))
    kubectl_apply(graphs, tmp_path, config_map("free", a="0"))
    async with engine():
        await until(partial(graphs.is_ready, "first"))
        nodes = [node(name, config_map(name, a="second")) for name in ("taken", "free")]
        graphs.create("second", *nodes, adopt=explicit(cm("taken"), cm("free")))
        await until(lambda: graphs.reason("second", "Adopted") == "AlreadyExists")
        message = graphs.message("second", "Adopted")
        assert message.startswith("1 of 2 not adopted: ConfigMap/")
        assert f"another graph ({LABEL}={first})" in message
        assert "remove it from that graph first" in message
        assert graphs.live("configmaps", "taken")["data"] == {"a": "first"}
        assert graphs.live("configmaps", "free")["data"] == {"a": "second"}


async def test_of_graphs_that_adopt_the_same_object_at_once_one_gets_it(
    graphs: Graphs, engine: Start, tmp_path: Path
) -> None:
    names = ["first", "second", "third"]
    kubectl_apply(graphs, tmp_path, config_map("web", a="0"))
    uids = {
        graphs.create(name, node("web", config_map("web", a=name)), adopt=explicit(cm("web"))): name
        for name in names
    }
    async with engine() as running:
        await until(lambda: sum(graphs.is_ready(name) for name in names) == 1)
        others = [name for name in names if not graphs.is_ready(name)]
        for name in others:
            await until(partial(is_refused, graphs, name))
        live = graphs.live("configmaps", "web")
        winner = uids[live["metadata"]["labels"][LABEL]]
        assert live["data"] == {"a": winner}
        assert winner not in others
        await graphs.settled(running)
        assert graphs.live("configmaps", "web")["metadata"] == live["metadata"]


def is_refused(graphs: Graphs, name: str) -> bool:
    return graphs.reason(name, "Adopted") == "AlreadyExists"


async def test_what_a_dead_graph_has_left_behind_is_adopted(graphs: Graphs, engine: Start) -> None:
    graphs.create("first", node("a", config_map("a", a="1", gone="x")), deletionPolicy="Orphan")
    async with engine():
        await until(partial(graphs.is_ready, "first"))
        graphs.delete("first")
        await until(lambda: not graphs.exists("first"))
        graphs.create("second", node("a", config_map("a", a="2")), adopt=explicit(cm("a")))
        await until(partial(graphs.is_ready, "second"))
        assert graphs.live("configmaps", "a")["data"] == {"a": "2"}
        assert graphs.message("second", "Adopted") == "1 object adopted"


async def test_fields_that_a_controller_holds_are_named_and_nothing_is_touched(
    graphs: Graphs, engine: Start, tmp_path: Path
) -> None:
    kubectl_apply(graphs, tmp_path, legacy())
    scale = f"{graphs.path(DEPLOYMENTS, 'web')}/scale?fieldManager=autoscaler"
    assert graphs.api.patch(scale, {"spec": {"replicas": 1}}).code == 200
    before = graphs.live(DEPLOYMENTS, "web")["metadata"]
    graphs.create("shop", node("web", wanted(replicas=0)), adopt=explicit(web()))
    async with engine():
        await until(lambda: graphs.reason("shop", "Adopted") == "FieldConflict")
        assert "autoscaler manages .spec.replicas" in graphs.message("shop", "Adopted")
        after = graphs.live(DEPLOYMENTS, "web")["metadata"]
        assert {"kubectl-client-side-apply"} <= managers({"metadata": after}).keys()
        assert after["labels"] == before["labels"]
        force = {"conflictPolicy": "Force"}
        graphs.change("shop", node("web", wanted(replicas=0), applyPolicy=force))
        await until(partial(graphs.is_ready, "shop"))
        assert graphs.live(DEPLOYMENTS, "web")["spec"]["replicas"] == 0


async def test_replicas_that_the_node_leaves_to_others_stay_as_they_are(
    graphs: Graphs, engine: Start, tmp_path: Path
) -> None:
    """Server-side apply would reset them to one."""
    kubectl_apply(graphs, tmp_path, legacy(replicas=3))
    graphs.create("shop", node("web", wanted(replicas=None)), adopt=explicit(web()))
    async with engine():
        await until(partial(is_adopted, graphs, "shop"))
        live = graphs.live(DEPLOYMENTS, "web")
        assert live["spec"]["replicas"] == 3
        assert managers(live) == {"pequod-operator": "Apply", "pequod-handover": "Apply"}


async def test_what_nodes_cannot_name_and_controllers_have_written_stays(
    graphs: Graphs, engine: Start, tmp_path: Path
) -> None:
    held = config_map("web", metadata={"finalizers": ["example.com/held"]}, a="0")
    kubectl_apply(graphs, tmp_path, held)
    graphs.edit("configmaps", "web", {"data": {"by-a-controller": "1"}}, manager="controller")
    graphs.create("shop", node("web", config_map("web", a="1")), adopt=explicit(cm("web")))
    async with engine():
        await until(partial(graphs.is_ready, "shop"))
    live = graphs.live("configmaps", "web")
    assert live["metadata"]["finalizers"] == ["example.com/held"]
    assert live["data"] == {"a": "1", "by-a-controller": "1"}
    assert managers(live) == {"pequod-operator": "Apply", "controller": "Update"}
    graphs.edit("configmaps", "web", {"metadata": {"finalizers": None}})


async def test_an_object_that_is_being_deleted_is_made_anew_when_it_is_gone(
    graphs: Graphs, engine: Start, tmp_path: Path
) -> None:
    held = config_map("web", metadata={"finalizers": ["example.com/held"]}, a="0")
    kubectl_apply(graphs, tmp_path, held)
    before = graphs.uid("configmaps", "web")
    graphs.remove("configmaps", "web")
    graphs.create("shop", node("web", config_map("web", a="1")), adopt=explicit(cm("web")))
    async with engine():
        await until(lambda: "being deleted" in graphs.message("shop", "Adopted"))
        graphs.edit("configmaps", "web", {"metadata": {"finalizers": None}})
        await until(partial(graphs.is_ready, "shop"))
        assert graphs.uid("configmaps", "web") != before


async def test_an_operator_that_dies_between_the_two_writes_is_no_loss(
    graphs: Graphs, engine: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ownership has moved already, and the object still is as it was."""
    kubectl_apply(graphs, tmp_path, legacy())
    uid = graphs.create("shop", node("web", wanted()), adopt=explicit(web()))
    send, dead = engines.JournalledTransport.send, False

    async def die_afterwards(self: engines.JournalledTransport, request: Request) -> bytes:
        nonlocal dead
        if dead:
            raise UnreachableError("the operator is dead")
        moves = ("Content-Type", "application/json-patch+json") in request.headers
        answer = await send(self, request)
        if moves:
            dead = True
        return answer

    with monkeypatch.context() as patched:
        patched.setattr(engines.JournalledTransport, "send", die_afterwards)
        async with engine():
            await until(lambda: dead)
    live = graphs.live(DEPLOYMENTS, "web")
    assert managers(live) == {"pequod-operator": "Apply"}
    assert LABEL not in live["metadata"]["labels"]
    assert graphs.inventory("shop") == {"Deployment/web": ""}
    async with engine():
        await until(partial(graphs.is_ready, "shop"))
        assert_all_ours(graphs, uid)
        assert previous_managers(graphs, "shop", "web") == ["kubectl-client-side-apply"]
        assert graphs.message("shop", "Adopted") == "1 object adopted"


async def test_rights_that_adoption_needs_are_asked_for_beforehand(
    graphs: Graphs, engine: Start, api: Api, tmp_path: Path
) -> None:
    kubectl_apply(graphs, tmp_path, config_map("web", a="0"))
    made = node("web", config_map("web", a="1"))
    writer = {"serviceAccountName": grant_writing(api, graphs.namespace, "configmaps")}
    graphs.create("named", made, adopt=explicit(cm("web")), **writer)
    graphs.create("selected", made, adopt=by_label(), **writer)
    async with engine() as running:
        await until(lambda: graphs.reason("named", "Adopted") == "Forbidden")
        assert "writer may not get configmaps" in graphs.message("named", "Adopted")
        await until(lambda: graphs.reason("selected", "Adopted") == "Forbidden")
        assert "writer may not list configmaps" in graphs.message("selected", "Adopted")
        assert not running.journal.writes()


async def test_a_confined_graph_adopts_nothing_that_reaches_further_than_itself(
    graphs: Graphs, engine: Start, as_operator: Api, tmp_path: Path
) -> None:
    """Otherwise a Deployment of somebody else would be a way to run as its account."""
    privileged = legacy()
    privileged["spec"]["template"]["spec"]["serviceAccountName"] = "privileged"
    account = object_("v1", "ServiceAccount", "privileged")
    kubectl_apply(graphs, tmp_path, account, privileged, config_map("plain", a="0"))
    user = deployment("user")
    user["spec"]["template"]["spec"]["serviceAccountName"] = "privileged"
    transforms = f"/apis/platform.pequod.io/v1alpha1/namespaces/{graphs.namespace}/transforms"
    source = {
        "apiVersion": "platform.pequod.io/v1alpha1",
        "kind": "Transform",
        "metadata": {"name": "source"},
        "spec": {"cueRef": {"type": "embedded", "ref": "webservice"}, "input": {}},
    }
    made = graphs.api.create(transforms, source).body["metadata"]
    reference = {name: source[name] for name in ("apiVersion", "kind")} | {
        name: made[name] for name in ("name", "namespace", "uid")
    }
    front_end = Graphs(as_operator, graphs.namespace, as_operator)
    front_end.create(
        "shop",
        node("web", wanted()),
        node("account", account),
        node("user", user),
        node("plain", config_map("plain", a="1")),
        sourceRef=reference,
        serviceAccountName=None,
        adopt=explicit(web(), resource("ServiceAccount", "privileged"), cm("plain")),
    )
    by_itself = node("account", account, applyPolicy={"mode": "Adopt"})
    front_end.create("single", by_itself, sourceRef=reference, serviceAccountName=None)
    async with engine(identity=IdentityRules(mode="confined")) as running:
        await until(lambda: graphs.reason("single", "Applied") == "OutOfReach")
        await until(lambda: graphs.reason("shop", "Adopted") == "OutOfReach")
        message = graphs.message("shop", "Adopted")
        assert "would run as ServiceAccount privileged" in message
        assert "ServiceAccount/" in message
        assert graphs.live("configmaps", "plain")["data"] == {"a": "1"}
        await until(lambda: graphs.phase("shop", "user") == "Pending")
        assert not running.journal.writes("deployments")
        assert not running.journal.writes("serviceaccounts")
