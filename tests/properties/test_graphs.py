"""Whatever a graph looks like: an order that respects it, or everything that is wrong with it."""

from itertools import pairwise
from typing import Any

import msgspec
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from pequod.api.graph import Node
from pequod.graph.dag import CycleFoundError, levels, ordered, reversed_edges
from pequod.graph.desired import UnusableObjectError, desired, split_secret, with_sensitive
from pequod.graph.model import GRAPH_LABEL, InvalidGraphError, Ref, checked
from pequod.graph.reach import Reach
from pequod.kube.kinds import Kind

Edges = dict[str, tuple[str, ...]]

SCALARS = st.none() | st.booleans() | st.integers(-5, 5) | st.floats(-2, 2) | st.text(max_size=8)
JSON = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)
MAPS = st.dictionaries(st.text(max_size=5), JSON, max_size=3)


def built(choices: list[int]) -> Edges:
    """Nodes in any order, each depending on some of those that a hidden order has before it."""
    edges: Edges = {}
    for index, choice in enumerate(choices):
        chosen = {(choice >> (6 * i)) % index for i in range(choice % 4)} if index else set()
        edges[f"n{index}"] = tuple(f"n{other}" for other in sorted(chosen))
    mixed = sorted(edges, key=lambda node: choices[int(node[1:])] * 7919 % 101)
    return {node: edges[node] for node in mixed}


def acyclic(most: int = 60) -> st.SearchStrategy[Edges]:
    return st.lists(st.integers(0, 2**20), max_size=most).map(built)


@given(acyclic())
@settings(max_examples=40, deadline=None)
def test_every_node_comes_once_and_after_what_it_depends_on(edges: Edges) -> None:
    order = ordered(edges)
    assert sorted(order) == sorted(edges)
    place = {node: index for index, node in enumerate(order)}
    assert all(place[other] < place[node] for node in edges for other in edges[node])


@given(acyclic())
@settings(max_examples=40, deadline=None)
def test_a_level_is_one_more_than_the_deepest_below_it(edges: Edges) -> None:
    found = levels(edges)
    for node, others in edges.items():
        assert found[node] == max((found[other] + 1 for other in others), default=0)


@given(acyclic())
@settings(max_examples=40, deadline=None)
def test_turning_edges_round_twice_changes_nothing(edges: Edges) -> None:
    turned = reversed_edges(edges)
    assert {(a, b) for a in edges for b in edges[a]} == {(b, a) for a in turned for b in turned[a]}
    again = reversed_edges(turned)
    assert {node: set(others) for node, others in again.items()} == {
        node: set(others) for node, others in edges.items()
    }


@given(acyclic(20), st.data())
@settings(max_examples=40, deadline=None)
def test_a_circle_is_a_walk_along_the_edges_that_ends_where_it_began(
    edges: Edges, data: st.DataObject
) -> None:
    assume(edges)
    order = ordered(edges)
    walk = data.draw(st.lists(st.sampled_from(order), min_size=1, max_size=5, unique=True))
    circular = dict(edges)
    for node, other in zip(walk, [*walk[1:], walk[0]], strict=True):
        circular[node] = (*circular[node], other)
    with pytest.raises(CycleFoundError) as caught:
        ordered(circular)
    cycle = caught.value.cycle
    assert cycle[0] == cycle[-1]
    assert len(set(cycle)) == len(cycle) - 1
    assert all(after in circular[before] for before, after in pairwise(cycle))


NAMES = st.text(
    st.characters(exclude_characters="/%", exclude_categories=["Cs", "Cc"]), min_size=1, max_size=30
)
LABELS = st.from_regex(r"\A[a-z0-9]([a-z0-9-]{0,10}[a-z0-9])?\Z")
GROUPS = st.just("") | st.from_regex(r"\A[a-z0-9]{1,5}(\.[a-z0-9-]{1,5}){0,2}\Z")
KINDS = st.from_regex(r"\A[A-Z][A-Za-z0-9]{0,10}\Z")


@given(GROUPS, KINDS, st.just("") | LABELS, NAMES)
def test_an_id_names_one_object_whatever_it_is_called(
    group: str, kind: str, namespace: str, name: str
) -> None:
    ref = Ref(group, kind, namespace, name)
    assert Ref.of(ref.id) == ref


@given(st.lists(st.tuples(st.just("") | LABELS, NAMES), min_size=2, max_size=2, unique=True))
def test_two_objects_never_have_the_same_id(places: list[tuple[str, str]]) -> None:
    one, other = (Ref("apps", "Deployment", namespace, name) for namespace, name in places)
    assert one.id != other.id


