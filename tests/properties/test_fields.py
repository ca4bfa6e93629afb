"""Our fields are compared with themselves, and nothing else matters; whatever stands there."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any

import msgspec
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from pequod.graph.child import child, reader
from pequod.graph.digests import Digests
from pequod.graph.fields import managers, our_fields, owns, projected

DIGESTS = Digests(bytes(32))
OURS = "pequod-operator"

SCALARS = st.none() | st.booleans() | st.integers(-9, 9) | st.floats(-2, 2) | st.text(max_size=6)
JSON = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=8,
)


@dataclass(frozen=True)
class Leaf:
    """A value that has one owner: a scalar, or something atomic."""

    value: Any
    ours: bool

    def shown(self, _mix: Random) -> Any:  # noqa: ANN401 -- any JSON
        return self.value

    def fields(self) -> dict[str, Any] | None:
        return {} if self.ours else None


@dataclass(frozen=True)
class Map:
    """A granular map."""

    items: dict[str, Leaf | Map | Keyed | Bag]

    def shown(self, mix: Random) -> dict[str, Any]:
        return {name: item.shown(mix) for name, item in self.items.items()}

    def fields(self) -> dict[str, Any] | None:
        found = {f"f:{name}": item.fields() for name, item in self.items.items()}
        return {step: tree for step, tree in found.items() if tree is not None} or None


@dataclass(frozen=True)
class Keyed:
    """A list whose items are told apart by their name, and have no order of their own."""

    items: dict[str, Map]

    def shown(self, mix: Random) -> list[Any]:
        shown = [item.shown(mix) | {"name": name} for name, item in self.items.items()]
        mix.shuffle(shown)
        return shown

    def fields(self) -> dict[str, Any] | None:
        found = {}
        for name, item in self.items.items():
            if (tree := item.fields()) is not None:
                key = msgspec.json.encode({"name": name}).decode()
                found[f"k:{key}"] = {".": {}, "f:name": {}, **tree}
        return found or None


@dataclass(frozen=True)
class Bag:
    """A list that is a set."""

    items: dict[str, bool]

    def shown(self, mix: Random) -> list[str]:
        shown = list(self.items)
        mix.shuffle(shown)
        return shown

    def fields(self) -> dict[str, Any] | None:
        found = [name for name, ours in self.items.items() if ours]
        return {f"v:{msgspec.json.encode(name).decode()}": {} for name in found} or None


WORDS = st.text("abcde/.", min_size=1, max_size=4)
LEAVES = st.builds(Leaf, JSON, st.booleans())
BAGS = st.builds(Bag, st.dictionaries(WORDS, st.booleans(), max_size=3))


def inner(below: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    maps = st.builds(Map, st.dictionaries(WORDS, below, max_size=3))
    return maps | st.builds(Keyed, st.dictionaries(WORDS, maps, max_size=3))


TREES = st.builds(
    Map,
    st.dictionaries(
        WORDS, st.recursive(LEAVES | BAGS, inner, max_leaves=8), min_size=1, max_size=3
    ),
)
SEEDS = st.integers(0, 99).map(Random)


def live(body: Map, mix: Random, others: int = 0) -> dict[str, Any]:
    tree = shuffled(body.fields(), mix)
    entries = [{"manager": f"m{i}", "operation": "Update", "fieldsV1": {}} for i in range(others)]
    if tree is not None:
        entries.append({"manager": OURS, "operation": "Apply", "fieldsV1": {"f:spec": tree}})
    return {
        "apiVersion": "example.org/v1",
        "kind": "Widget",
        "metadata": {"name": "it", "managedFields": entries},
        "spec": body.shown(mix),
    }


def shuffled(tree: dict[str, Any] | None, mix: Random) -> dict[str, Any] | None:
    """The same fields, said in another order."""
    if tree is None:
        return None
    steps = sorted(tree)
    mix.shuffle(steps)
    return {step: shuffled(tree[step], mix) for step in steps}


def leaves(tree: Any) -> list[Leaf]:  # noqa: ANN401 -- any of the above
    match tree:
        case Leaf():
            return [tree]
        case Map() | Keyed():
            return [leaf for one in tree.items.values() for leaf in leaves(one)]
    return []


def with_value(tree: Any, leaf: Leaf, value: object) -> Any:  # noqa: ANN401 -- any of the above
    """The same tree with another value in one of its leaves."""
    if tree is leaf:
        return Leaf(value, leaf.ours)
    if isinstance(tree, (Map, Keyed)):
        items: dict[str, Any] = {
            name: with_value(one, leaf, value) for name, one in tree.items.items()
        }
        return type(tree)(items)
    return tree


def with_strangers(tree: Any) -> Any:  # noqa: ANN401 -- any of the above
    """The same tree, where others have added to everything that is not atomic."""
    match tree:
        case Map():
            more: dict[str, Any] = {name: with_strangers(one) for name, one in tree.items.items()}
            return Map({**more, "theirs": Leaf("x", ours=False)})
        case Keyed():
            return Keyed(
                {
                    **{name: with_strangers(one) for name, one in tree.items.items()},
                    "theirs": Map({"x": Leaf(1, ours=False)}),
                }
            )
        case Bag():
            return Bag({**tree.items, "theirs": False})
    return tree


@given(TREES, SEEDS, SEEDS)
@settings(max_examples=50, deadline=None)
def test_what_others_add_and_the_order_of_items_do_not_matter(
    body: Map, one: Random, other: Random
) -> None:
    alone = DIGESTS.owned(live(body, one))
    assert alone == DIGESTS.owned(live(with_strangers(body), other, others=2))
    assert bool(alone) is (body.fields() is not None)


@given(TREES, JSON, st.data())
@settings(max_examples=50, deadline=None)
def test_a_changed_value_matters_exactly_when_it_is_ours(
    body: Map, value: object, data: st.DataObject
) -> None:
    found = leaves(body)
    assume(found)
    leaf = data.draw(st.sampled_from(found))
    assume(msgspec.json.encode(leaf.value) != msgspec.json.encode(value))
    # Equal leaves are one and the same place only by accident of how they were drawn.
    assume(sum(one is leaf for one in found) == 1)
    before, after = live(body, Random(1)), live(with_value(body, leaf, value), Random(2))
    assert (DIGESTS.owned(before) != DIGESTS.owned(after)) is leaf.ours


def parts(value: Any, fields: dict[str, Any]) -> list[tuple[Any, Any]]:  # noqa: ANN401 -- any JSON
    """Everything of ours that can be removed: where it is, and by which name or value."""
    found: list[tuple[Any, Any]] = []
    for step, below in fields.items():
        kind, _, rest = step.partition(":")
        if kind == "f":
            found += [(value, rest), *parts(value[rest], below)]
        elif kind == "v":
            found.append((value, msgspec.json.decode(rest)))
        elif kind == "k":
            name = msgspec.json.decode(rest)["name"]
            item = next(one for one in value if one["name"] == name)
            found += [(value, item), *parts(item, below)]
    return found


@given(TREES, st.data())
@settings(max_examples=50, deadline=None)
def test_a_removed_field_or_item_of_ours_matters(body: Map, data: st.DataObject) -> None:
    object_ = live(body, Random(1))
    before, tree = DIGESTS.owned(object_), body.fields()
    assume(tree is not None)
    assert tree is not None
    holder, name = data.draw(st.sampled_from(parts(object_["spec"], tree)))
    if isinstance(holder, dict):
        del holder[name]
    else:
        holder.remove(name)
    assert DIGESTS.owned(object_) != before


@given(TREES)
@settings(max_examples=25, deadline=None)
def test_another_key_makes_another_digest_of_everything(body: Map) -> None:
    object_ = live(body, Random(1))
    digest, other = DIGESTS.owned(object_), Digests(b"another".ljust(32)).owned(object_)
    assert digest != other or digest == other == ""


@given(TREES, SEEDS)
@settings(max_examples=25, deadline=None)
def test_an_object_that_only_has_another_version_is_no_news(body: Map, mix: Random) -> None:
    object_ = live(body, Random(1))
    again = live(body, mix)
    again["metadata"]["resourceVersion"] = "999"
    assert not child(again, DIGESTS).differs(child(object_, DIGESTS))


STEPS = st.sampled_from(
    [
        ".",
        "f:a",
        "f:name",
        'k:{"name":"a"}',
        "k:{",
        "k:1",
        'v:"a"',
        "v:1",
        "v:{",
        "i:0",
        "i:-1",
        "x",
    ]
) | st.text(max_size=6)
SOME_FIELDS = st.recursive(
    st.just({}) | JSON, lambda below: st.dictionaries(STEPS, below, max_size=3), max_leaves=8
)
ENTRIES = st.lists(
    st.fixed_dictionaries(
        {
            "manager": st.just(OURS) | JSON,
            "operation": st.just("Apply") | JSON,
            "fieldsV1": SOME_FIELDS,
        },
        optional={"subresource": JSON},
    )
    | JSON,
    max_size=3,
)
ANY_METADATA = st.fixed_dictionaries(
    {"name": st.just("it") | JSON},
    optional={
        "managedFields": ENTRIES | JSON,
        "labels": st.dictionaries(st.just("pequod.io/graph"), JSON) | JSON,
        "annotations": st.dictionaries(
            st.sampled_from(["pequod.io/prune", "pequod.io/prune-grace-period"]), JSON
        )
        | JSON,
        "finalizers": JSON,
        "generation": JSON,
        "deletionTimestamp": JSON,
        "uid": JSON,
        "namespace": JSON,
        "resourceVersion": JSON,
    },
)
CONDITIONS = st.lists(
    st.fixed_dictionaries({"type": JSON, "status": JSON}, optional={"observedGeneration": JSON})
    | JSON,
    max_size=3,
)
ANY_OBJECT = st.fixed_dictionaries(
    {"metadata": ANY_METADATA | JSON},
    optional={
        "apiVersion": st.just("apps/v1") | JSON,
        "kind": st.just("Deployment") | JSON,
        "a": JSON,
        "name": JSON,
        "status": st.fixed_dictionaries(
            {"conditions": CONDITIONS | JSON}, optional={"observedGeneration": JSON}
        )
        | JSON,
    },
)


@given(ANY_OBJECT | JSON)
@settings(max_examples=120, deadline=None)
def test_whatever_a_server_returns_is_a_child_or_no_object(object_: Any) -> None:  # noqa: ANN401 -- any JSON
    try:
        made = reader(DIGESTS)(msgspec.json.encode(object_))
    except msgspec.MsgspecError:
        return
    assert made.metadata.name == object_["metadata"]["name"]
    assert 0.0 <= made.grace <= 86400.0
    assert not made.differs(made)
    assert len(msgspec.json.encode(made)) < 4096


@given(JSON, SOME_FIELDS, ENTRIES | JSON)
@settings(max_examples=60, deadline=None)
def test_fields_of_any_shape_are_looked_up_in_anything(
    value: object, fields: object, entries: object
) -> None:
    object_, tree = {"a": value}, {"f:a": fields}
    before = repr(object_)
    found = projected(object_, tree)
    assert found == projected(object_, tree)
    assert repr(object_) == before
    msgspec.json.encode(found)
    metadata = {"managedFields": entries}
    owns(our_fields(metadata), "spec", "replicas")
    assert all(isinstance(name, str) for name in managers(metadata))
