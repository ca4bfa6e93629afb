"""Rule 7: one identity for everything that a graph causes, and how far it reaches."""

from functools import partial

from clusters import Api
from graphs import TENANT, Graphs, Start, config_map, deployment, node, object_
from pequod.controllers.platform.identity import IdentityRules
from pequod.controllers.platform.limits import NamespaceLimits
from waiting import until

RBAC = "rbac.authorization.k8s.io"
CONFINED = IdentityRules(mode="confined")
IMPERSONATE = IdentityRules(mode="impersonate")
TRUSTED = IdentityRules(mode="trusted")


def source(graphs: Graphs) -> dict[str, str]:
    """A live source, so that a graph need not name an account."""
    path = f"/apis/platform.pequod.io/v1alpha1/namespaces/{graphs.namespace}/transforms"
    body = {
        "apiVersion": "platform.pequod.io/v1alpha1",
        "kind": "Transform",
        "metadata": {"name": "source"},
        "spec": {"cueRef": {"type": "embedded", "ref": "webservice"}, "input": {}},
    }
    made = graphs.api.create(path, body)
    if made.code == 409:
        made = graphs.api.get(f"{path}/source")
    return {
        "apiVersion": "platform.pequod.io/v1alpha1",
        "kind": "Transform",
        "name": "source",
        "namespace": graphs.namespace,
        "uid": made.body["metadata"]["uid"],
    }


def sourced(graphs: Graphs, as_operator: Api, name: str, *nodes: dict[str, object]) -> None:
    """A graph as a front end writes it."""
    other = Graphs(as_operator, graphs.namespace, as_operator)
    other.create(name, *nodes, sourceRef=source(graphs), serviceAccountName=None)


async def test_rule_7_everything_is_done_in_the_accounts_name(
    graphs: Graphs, engine: Start
) -> None:
    """Case 97: reads, writes, dry runs and deletes; the shared caches alone are the operator's."""
    graphs.make("configmaps", config_map("taken"))
    graphs.create(
        "web",
        node("a", config_map("a")),
        node("app", deployment("app"), dependsOn=["a"]),
        node("taken", config_map("taken")),
        node("seen", config_map("taken"), applyPolicy={"mode": "Observe"})
        | {"object": config_map("seen")},
    )
    async with engine() as running:
        await until(lambda: graphs.reason("web", "Applied") == "AlreadyExists")
        graphs.edit("configmaps", "a", {"data": {"a": "evil"}})
        await until(lambda: graphs.live("configmaps", "a")["data"] == {"a": "1"})
        graphs.delete("web")
        await until(lambda: not graphs.exists("web"))
        tenant = f"system:serviceaccount:{graphs.namespace}:{TENANT}"
        place = f"/namespaces/{graphs.namespace}/"
        for one in running.journal.asked:
            about_children = place in one.path and "/configmaps" in one.path
            about_children |= place in one.path and "/deployments" in one.path
            if about_children or "selfsubject" in one.path:
                assert one.user == tenant, one
        assert running.journal.writes()


async def test_rule_7_a_graph_that_nobody_answers_for_is_not_executed(
    graphs: Graphs, as_operator: Api, engine: Start
) -> None:
    graphs.create("by-hand", node("a", config_map("a")), serviceAccountName=None)
    forged = source(graphs) | {"uid": "6f1c9d5e-6b8e-4d37-9f0a-3f2f6f1f8a11"}
    other = Graphs(as_operator, graphs.namespace, as_operator)
    other.create("forged", node("b", config_map("b")), sourceRef=forged, serviceAccountName=None)
    async with engine() as running:
        for name in ("by-hand", "forged"):
            await until(lambda name=name: graphs.reason(name) == "NoIdentity")  # type: ignore[misc]
            assert graphs.condition(name, "Stalled")["status"] == "True"
            assert "serviceAccountName" in graphs.message(name)
        assert not running.journal.writes()


async def test_confined_graphs_of_a_source_stay_in_their_namespace(
    graphs: Graphs, as_operator: Api, engine: Start
) -> None:
    """Case 91, and every problem is named at once."""
    elsewhere = config_map("a", metadata={"namespace": "default"})
    role = object_(f"{RBAC}/v1", "Role", "role", rules=[])
    wide = object_("v1", "Namespace", "wide")
    stranger = deployment("stranger")
    stranger["spec"]["template"]["spec"]["serviceAccountName"] = "cluster-admin"
    nodes = (
        node("elsewhere", elsewhere),
        node("role", role),
        node("wide", wide),
        node("stranger", stranger),
        node("fine", config_map("fine")),
    )
    sourced(graphs, as_operator, "web", *nodes)
    async with engine(identity=CONFINED) as running:
        await until(lambda: graphs.reason("web") == "OutOfReach")
        message = graphs.message("web")
        for id_ in ("elsewhere", "role", "wide", "stranger"):
            assert f"node {id_}:" in message
        assert "fine" not in message
        assert not running.journal.writes()


