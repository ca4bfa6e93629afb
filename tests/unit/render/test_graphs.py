"""What a module calls a graph becomes one, or an error that names the place."""

from typing import Any

import pytest

from pequod.api.graph import MAX_NODES
from pequod.controllers.platform.rendering import NotRenderedError
from pequod.evaluator.errors import ModuleError, OverLimitError
from pequod.render.cue import MAX_BYTES, graph_of
from pequod.render.drawing import dot, mermaid


def node(name: str, **more: object) -> dict[str, Any]:
    described = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}
    return {"id": name, "object": described, **more}


def test_a_graph_is_read_with_everything_that_it_says() -> None:
    graph = graph_of(
        {
            "metadata": {"name": "shop"},
            "nodes": [
                node("a"),
                node("b", dependsOn=["a"], readyWhen=[{"type": "Exists"}]),
            ],
        }
    )
    assert graph.metadata.name == "shop"
    assert graph.nodes[1].depends_on == ("a",)
    assert graph.nodes[1].ready_when[0].type == "Exists"


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ({"nodes": [], "node": []}, "graph.node"),
        ({"nodes": [], "metadata": {"nmae": "x"}}, "graph.metadata.nmae"),
        ({"nodes": [node("a", dependson=[])]}, "graph.nodes[0].dependson"),
        (
            {"nodes": [node("a", applyPolicy={"mod": "Apply"})]},
            "graph.nodes[0].applyPolicy.mod",
        ),
        (
            {"nodes": [node("a", readyWhen=[{"type": "Exists", "x": 1}])]},
            "graph.nodes[0].readyWhen[0].x",
        ),
        ({"nodes": [{"id": "a", "object": {}}]}, "graph.nodes[0].object.apiVersion"),
        ({"nodes": [node("not an id")]}, "graph.nodes[0].id"),
        ({"nodes": [node("a", dependsOn="b")]}, "graph.nodes[0].dependsOn"),
        ({"nodes": ["text"]}, "graph.nodes[0]"),
        ({"nodes": "text"}, "graph.nodes"),
        ({}, "graph"),
    ],
)
def test_what_is_no_graph_is_refused_with_the_place(value: dict[str, Any], path: str) -> None:
    with pytest.raises(ModuleError) as refused:
        graph_of(value)
    assert path in {problem.path for problem in refused.value.problems}


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (
            {"nodes": [node("not an id")]},
            "graph.nodes[0].id: is no id: it must begin with a letter or an underscore, and hold "
            "only letters, digits, underscores and hyphens",
        ),
        (
            {"nodes": [node("a", dependsOn=["1st"])]},
            "graph.nodes[0].dependsOn[0]: is no id: it must begin with a letter or an underscore, "
            "and hold only letters, digits, underscores and hyphens",
        ),
        (
            {"nodes": [node("a" * 64)]},
            "graph.nodes[0].id: is too long: at most 63 characters are allowed",
        ),
        ({"nodes": {}}, "graph.nodes: is an object, but must be a list"),
        ({}, "graph: lacks nodes: add it"),
        (
            {"nodes": [node("a", applyPolicy={"mode": "Take"})]},
            "graph.nodes[0].applyPolicy.mode: is 'Take', but must be one of Apply, Create, Adopt, "
            "Observe",
        ),
        (
            {"nodes": [node("a", readyWhen=[{"type": "Exists", "timeout": "5 minutes"}])]},
            "graph.nodes[0].readyWhen[0].timeout: is no duration: write for example 90s, 5m or "
            "1h30m",
        ),
    ],
)
def test_what_is_wrong_with_a_graph_is_told_once_and_in_words(
    value: dict[str, Any], problem: str
) -> None:
    with pytest.raises(ModuleError) as refused:
        graph_of(value)
    assert str(NotRenderedError(refused.value)) == f"the module's graph is not valid: {problem}"


def test_case_90_a_graph_has_its_limits() -> None:
    with pytest.raises(OverLimitError, match="1001 nodes"):
        graph_of({"nodes": [node(f"n{number}") for number in range(MAX_NODES + 1)]})
    with pytest.raises(OverLimitError, match="bytes"):
        graph_of({"nodes": [node("a", object={"x": "x" * MAX_BYTES})]})


def test_a_picture_holds_every_node_and_every_known_edge() -> None:
    graph = graph_of({"nodes": [node("a"), node("b", dependsOn=["a", "nobody"])]})
    assert '"a" -> "b";' in dot(graph)
    assert "nobody" not in dot(graph)
    assert mermaid(graph).splitlines() == [
        "flowchart TD",
        '  n0["a<br/>ConfigMap/a"]',
        '  n1["b<br/>ConfigMap/b"]',
        "  n0 --> n1",
    ]


def test_names_cannot_break_a_picture() -> None:
    odd = node("a")
    odd["object"]["metadata"]["name"] = 'x"];\\'
    graph = graph_of({"nodes": [odd]})
    assert '[label="a\\nConfigMap/x\'];/"];' in dot(graph)
