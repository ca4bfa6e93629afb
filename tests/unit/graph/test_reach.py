"""How far a graph reaches when it is the operator's own account that acts for it."""

from typing import Any, Literal

import pytest

from pequod.api.graph import ApplyPolicy, Node
from pequod.graph.desired import desired
from pequod.graph.reach import PRIVILEGED_GROUPS, Reach, made_accounts
from pequod.kube.kinds import CONFIG_MAPS, NAMESPACES, SECRETS, SERVICE_ACCOUNTS, Kind

Object = dict[str, Any]
Mode = Literal["Apply", "Create", "Adopt", "Observe"]

CONFINED = Reach(
    namespace="shop", confined=True, operator_namespace="pequod", accounts={"made": "node-of-made"}
)
FREE = Reach(namespace="shop", confined=False, operator_namespace="pequod")
PODS = Kind("", "v1", "Pod", "pods")
TEMPLATED = ("spec", "template", "spec")
WORKLOADS: list[tuple[Kind, tuple[str, ...]]] = [
    (PODS, ("spec",)),
    (Kind("", "v1", "PodTemplate", "podtemplates"), ("template", "spec")),
    (Kind("", "v1", "ReplicationController", "replicationcontrollers"), TEMPLATED),
    (Kind("apps", "v1", "Deployment", "deployments"), TEMPLATED),
    (Kind("apps", "v1", "StatefulSet", "statefulsets"), TEMPLATED),
    (Kind("apps", "v1", "DaemonSet", "daemonsets"), TEMPLATED),
    (Kind("apps", "v1", "ReplicaSet", "replicasets"), TEMPLATED),
    (Kind("batch", "v1", "Job", "jobs"), TEMPLATED),
    (Kind("batch", "v1", "CronJob", "cronjobs"), ("spec", "jobTemplate", *TEMPLATED)),
]


def object_of(kind: Kind, *, namespace: str | None = None, **parts: object) -> Object:
    metadata = {"name": "it"} | ({"namespace": namespace} if namespace else {})
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, **parts}


def said(reach: Reach, object_: Object, kind: Kind) -> list[str]:
    return list(reach.problems(desired(object_, kind, namespace=reach.namespace, graph="g")))


def workload(kind: Kind, path: tuple[str, ...], pod: object) -> Object:
    inner = pod
    for name in reversed(path):
        inner = {name: inner}
    assert isinstance(inner, dict)
    return object_of(kind) | inner


def test_what_is_in_the_graphs_own_namespace_is_in_reach() -> None:
    assert said(CONFINED, object_of(CONFIG_MAPS), CONFIG_MAPS) == []
    assert said(CONFINED, object_of(CONFIG_MAPS, namespace="shop"), CONFIG_MAPS) == []
    assert said(CONFINED, object_of(SECRETS, type="Opaque"), SECRETS) == []


def test_cluster_scoped_objects_are_out_of_reach() -> None:
    assert said(CONFINED, object_of(NAMESPACES), NAMESPACES) == [
        "Namespace/it is cluster-scoped: name a serviceAccountName that may do it"
    ]
    assert said(FREE, object_of(NAMESPACES), NAMESPACES) == []


def test_other_namespaces_are_out_of_reach() -> None:
    elsewhere = object_of(CONFIG_MAPS, namespace="bank")
    assert said(CONFINED, elsewhere, CONFIG_MAPS) == [
        "ConfigMap/bank/it is outside of the namespace shop: "
        "name a serviceAccountName that may do it"
    ]
    assert said(FREE, elsewhere, CONFIG_MAPS) == []


@pytest.mark.parametrize("group", sorted(PRIVILEGED_GROUPS))
def test_what_grants_rights_is_out_of_reach(group: str) -> None:
    kind = Kind(group, "v1", "Anything", "anythings")
    (found,) = said(CONFINED, object_of(kind), kind)
    assert found.startswith(f"Anything/shop/it is of the group {group}, which grants rights: ")
    assert said(FREE, object_of(kind), kind) == []


@pytest.mark.parametrize(
    "group",
    [
        "rbac.authorization.k8s.io",
        "admissionregistration.k8s.io",
        "certificates.k8s.io",
    ],
)
def test_the_groups_that_the_api_promises_are_privileged(group: str) -> None:
    assert group in PRIVILEGED_GROUPS


@pytest.mark.parametrize(("kind", "path"), WORKLOADS, ids=lambda one: getattr(one, "kind", ""))
@pytest.mark.parametrize("field", ["serviceAccountName", "serviceAccount"])
def test_no_workload_runs_as_somebody_whom_the_graph_does_not_make(
    kind: Kind, path: tuple[str, ...], field: str
) -> None:
    (found,) = said(CONFINED, workload(kind, path, {field: "foreign"}), kind)
    assert found.startswith(f"{kind.kind}/shop/it would run as ServiceAccount foreign, which the")
    assert said(FREE, workload(kind, path, {field: "foreign"}), kind) == []
    for own in ("made", "default", "", None):
        assert said(CONFINED, workload(kind, path, {field: own}), kind) == []