async def test_confined_graphs_use_the_operators_account_within_reach(
    graphs: Graphs, as_operator: Api, engine: Start
) -> None:
    account = object_("v1", "ServiceAccount", "runner")
    app = deployment("app")
    app["spec"]["template"]["spec"]["serviceAccountName"] = "runner"
    sourced(graphs, as_operator, "web", node("runner", account), node("app", app))
    async with engine(identity=CONFINED) as running:
        await until(partial(graphs.is_ready, "web"))
        assert {one.user for one in running.journal.writes()} == {""}


async def test_impersonated_graphs_are_the_namespaces_account_and_all_denials_are_told_together(
    graphs: Graphs, as_operator: Api, engine: Start
) -> None:
    sourced(graphs, as_operator, "web", node("a", config_map("a")), node("app", deployment("app")))
    async with engine(identity=IMPERSONATE) as running:
        await until(lambda: graphs.reason("web", "Applied") == "Forbidden")
        message = graphs.message("web", "Applied")
        assert f"ServiceAccount {graphs.namespace}/default may not" in message
        assert "create, delete, patch configmaps" in message
        assert "create, delete, patch deployments.apps" in message
        assert not running.journal.writes()
        binding = {
            "metadata": {"name": "default-admin"},
            "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "admin"},
            "subjects": [
                {"kind": "ServiceAccount", "name": "default", "namespace": graphs.namespace}
            ],
        }
        path = f"/apis/{RBAC}/v1/namespaces/{graphs.namespace}/rolebindings"
        assert graphs.api.create(path, binding).code == 201
        graphs.patch("web", {"metadata": {"annotations": {"poke": "1"}}})
        await until(partial(graphs.is_ready, "web"))
        user = f"system:serviceaccount:{graphs.namespace}:default"
        assert {one.user for one in running.journal.writes()} == {user}


async def test_trusted_graphs_are_not_confined(
    graphs: Graphs, as_operator: Api, engine: Start
) -> None:
    """The operator's own rights are the limit: here, no other namespace is closed to it."""
    other = f"{graphs.namespace}-other"
    assert graphs.api.create("/api/v1/namespaces", {"metadata": {"name": other}}).code == 201
    there = config_map("there", metadata={"namespace": other})
    sourced(graphs, as_operator, "web", node("there", there))
    async with engine(identity=TRUSTED):
        await until(partial(graphs.is_ready, "web"))
        assert graphs.api.get(f"/api/v1/namespaces/{other}/configmaps/there").code == 200
        graphs.delete("web")
        await until(lambda: not graphs.exists("web"))
        assert graphs.api.get(f"/api/v1/namespaces/{other}/configmaps/there").code == 404


async def test_the_operators_namespace_is_closed_to_everybody(
    graphs: Graphs, engine: Start
) -> None:
    inside = config_map("inside", metadata={"namespace": "pequod-system"})
    graphs.create("web", node("inside", inside))
    async with engine():
        await until(lambda: graphs.reason("web") == "OutOfReach")
    assert "operator's namespace" in graphs.message("web")


async def test_case_96_an_account_that_does_not_exist_is_not_impersonated(
    graphs: Graphs, engine: Start
) -> None:
    """Impersonating it would work: RBAC knows names only."""
    graphs.create("web", node("a", config_map("a")), serviceAccountName="nobody")
    async with engine() as running:
        await until(lambda: graphs.reason("web", "Applied") == "AccountNotFound")
        assert not running.journal.writes()


async def test_case_31_rights_that_are_revoked_in_between_stop_the_graph_and_lose_nothing(
    graphs: Graphs, engine: Start
) -> None:
    graphs.create("web", node("a", config_map("a")), node("b", config_map("b")))
    async with engine() as running:
        await until(partial(graphs.is_ready, "web"))
        bindings = f"/apis/{RBAC}/v1/namespaces/{graphs.namespace}/rolebindings"
        assert graphs.api.call("DELETE", f"{bindings}/{TENANT}-admin").code == 200
        graphs.change("web", node("a", config_map("a", a="2")), node("c", config_map("c")))
        await until(lambda: graphs.reason("web", "Applied") == "Forbidden")
        await graphs_quiet(graphs, "web")
        assert {"ConfigMap/a", "ConfigMap/b"} <= set(graphs.inventory("web"))
        assert graphs.find("configmaps", "b") is not None
        assert not [one for one in running.journal.writes() if one.method == "DELETE"]


async def graphs_quiet(graphs: Graphs, name: str) -> None:
    """A graph that says why it does not go on."""
    assert graphs.status(name)["phase"] == "Failed"


