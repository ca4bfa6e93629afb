"""A merge patch turns the one into the other, and is empty exactly when there is nothing to do."""

from typing import TypeAlias

import msgspec
from hypothesis import example, given
from hypothesis import strategies as st

from pequod.kube.objects import merge_patch

Json: TypeAlias = "bool | int | str | list[Json] | dict[str, Json] | None"

SCALARS = st.one_of(st.booleans(), st.integers(-3, 3), st.text(max_size=3))
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from("abcd"), inner, max_size=3),
    ),
    max_leaves=12,
)
OBJECTS = st.dictionaries(st.sampled_from("abcd"), VALUES, max_size=4)


def applied(target: Json, patch: Json) -> Json:
    """RFC 7396, as it is written there."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = applied(result.get(name), value)
    return result


def same(one: Json, other: Json) -> bool:
    """Equality as JSON has it: true is not 1."""
    first, second = (msgspec.json.encode(value, order="sorted") for value in (one, other))
    return first == second


@given(before=OBJECTS, after=OBJECTS)
@example(before={"a": True}, after={"a": 1})
@example(before={"a": [{"b": 0}]}, after={"a": [{"b": False}]})
def test_a_patch_turns_the_one_into_the_other(
    before: dict[str, Json], after: dict[str, Json]
) -> None:
    assert same(applied(before, merge_patch(before, after)), after)


@given(value=OBJECTS)
def test_without_a_difference_there_is_no_patch(value: dict[str, Json]) -> None:
    assert merge_patch(value, value) == {}
