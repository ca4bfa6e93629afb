"""What must hold of adoption, whatever objects and managers there are."""

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from pequod.graph.differences import differences
from pequod.graph.ownership import is_replaced, let_go, paths, removed, taken_over, united

Tree = dict[str, Any]

_NAMES = st.sampled_from("abc")
_STEPS = st.one_of(
    _NAMES.map(lambda name: f"f:{name}"), _NAMES.map(lambda name: f'k:{{"name":"{name}"}}')
)


def _with_itself(tree: Tree) -> st.SearchStrategy[Tree]:
    """A map or an item may be managed as such, besides what it holds."""
    return st.sampled_from([tree, {".": {}, **tree}]) if tree else st.just(tree)


TREES: st.SearchStrategy[Tree] = st.recursive(
    st.just({}),
    lambda below: st.dictionaries(_STEPS, below, max_size=3).flatmap(_with_itself),
    max_leaves=12,
)
ROOTS = st.dictionaries(_NAMES.map(lambda name: f"f:{name}"), TREES, max_size=3)
MANAGERS = st.sampled_from(
    ["helm", "kubectl-edit", "kube-controller-manager", "pequod-operator", "pequod-handover"]
)
ENTRIES = st.lists(
    st.builds(
        lambda manager, fields, part: {
            "manager": manager,
            "operation": "Apply",
            "apiVersion": "v1",
            "fieldsType": "FieldsV1",
            "fieldsV1": fields,
            **({"subresource": part} if part else {}),
        },
        MANAGERS,
        ROOTS,
        st.sampled_from(["", "status"]),
    ),
    max_size=5,
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(0, 2) | _NAMES,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(_NAMES | st.just("name"), inner, max_size=3)
    ),
    max_leaves=12,
)
OBJECTS = st.dictionaries(_NAMES, VALUES, max_size=3)


@given(ROOTS, ROOTS)
def test_together_are_all_fields_of_both(one: Tree, other: Tree) -> None:
    assert {*paths(united(one, other))} == {*paths(one)} | {*paths(other)}


@given(ENTRIES)
def test_tools_lose_everything_others_nothing_and_no_field_is_lost(known: list[Tree]) -> None:
    after = taken_over(known, "v1")
    if after is None:
        assert not any(is_replaced(entry) for entry in known)
        return
    assert not any(is_replaced(entry) for entry in after)
    assert taken_over(after, "v1") is None
    ours = [
        one for one in after if one["manager"] == "pequod-operator" and "subresource" not in one
    ]
    assert len(ours) == 1
    others = [one for one in known if not is_replaced(one) and one not in ours]
    kept = [one for one in others if one["manager"] != "pequod-operator" or "subresource" in one]
    assert [one for one in after if one not in ours] == kept
    fields = {path for entry in known if is_replaced(entry) for path in paths(entry["fieldsV1"])}
    assert fields <= {*paths(ours[0]["fieldsV1"])}


@given(OBJECTS, ENTRIES, ENTRIES)
def test_what_would_go_is_never_what_somebody_manages(
    object_: Tree, before: list[Tree], after: list[Tree]
) -> None:
    whole = msgspec.json.encode(object_)
    gone, kept = let_go(before, after)
    assert gone.isdisjoint(kept)
    rest = removed(object_, gone, kept)
    assert rest.keys() <= object_.keys()
    assert {step.removeprefix("f:") for step, *_ in kept} & object_.keys() <= rest.keys()
    assert msgspec.json.encode(object_) == whole


@given(OBJECTS, OBJECTS)
def test_objects_differ_when_they_are_not_the_same(one: Tree, other: Tree) -> None:
    found = differences(one, other)
    same = msgspec.json.encode(one, order="sorted") == msgspec.json.encode(other, order="sorted")
    assert bool(found) is not same
    assert differences(one, one) == ()
    back = [(d.path, d.after, d.before) for d in found]
    assert sorted(back, key=str) == sorted(
        ((d.path, d.before, d.after) for d in differences(other, one)), key=str
    )
