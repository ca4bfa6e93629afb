"""Objects that stay with others and are only compared, and adoptions that are only rehearsed."""

from functools import partial
from pathlib import Path

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
    resource,
    wanted,
    web,
)
from clusters import Api
from graphs import Engine, Graphs, Object, Start, config_map, node, object_
from waiting import until

CANARY = "hunter2-canary"


def details(graphs: Graphs, id_: str, name: str = "shop") -> str:
    return str(graphs.status(name)["nodeStatus"].get(id_, {}).get("readyDetails", ""))


def cm(name: str) -> Object:
    return resource("ConfigMap", name)


def really_written(running: Engine, word: str = "") -> list[str]:
    return [one.path for one in running.journal.writes(word) if "dryRun=All" not in one.path]


async def test_a_mirrored_object_is_compared_and_never_written(
    graphs: Graphs, engine: Start, tmp_path: Path
) -> None:
    kubectl_apply(graphs, tmp_path, legacy())
    before = graphs.live(DEPLOYMENTS, "web")
    changed = wanted()
    container_of(changed)["image"] = "app:2"
    graphs.create(
        "shop",
        node("web", changed),
        node("after", config_map("after"), dependsOn=["web"]),
        adopt=explicit(web(), strategy="Mirror"),
    )
    async with engine() as running:
        await until(partial(graphs.is_ready, "shop"))
        assert graphs.phase("shop", "web") == "Adopted"
        place = "spec.template.spec.containers[name=app]"
        assert details(graphs, "web") == (
            f'differs: {place}.env[name=KEPT].value wanted "2", live "1"; '
            f'{place}.image wanted "app:2", live "app:1"'
        )
        assert graphs.message("shop", "Adopted") == (
            "1 object mirrored, 1 with differences (readyDetails); looked at every 30 s in the "
            f"name of ServiceAccount {graphs.namespace}/tenant, and never written"
        )
        assert graphs.inventory("shop").keys() == {"ConfigMap/after"}
        asked = running.journal.of("deployments/web")
        assert {one.user.rpartition(":")[2] for one in asked} == {"tenant"}
        notes = partial(notes_of, graphs, "Mirrored")
        await until(lambda: notes() == [f"mirrored: Deployment/{graphs.namespace}/web"])
        graphs.delete("shop")
        await until(lambda: not graphs.exists("shop"))
        assert not really_written(running, "deployments")
    assert_untouched(graphs, before)


def assert_untouched(graphs: Graphs, before: Object) -> None:
    """Its own controller may have written on it, and nobody else."""
    live = graphs.live(DEPLOYMENTS, "web")
    assert live["spec"] == before["spec"]
    assert live["metadata"]["labels"] == before["metadata"]["labels"]
    assert managers(live) == managers(before)


def notes_of(graphs: Graphs, reason: str) -> list[str]:
    return [event["note"] for event in graphs.events("shop") if event["reason"] == reason]


async def test_a_mirrored_object_without_a_difference_says_so(
    graphs: Graphs, engine: Start, tmp_path: Path
) -> None:
    """What the node does not name, and what others would be labelled with, is no difference."""
    kubectl_apply(graphs, tmp_path, config_map("web", a="1", theirs="2"))
    adopt = explicit(cm("web"), strategy="Mirror")
    graphs.create("shop", node("web", config_map("web", a="1")), adopt=adopt)
    async with engine():
        await until(partial(graphs.is_ready, "shop"))
        assert details(graphs, "web") == "no difference"
        assert graphs.message("shop", "Adopted").startswith("1 object mirrored, no difference;")
        graphs.patch("shop", {"spec": {"adopt": None}})
        await until(lambda: graphs.reason("shop", "Applied") == "AlreadyExists")
        assert not graphs.condition("shop", "Adopted"), "nobody asks for it any more"