async def test_a_namespace_has_room_for_so_many_graphs_and_objects(
    graphs: Graphs, engine: Start
) -> None:
    graphs.create("a-first", node("a", config_map("a")))
    graphs.create("b-second", node("b", config_map("b")), node("c", config_map("c")))
    graphs.create("c-third", node("d", config_map("d")))
    async with engine(limits=NamespaceLimits(graphs=2)):
        await until(partial(graphs.is_ready, "a-first"))
        await until(partial(graphs.is_ready, "b-second"))
        await until(lambda: graphs.reason("c-third") == "LimitExceeded")
        assert "may have 2 graphs" in graphs.message("c-third")
    async with engine(limits=NamespaceLimits(objects=3)):
        await until(lambda: "may have 3 objects" in graphs.message("c-third"))
        assert graphs.is_ready("b-second")
    async with engine():
        graphs.patch("c-third", {"metadata": {"annotations": {"poke": "1"}}})
        await until(partial(graphs.is_ready, "c-third"))


async def test_confined_graphs_do_not_even_look_outside(
    graphs: Graphs, as_operator: Api, engine: Start
) -> None:
    """The operator may read everywhere; a graph must not, by asking it to."""
    outside = config_map("extension-apiserver-authentication", metadata={"namespace": "default"})
    looks = node("looks", outside, applyPolicy={"mode": "Observe"})
    sourced(graphs, as_operator, "web", looks)
    async with engine(identity=CONFINED) as running:
        await until(lambda: graphs.reason("web") == "OutOfReach")
        assert not running.journal.of("extension-apiserver-authentication")


async def test_confined_pods_use_accounts_only_that_the_graph_has_made(
    graphs: Graphs, as_operator: Api, engine: Start
) -> None:
    """Naming an account as a node is not making it: it may be there, and somebody else's."""
    privileged = object_("v1", "ServiceAccount", "privileged")
    graphs.make("serviceaccounts", privileged)
    app = deployment("app")
    app["spec"]["template"]["spec"]["serviceAccountName"] = "privileged"
    observed = node("account", privileged, applyPolicy={"mode": "Observe"})
    sourced(graphs, as_operator, "observed", observed, node("app", app))
    other = deployment("other")
    other["spec"]["template"]["spec"]["serviceAccountName"] = "privileged"
    sourced(graphs, as_operator, "taken", node("account", privileged), node("other", other))
    async with engine(identity=CONFINED) as running:
        await until(lambda: graphs.reason("observed") == "OutOfReach")
        await until(lambda: graphs.reason("taken", "Applied") == "AlreadyExists")
        await until(lambda: graphs.phase("taken", "other") == "Pending")
        assert not running.journal.writes("deployments")


async def test_an_agreement_on_the_source_is_one_for_its_graph(
    graphs: Graphs, as_operator: Api, engine: Start
) -> None:
    names = ("a", "b", "c")
    sourced(graphs, as_operator, "web", *(node(name, config_map(name)) for name in names))
    async with engine(identity=CONFINED):
        await until(partial(graphs.is_ready, "web"))
        operators = Graphs(as_operator, graphs.namespace, as_operator)
        operators.change("web", node("a", config_map("a")))
        await until(lambda: graphs.reason("web", "Pruned") == "PruneBlocked")
        message = graphs.message("web", "Pruned")
        assert "annotate --overwrite transform" in message
        revision = message.rpartition("=")[2].rstrip("`")
        path = f"/apis/platform.pequod.io/v1alpha1/namespaces/{graphs.namespace}/transforms/source"
        agreed = {"metadata": {"annotations": {"pequod.io/acknowledge-prune": revision}}}
        assert graphs.api.patch(path, agreed).code == 200
        graphs.patch("web", {"metadata": {"annotations": {"poke": "1"}}})
        await until(partial(graphs.is_ready, "web"))


async def test_case_33_a_quota_stops_its_own_node_only(graphs: Graphs, engine: Start) -> None:
    """The API server answers 403 to that as well, which says nothing about the others."""
    quota = {"metadata": {"name": "none"}, "spec": {"hard": {"count/services": "0"}}}
    graphs.make("resourcequotas", quota)
    path = graphs.path("resourcequotas", "none")
    await until(lambda: "hard" in graphs.api.get(path).body.get("status", {}))
    service = object_("v1", "Service", "web", spec={"ports": [{"port": 80}]})
    others = [node(f"n{number}", config_map(f"n{number}")) for number in range(20)]
    graphs.create("web", node("service", service), *others)
    async with engine():
        await until(lambda: graphs.reason("web", "Applied") == "Forbidden")
        assert "exceeded quota" in graphs.message("web", "Applied")
        await until(lambda: all(graphs.phase("web", f"n{n}") == "Ready" for n in range(20)))