@pytest.mark.parametrize(("kind", "path"), WORKLOADS, ids=lambda one: getattr(one, "kind", ""))
@pytest.mark.parametrize("pod", [{}, None, [], "x", 5])
def test_a_workload_without_an_account_runs_as_default(
    kind: Kind, path: tuple[str, ...], pod: object
) -> None:
    assert said(CONFINED, workload(kind, path, pod), kind) == []
    assert said(CONFINED, object_of(kind), kind) == []


def test_the_old_name_of_the_field_hides_nothing() -> None:
    pod = object_of(PODS, spec={"serviceAccountName": "default", "serviceAccount": "foreign"})
    assert "ServiceAccount foreign" in said(CONFINED, pod, PODS)[0]
    pod = object_of(PODS, spec={"serviceAccountName": "made", "serviceAccount": "foreign"})
    assert "ServiceAccount foreign, made" in said(CONFINED, pod, PODS)[0]


@pytest.mark.parametrize("odd", [["foreign"], {"name": "foreign"}, 5, True])
def test_an_account_of_another_shape_is_no_way_out(odd: object) -> None:
    assert len(said(CONFINED, object_of(PODS, spec={"serviceAccountName": odd}), PODS)) == 1


def token(**annotations: str) -> Object:
    made = object_of(SECRETS, type="kubernetes.io/service-account-token")
    made["metadata"]["annotations"] = {
        f"kubernetes.io/{name.replace('_', '-')}": value for name, value in annotations.items()
    }
    return made


def test_no_token_is_made_for_somebody_whom_the_graph_does_not_make() -> None:
    foreign = token(**{"service_account.name": "foreign"})
    assert "ServiceAccount foreign" in said(CONFINED, foreign, SECRETS)[0]
    assert said(FREE, foreign, SECRETS) == []
    for own in ("made", "default"):
        assert said(CONFINED, token(**{"service_account.name": own}), SECRETS) == []


def test_a_token_that_does_not_say_for_whom_is_out_of_reach() -> None:
    assert len(said(CONFINED, token(), SECRETS)) == 1
    bare = object_of(SECRETS, type="kubernetes.io/service-account-token")
    assert len(said(CONFINED, bare, SECRETS)) == 1


@pytest.mark.parametrize("reach", [CONFINED, FREE])
def test_the_operators_namespace_is_closed_to_everybody_else(reach: Reach) -> None:
    inside = object_of(CONFIG_MAPS, namespace="pequod")
    assert said(reach, inside, CONFIG_MAPS) == [
        "ConfigMap/pequod/it would be in the operator's namespace, which is closed to graphs"
    ]


@pytest.mark.parametrize("confined", [True, False])
def test_a_graph_in_the_operators_namespace_reaches_its_own(confined: bool) -> None:  # noqa: FBT001 -- a table
    reach = Reach(namespace="pequod", confined=confined, operator_namespace="pequod")
    assert said(reach, object_of(CONFIG_MAPS), CONFIG_MAPS) == []


@pytest.mark.parametrize("group", ["platform.pequod.io", "ajj.io"])
def test_what_acts_for_others_acts_for_accounts_of_the_graph_only(group: str) -> None:
    """A graph that makes a graph, or an Application, says who that one is to be."""
    kind = Kind(group, "v1", "Anything", "anythings")
    for own in ("made", "default", None):
        assert said(CONFINED, object_of(kind, spec={"serviceAccountName": own}), kind) == []
    foreign = object_of(kind, spec={"serviceAccountName": "foreign"})
    assert "ServiceAccount foreign" in said(CONFINED, foreign, kind)[0]
    assert said(FREE, foreign, kind) == []


def test_a_graph_does_not_pretend_that_another_one_has_a_source() -> None:
    kind = Kind("platform.pequod.io", "v1alpha1", "ResourceGraph", "resourcegraphs")
    forged = object_of(kind, spec={"sourceRef": {"kind": "Transform", "name": "it"}})
    (found,) = said(CONFINED, forged, kind)
    assert found.startswith("ResourceGraph/shop/it has a sourceRef")


def test_the_accounts_of_a_graph_are_those_that_it_makes_in_its_namespace() -> None:
    def node(id_: str, mode: Mode = "Apply", **parts: object) -> Node:
        object_ = object_of(SERVICE_ACCOUNTS) | {"metadata": {"name": id_}} | parts
        return Node(id=f"n-{id_}", object=object_, apply_policy=ApplyPolicy(mode=mode))

    nodes = [
        node("a"),
        node("once", "Create"),
        node("here", metadata={"name": "here", "namespace": "shop"}),
        node("elsewhere", metadata={"name": "elsewhere", "namespace": "bank"}),
        node("theirs", "Observe"),
        node("before", "Adopt"),
        node("other", apiVersion="example.org/v1"),
        node("secret", kind="Secret"),
    ]
    assert made_accounts(nodes, "shop") == {"a": "n-a", "once": "n-once", "here": "n-here"}
    assert made_accounts([], "shop") == {}


def test_a_workload_waits_for_the_account_that_the_graph_makes() -> None:
    """An account of that name may be somebody else's until then."""

    def maker(reach: Reach, account: str) -> str:
        pod = object_of(PODS, spec={"serviceAccountName": account})
        return reach.maker(desired(pod, PODS, namespace="shop", graph="g"))

    assert maker(CONFINED, "made") == "node-of-made"
    assert maker(CONFINED, "default") == ""
    assert maker(FREE, "made") == ""
