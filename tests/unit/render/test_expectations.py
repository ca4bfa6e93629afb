"""In what a module does not do what its test expects."""

import pytest

from pequod.evaluator.answers import PolicyVerdict, Rendered, Severity, Violation
from pequod.render.expectations import (
    Expectation,
    ExpectedViolation,
    differences,
    policy_differences,
)

GRAPH = {"nodes": [{"id": "a", "object": {"kind": "ConfigMap", "metadata": {"name": "x"}}}]}


def violation(path: str, severity: Severity = "Error") -> Violation:
    return Violation(path=path, message="must be another", severity=severity)


def test_what_is_as_expected_differs_in_nothing() -> None:
    expected = Expectation(graph=GRAPH, objects=("ConfigMap/x",), violations=())
    assert differences(expected, Rendered(graph=GRAPH)) == []


@pytest.mark.parametrize(
    ("happened", "difference"),
    [
        ({"nodes": []}, "graph.nodes has 0 items instead of 1"),
        ({}, "graph.nodes is missing"),
        ({**GRAPH, "more": 1}, "graph.more is not expected"),
        (None, f"graph is None instead of {GRAPH!r}"),
        (
            {"nodes": [{"id": "b", "object": GRAPH["nodes"][0]["object"]}]},
            "graph.nodes[0].id is 'b' instead of 'a'",
        ),
    ],
)
def test_a_graph_differs_place_by_place(
    happened: dict[str, object] | None, difference: str
) -> None:
    assert differences(Expectation(graph=GRAPH), Rendered(graph=happened)) == [difference]


def test_true_is_not_one() -> None:
    found = differences(Expectation(graph={"a": 1}), Rendered(graph={"a": True}))
    assert found == ["graph.a is True instead of 1"]


def test_violations_are_all_expected_or_said() -> None:
    expected = Expectation(
        violations=(
            ExpectedViolation(path="input.a", message="another"),
            ExpectedViolation(path="input.b", message="something else"),
        )
    )
    happened = Rendered(violations=(violation("input.a"), violation("input.c")))
    assert differences(expected, happened) == [
        "no violation input.b: something else",
        "unexpected violation input.c: must be another",
    ]


def test_a_violation_that_nobody_expected_fails_any_test_and_a_warning_none() -> None:
    assert differences(Expectation(), Rendered(violations=(violation("input.a"),)))
    assert not differences(Expectation(), Rendered(violations=(violation("input.a", "Warning"),)))


def test_policies_find_what_is_expected_and_no_more() -> None:
    verdicts = [
        PolicyVerdict(name="images", violations=(violation("a"), violation("b"))),
        PolicyVerdict(name="quiet"),
        PolicyVerdict(name="loud", violations=(violation("c"),)),
    ]
    assert policy_differences({"images": ["b", "a"], "loud": ["c"]}, verdicts) == []
    assert policy_differences({"images": ["a", "b"], "none": []}, verdicts) == [
        "there is no policy none",
        "loud finds c",
    ]