WORKLOADS = st.sampled_from(
    ["Pod", "PodTemplate", "Deployment", "CronJob", "Job", "Secret", "ConfigMap", "ServiceAccount"]
)
METADATA = st.fixed_dictionaries(
    {"name": st.just("it") | NAMES},
    optional={
        "namespace": st.sampled_from(["shop", "bank", "", None]) | JSON,
        "labels": st.dictionaries(st.sampled_from(["app", GRAPH_LABEL]), st.text(max_size=3))
        | JSON,
        "annotations": st.dictionaries(st.text(max_size=3), st.text(max_size=3)) | JSON,
        "ownerReferences": JSON,
        "finalizers": JSON,
        "generateName": JSON,
    },
)
PODS = st.fixed_dictionaries(
    {}, optional={"serviceAccountName": JSON, "serviceAccount": st.just("x") | JSON}
)
SPECS = st.fixed_dictionaries(
    {},
    optional={
        "template": st.fixed_dictionaries({"spec": PODS | JSON}) | JSON,
        "jobTemplate": JSON,
        "serviceAccountName": JSON,
    },
)
OBJECTS = st.fixed_dictionaries(
    {
        "apiVersion": st.sampled_from(["v1", "apps/v1", "batch/v1"]) | JSON,
        "kind": WORKLOADS | JSON,
        "metadata": METADATA | JSON,
    },
    optional={
        "spec": SPECS | JSON,
        "template": JSON,
        "data": JSON,
        "stringData": JSON,
        "type": st.just("kubernetes.io/service-account-token") | JSON,
        "status": JSON,
        "items": JSON,
    },
)
REACH = Reach(namespace="shop", confined=True, operator_namespace="pequod")


@given(st.lists(st.tuples(st.sampled_from("abc"), OBJECTS | MAPS), max_size=2))
@settings(max_examples=80, deadline=None)
def test_any_objects_are_a_plan_that_can_be_sent_or_are_refused_with_reasons(
    pairs: list[tuple[str, dict[str, Any]]],
) -> None:
    nodes = [Node(id=id_, object=object_) for id_, object_ in pairs]
    before = repr(nodes)
    try:
        plan = checked(nodes)
    except InvalidGraphError:
        assert repr(nodes) == before
        return
    for node in plan:
        group, _, version = node.object["apiVersion"].rpartition("/")
        kind = Kind(group, version, node.object["kind"], "them")
        made = desired(node.object, kind, namespace="shop", graph="g")
        assert Ref.of(made.ref.id) == made.ref
        assert made.body["metadata"]["labels"][GRAPH_LABEL] == "g"
        list(REACH.problems(made))
    assert repr(nodes) == before


PARTS = st.dictionaries(
    st.sampled_from(["spec", "data", "type"]),
    st.dictionaries(st.sampled_from("abc"), SCALARS | MAPS, max_size=2) | SCALARS,
    max_size=2,
)


@given(PARTS, PARTS | MAPS)
@settings(max_examples=80, deadline=None)
def test_a_sensitive_part_only_ever_adds(object_: dict[str, Any], part: dict[str, Any]) -> None:
    before = repr(object_)
    try:
        made = with_sensitive(object_, msgspec.json.encode(part), where="it")
    except UnusableObjectError:
        return
    finally:
        assert repr(object_) == before
    assert kept(object_, made)
    assert kept(part, made)


def kept(before: Any, after: Any) -> bool:  # noqa: ANN401 -- any JSON
    if isinstance(before, dict) and isinstance(after, dict):
        return all(name in after and kept(before[name], after[name]) for name in before)
    return bool(before == after)


SECRETS = st.fixed_dictionaries(
    {"apiVersion": st.just("v1"), "kind": st.just("Secret"), "metadata": MAPS},
    optional={
        "type": st.text(max_size=5),
        "immutable": st.booleans(),
        "data": st.dictionaries(st.text(max_size=5), st.text(max_size=5), min_size=1, max_size=3),
        "stringData": st.dictionaries(
            st.text(max_size=5), st.text(max_size=5), min_size=1, max_size=3
        ),
    },
)


@given(SECRETS)
def test_what_is_split_off_a_secret_makes_it_whole_again(secret: dict[str, Any]) -> None:
    before = repr(secret)
    rest, part = split_secret(secret)
    assert repr(secret) == before
    assert not rest.keys() & {"data", "stringData"}
    if part is None:
        assert rest == secret
    else:
        assert with_sensitive(rest, part, where="it") == secret