async def test_a_mirrored_secret_shows_where_it_differs_and_no_values(
    graphs: Graphs, engine: Start, tmp_path: Path
) -> None:
    secret = object_("v1", "Secret", "web", stringData={"password": CANARY, "user": "a"})
    kubectl_apply(graphs, tmp_path, secret)
    graphs.secret("parts", web='{"stringData": {"password": "hunter2-canary-too", "user": "a"}}')
    made = node("web", object_("v1", "Secret", "web"))
    made["objectFrom"] = {"secretRef": {"name": "parts", "key": "web"}}
    adopt = explicit(resource("Secret", "web"), strategy="Mirror")
    graphs.create("shop", made, adopt=adopt)
    async with engine():
        await until(partial(graphs.is_ready, "shop"))
        assert details(graphs, "web") == "differs: data.password (values are not shown)"
        assert "canary" not in str(graphs.get("shop"))


async def test_what_is_to_be_mirrored_and_does_not_exist_is_waited_for(
    graphs: Graphs, engine: Start
) -> None:
    graphs.create(
        "shop",
        node("web", config_map("web")),
        node("after", config_map("after"), dependsOn=["web"]),
        adopt=explicit(cm("web"), strategy="Mirror"),
    )
    async with engine() as running:
        await until(lambda: "waits for somebody to create it" in graphs.message("shop", "Adopted"))
        assert details(graphs, "web") == "waits for somebody to create it"
        assert graphs.find("configmaps", "web") is graphs.find("configmaps", "after") is None
        assert not really_written(running)
    graphs.make("configmaps", config_map("web"))
    async with engine():
        await until(partial(graphs.is_ready, "shop"))
        assert graphs.find("configmaps", "after")


async def test_a_mirrored_object_that_a_selector_found_stays_so_when_it_is_gone(
    graphs: Graphs, engine: Start, tmp_path: Path
) -> None:
    """Nobody would expect that something is made of what was only looked at."""
    labels = {"labels": {"team": "shop"}}
    kubectl_apply(graphs, tmp_path, config_map("theirs", metadata=labels))
    nodes = [node(name, config_map(name)) for name in ("theirs", "ours")]
    graphs.create("shop", *nodes, adopt=by_label(strategy="Mirror"))
    async with engine():
        await until(partial(graphs.is_ready, "shop"))
        assert graphs.inventory("shop").keys() == {"ConfigMap/ours"}
    graphs.remove("configmaps", "theirs")
    async with engine() as running:
        await until(lambda: graphs.phase("shop", "theirs") == "Pending")
        await graphs.settled(running)
        assert graphs.find("configmaps", "theirs") is None


async def test_a_graph_may_change_its_mind_about_what_it_mirrors(
    graphs: Graphs, engine: Start, tmp_path: Path
) -> None:
    kubectl_apply(graphs, tmp_path, legacy())
    uid = graphs.create("shop", node("web", wanted()), adopt=explicit(web(), strategy="Mirror"))
    async with engine():
        await until(partial(graphs.is_ready, "shop"))
    async with engine() as running:
        graphs.patch("shop", {"spec": {"adopt": {"strategy": "TakeOwnership"}}})
        await until(partial(graphs.is_ready, "shop"))
        assert_all_ours(graphs, uid)
        assert graphs.phase("shop", "web") == "Ready"
        assert graphs.message("shop", "Adopted") == "1 object adopted"
        graphs.patch("shop", {"spec": {"adopt": {"strategy": "Mirror"}}})
        await until(lambda: graphs.is_ready("shop") and graphs.phase("shop", "web") == "Adopted")
        assert graphs.inventory("shop") == {}
        assert "pequod.io/graph" not in graphs.live(DEPLOYMENTS, "web")["metadata"]["labels"]
        running.journal.clear()
        graphs.delete("shop")
        await until(lambda: not graphs.exists("shop"))
        assert not really_written(running, "deployments")
    assert graphs.live(DEPLOYMENTS, "web")


async def test_a_graph_that_mirrors_an_object_is_not_the_heir_of_it(
    graphs: Graphs, engine: Start
) -> None:
    """What another graph lets go of is deleted: to mirror is not to ask for."""
    graphs.create("owner", node("a", config_map("a")), node("b", config_map("b")))
    async with engine():
        await until(partial(graphs.is_ready, "owner"))
        adopt = explicit(cm("a"), strategy="Mirror")
        graphs.create("looker", node("a", config_map("a")), adopt=adopt)
        await until(partial(graphs.is_ready, "looker"))
        graphs.change("owner", node("b", config_map("b")))
        await until(lambda: graphs.find("configmaps", "a") is None)


