"""Rule 10: an unknown is not an absence, and finalising ends all the same."""

import secrets
from collections.abc import Iterator
from functools import partial
from itertools import count

from clusters import Api
from graphs import TENANT, Graphs, Start, config_map, node, object_
from waiting import until

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def widget_kind(api: Api) -> tuple[str, str]:
    """A kind of the test's own: its group, and the name of its CRD."""
    group = f"g{secrets.token_hex(4)}.example.com"
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    crd = {
        "metadata": {"name": f"gadgets.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": "gadgets", "singular": "gadget", "kind": "Gadget"},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": schema},
                    "subresources": {"status": {}},
                }
            ],
        },
    }
    answer = api.create(CRDS, crd)
    assert answer.code == 201, answer.message
    name = answer.body["metadata"]["name"]
    api.kubectl("wait", "--for=condition=Established", f"crd/{name}")
    return group, name


def allow(graphs: Graphs, group: str, *, watch: bool) -> None:
    """Let the tenant write the kind, and perhaps the operator watch it."""
    rules = [{"apiGroups": [group], "resources": ["gadgets"], "verbs": ["*"]}]
    role = {"metadata": {"name": "gadgets"}, "rules": rules}
    rbac = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{graphs.namespace}"
    assert graphs.api.create(f"{rbac}/roles", role).code == 201
    binding = {
        "metadata": {"name": "gadgets"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "gadgets"},
        "subjects": [{"kind": "ServiceAccount", "name": TENANT, "namespace": graphs.namespace}],
    }
    assert graphs.api.create(f"{rbac}/rolebindings", binding).code == 201
    if watch:
        name = f"watch-{group}"
        seen = [{"apiGroups": [group], "resources": ["gadgets"], "verbs": ["list", "watch"]}]
        wide = "/apis/rbac.authorization.k8s.io/v1"
        role = {"metadata": {"name": name}, "rules": seen}
        assert graphs.api.create(f"{wide}/clusterroles", role).code == 201
        subject = {
            "kind": "ServiceAccount",
            "name": "pequod-operator",
            "namespace": "pequod-system",
        }
        binding = {
            "metadata": {"name": name},
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io",
                "kind": "ClusterRole",
                "name": name,
            },
            "subjects": [subject],
        }
        assert graphs.api.create(f"{wide}/clusterrolebindings", binding).code == 201


async def test_rule_10_a_kind_that_is_not_there_yet_fails_its_node_only(
    graphs: Graphs, engine: Start
) -> None:
    gadget = object_("nowhere.example.com/v1", "Gadget", "one")
    graphs.create("web", node("gadget", gadget), node("a", config_map("a")))
    async with engine():
        await until(lambda: graphs.phase("web", "a") == "Ready")
        await until(lambda: graphs.reason("web", "Applied") == "UnknownKind")
        assert "install its CRD" in graphs.message("web", "Applied")


async def test_rule_10_case_53_a_kind_that_was_removed_takes_its_objects_out_of_the_inventory(
    graphs: Graphs, engine: Start
) -> None:
    group, crd = widget_kind(graphs.api)
    allow(graphs, group, watch=True)
    gadget = node("gadget", object_(f"{group}/v1", "Gadget", "one"))
    graphs.create("web", gadget, node("a", config_map("a")), node("b", config_map("b")))
    async with engine():
        await until(partial(graphs.is_ready, "web"))
        graphs.api.call("DELETE", f"{CRDS}/{crd}")
        await until(lambda: graphs.api.get(f"{CRDS}/{crd}").code == 404)
        graphs.change("web", node("a", config_map("a")), node("b", config_map("b")))
        await until(lambda: "Gadget/one" not in graphs.inventory("web"))
        await until(partial(graphs.is_ready, "web"))


async def test_rule_10_a_kind_that_the_operator_may_not_watch_is_asked_for_as_the_tenant(
    graphs: Graphs, engine: Start
) -> None:
    group, _ = widget_kind(graphs.api)
    allow(graphs, group, watch=False)
    graphs.create("web", node("gadget", object_(f"{group}/v1", "Gadget", "one", spec={"a": 1})))
    async with engine() as running:
        await until(partial(graphs.is_ready, "web"))
        assert "cannot be watched" in graphs.message("web", "Healthy")
        about = running.journal.of(f"{group}/v1/namespaces")
        assert {one.user.rpartition(":")[2] for one in about} == {TENANT}
        graphs.delete("web")
        await until(lambda: not graphs.exists("web"))
    path = f"/apis/{group}/v1/namespaces/{graphs.namespace}/gadgets/one"
    assert graphs.api.get(path).code == 404


