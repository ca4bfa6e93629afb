"""Who waits for whom, and how a circle is told."""

from itertools import pairwise

import pytest

from pequod.graph.dag import CycleFoundError, levels, ordered, reversed_edges

DIAMOND = {"top": ("left", "right"), "left": ("base",), "right": ("base",), "base": ()}


def cycle_of(edges: dict[str, tuple[str, ...]]) -> tuple[str, ...]:
    with pytest.raises(CycleFoundError) as caught:
        ordered(edges)
    return caught.value.cycle


def test_a_node_comes_after_those_that_it_depends_on() -> None:
    order = ordered(DIAMOND)
    assert order[0] == "base"
    assert order[-1] == "top"
    assert sorted(order) == ["base", "left", "right", "top"]


def test_nothing_has_an_order_as_well() -> None:
    assert ordered({}) == ()
    assert levels({}) == {}
    assert reversed_edges({}) == {}


def test_a_level_counts_those_that_stand_one_after_the_other() -> None:
    assert levels(DIAMOND) == {"base": 0, "left": 1, "right": 1, "top": 2}
    assert levels({"a": (), "b": ("a",), "c": ("a", "b")}) == {"a": 0, "b": 1, "c": 2}


def test_a_long_chain_has_as_many_levels_as_nodes() -> None:
    chain = {f"n{i}": (f"n{i - 1}",) if i else () for i in range(2000)}
    assert levels(chain)["n1999"] == 1999
    assert ordered(chain)[0] == "n0"


def test_edges_are_turned_round() -> None:
    turned = reversed_edges(DIAMOND)
    assert turned == {
        "top": (),
        "left": ("top",),
        "right": ("top",),
        "base": ("left", "right"),
    }


def test_a_circle_is_named_as_one_would_walk_along_depends_on() -> None:
    edges = {"a": ("b",), "b": ("c",), "c": ("a",), "aside": ("a",), "base": ()}
    cycle = cycle_of(edges)
    assert cycle[0] == cycle[-1]
    assert sorted(cycle[:-1]) == ["a", "b", "c"]
    assert all(after in edges[before] for before, after in pairwise(cycle))


def test_a_node_that_waits_for_itself_is_the_smallest_circle() -> None:
    assert cycle_of({"a": ("a",)}) == ("a", "a")


def test_a_circle_of_two_reads_as_a_sentence() -> None:
    with pytest.raises(CycleFoundError, match=r"^(a → b → a|b → a → b)$"):
        ordered({"a": ("b",), "b": ("a",)})