async def test_a_dry_run_tells_what_would_be_adopted_and_writes_nothing_of_the_graph(
    graphs: Graphs, engine: Start, tmp_path: Path
) -> None:
    kubectl_apply(graphs, tmp_path, legacy(), config_map("same", a="1"))
    before = graphs.live(DEPLOYMENTS, "web")
    uid = graphs.create(
        "shop",
        node("web", wanted()),
        node("same", config_map("same", a="1")),
        node("new", config_map("new")),
        node("other", config_map("other")),
        adopt=explicit(web(), cm("same"), cm("new"), cm("lost"), dryRun=True),
    )
    async with engine() as running:
        await until(lambda: graphs.reason("shop", "Adopted") == "DryRun")
        message = graphs.message("shop", "Adopted")
        assert "nothing of the graph is written until adopt.dryRun is taken away" in message
        assert f"ConfigMap/{graphs.namespace}/new does not exist and would be made" in message
        assert f"ConfigMap/{graphs.namespace}/lost is no node and was left alone" in message
        told = details(graphs, "web")
        assert told.startswith("would be adopted: ")
        place = "spec.template.spec.containers[name=app].env"
        assert 'metadata.annotations["tool/x"]: removed "1"' in told
        assert 'metadata.labels.old: removed "yes"' in told
        assert f'{place}[name=OLD]: removed {{"name":"OLD","value":"1"}}' in told
        assert f'{place}[name=KEPT].value: "1" -> "2"' in told
        assert "terminationGracePeriodSeconds" not in told, "defaults come back by themselves"
        assert details(graphs, "same").startswith("would be adopted: metadata")
        assert details(graphs, "other") == ""
        assert not really_written(running)
        assert graphs.status("shop")["phase"] == "Pending"
        assert graphs.inventory("shop") == {}
        assert_untouched(graphs, before)
        graphs.patch("shop", {"spec": {"adopt": {"dryRun": None}}})
        await until(partial(graphs.is_ready, "shop"))
        assert_all_ours(graphs, uid)
        assert graphs.find("configmaps", "other")


async def test_a_dry_run_tells_what_would_be_refused(
    graphs: Graphs, engine: Start, tmp_path: Path
) -> None:
    first = graphs.create("first", node("taken", config_map("taken")))
    kubectl_apply(graphs, tmp_path, legacy())
    scale = f"{graphs.path(DEPLOYMENTS, 'web')}/scale?fieldManager=autoscaler"
    assert graphs.api.patch(scale, {"spec": {"replicas": 1}}).code == 200
    async with engine():
        await until(partial(graphs.is_ready, "first"))
        nodes = [node("taken", config_map("taken")), node("web", wanted(replicas=0))]
        graphs.create("shop", *nodes, adopt=explicit(cm("taken"), web(), dryRun=True))
        await until(lambda: graphs.reason("shop", "Adopted") == "DryRun")
        belongs = f"would be refused: it belongs to another graph ({LABEL}={first})"
        assert details(graphs, "taken") == belongs
        assert "autoscaler manages .spec.replicas" in details(graphs, "web")
        assert managers(graphs.live(DEPLOYMENTS, "web")).keys() >= {"kubectl-client-side-apply"}


async def test_a_mirror_says_what_keeps_it_from_comparing(
    graphs: Graphs, engine: Start, api: Api
) -> None:
    """An object that the API server would not take is no reason to stop looking at it."""
    graphs.make("configmaps", config_map("web"))
    broken = config_map("web") | {"data": {"a": 1}}
    adopt = explicit(cm("web"), strategy="Mirror")
    graphs.create("shop", node("web", broken), adopt=adopt)
    async with engine():
        await until(partial(is_adopted, graphs, "shop"))
        assert details(graphs, "web").startswith("how it differs is not known: ConfigMap/")
        assert api.get(graphs.path("configmaps", "web")).body["data"] == {"a": "1"}