async def test_case_33_a_terminating_namespace_is_said_and_not_hammered(
    graphs: Graphs, engine: Start
) -> None:
    """And the graph does not hold the namespace up."""
    graphs.create("web", node("a", config_map("a")))
    async with engine() as running:
        await until(partial(graphs.is_ready, "web"))
        graphs.make("configmaps", config_map("held", metadata={"finalizers": ["example.com/x"]}))
        assert graphs.api.call("DELETE", f"/api/v1/namespaces/{graphs.namespace}").code == 200
        await until(lambda: not graphs.exists("web"))
        assert len(running.journal.writes("configmaps/a")) <= 12
    graphs.edit("configmaps", "held", {"metadata": {"finalizers": None}})


async def test_case_61_a_graph_whose_account_is_gone_is_given_up_after_a_while(
    graphs: Graphs, engine: Start
) -> None:
    graphs.create("web", node("a", config_map("a")))
    async with engine():
        await until(partial(graphs.is_ready, "web"))
    graphs.remove("serviceaccounts", TENANT)
    async with engine(abandon_after=2.0) as running:
        graphs.delete("web")
        await until(lambda: graphs.reason("web") == "AccountNotFound")
        assert graphs.find("configmaps", "a") is not None
        await until(partial(_poked_until_gone, graphs, count()))
        assert not [one for one in running.journal.writes() if one.method == "DELETE"]
        await until(lambda: any("web" in note for note in _abandoned(graphs)))
    assert graphs.find("configmaps", "a") is not None
    (note,) = [note for note in _abandoned(graphs) if f"{graphs.namespace}/web" in note]
    assert f"ConfigMap/{graphs.namespace}/a is left behind" in note


def _poked_until_gone(graphs: Graphs, looks: Iterator[int]) -> bool:
    """Have a graph looked at again now and then; not all the time, which would change it always."""
    if not graphs.exists("web"):
        return True
    if (look := next(looks)) % 50 == 0:
        graphs.api.patch(
            f"/apis/platform.pequod.io/v1alpha1/namespaces/{graphs.namespace}/resourcegraphs/web",
            {"metadata": {"annotations": {"poke": str(look)}}},
        )
    return False


def _abandoned(graphs: Graphs) -> list[str]:
    path = "/apis/events.k8s.io/v1/namespaces/pequod-system/events"
    items = graphs.api.get(path).body["items"]
    return [event["note"] for event in items if event["reason"] == "Abandoned"]


async def test_case_22_nothing_is_pruned_because_a_kind_cannot_be_listed(
    graphs: Graphs, engine: Start
) -> None:
    """The aggregated server of a group is away: what it holds is unknown, not gone."""
    service = {
        "metadata": {"name": f"v1.{(group := f'g{secrets.token_hex(4)}.example.com')}"},
        "spec": {
            "group": group,
            "version": "v1",
            "groupPriorityMinimum": 100,
            "versionPriority": 100,
            "service": {"name": "nowhere", "namespace": graphs.namespace},
            "insecureSkipTLSVerify": True,
        },
    }
    gadget = node("gadget", object_(f"{group}/v1", "Gadget", "one"))
    graphs.create("web", node("a", config_map("a")), gadget)
    path = "/apis/apiregistration.k8s.io/v1/apiservices"
    assert graphs.api.create(path, service).code == 201
    try:
        async with engine():
            await until(lambda: graphs.reason("web") in {"ServerError", "UnknownKind"})
            graphs.change("web", node("a", config_map("a")))
            await until(partial(graphs.is_ready, "web"))
    finally:
        graphs.api.call("DELETE", f"{path}/{service['metadata']['name']}")  # type: ignore[index]


async def test_a_version_that_is_no_longer_served_is_not_a_kind_that_is_gone(
    graphs: Graphs, engine: Start
) -> None:
    """The object lives on in another version, and is deleted through that one."""
    group, crd = widget_kind(graphs.api)
    allow(graphs, group, watch=True)
    spec = graphs.api.get(f"{CRDS}/{crd}").body["spec"]
    both = [spec["versions"][0] | {"storage": False}, spec["versions"][0] | {"name": "v2"}]
    assert graphs.api.patch(f"{CRDS}/{crd}", {"spec": {"versions": both}}).code == 200
    graphs.create("web", node("gadget", object_(f"{group}/v1", "Gadget", "one")))
    path = f"/apis/{group}/v2/namespaces/{graphs.namespace}/gadgets/one"
    async with engine():
        await until(partial(graphs.is_ready, "web"))
        assert graphs.api.get(path).code == 200
    only = [both[0] | {"served": False}, both[1]]
    assert graphs.api.patch(f"{CRDS}/{crd}", {"spec": {"versions": only}}).code == 200
    await until(lambda: _versions(graphs, group) == ["v2"])
    graphs.delete("web")
    async with engine():
        await until(lambda: not graphs.exists("web"))
    assert graphs.api.get(path).code == 404


def _versions(graphs: Graphs, group: str) -> list[str]:
    return [one["version"] for one in graphs.api.get(f"/apis/{group}").body["versions"]]
