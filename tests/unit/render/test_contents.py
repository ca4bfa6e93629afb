"""A Secret or a ConfigMap that no API server would read is refused before it is stored."""

from typing import Any

import pytest

from pequod.evaluator.errors import ModuleError
from pequod.render.cue import graph_of

QUOTE = r'must be a string: quote it, as in "8080" or "\(input.port)"'


def graph(kind: str, **content: object) -> dict[str, Any]:
    described = {"apiVersion": "v1", "kind": kind, "metadata": {"name": "x"}, **content}
    return {"nodes": [{"id": "db", "object": described}]}


@pytest.mark.parametrize(
    ("kind", "content", "problem"),
    [
        (
            "Secret",
            {"data": {"password": "hunter2 in plain text"}},
            "nodes.db.data.password: must be base64: use stringData for plain text",
        ),
        (
            "Secret",
            {"data": {"password": "hunter"}},
            "nodes.db.data.password: must be base64: use stringData for plain text",
        ),
        (
            "Secret",
            {"data": {"password": 4711}},
            "nodes.db.data.password: must be base64: use stringData for plain text",
        ),
        ("Secret", {"stringData": {"port": 4711}}, f"nodes.db.stringData.port: {QUOTE}"),
        ("ConfigMap", {"data": {"port": 4711}}, f"nodes.db.data.port: {QUOTE}"),
        ("ConfigMap", {"data": {"flag": True}}, f"nodes.db.data.flag: {QUOTE}"),
        (
            "ConfigMap",
            {"binaryData": {"logo": "hunter2!"}},
            "nodes.db.binaryData.logo: must be base64: use data for plain text",
        ),
        (
            "ConfigMap",
            {"data": ["hunter2"]},
            "nodes.db.data: must be an object: write names and values",
        ),
    ],
)
def test_what_cannot_be_read_is_named_without_its_value(
    kind: str, content: dict[str, Any], problem: str
) -> None:
    with pytest.raises(ModuleError) as refused:
        graph_of(graph(kind, **content))
    told = [str(one) for one in refused.value.problems]
    assert told == [problem]
    assert "hunter" not in f"{refused.value}{told}"
    assert "4711" not in f"{refused.value}{told}"


@pytest.mark.parametrize(
    ("kind", "content"),
    [
        ("Secret", {"data": {"password": "aHVudGVyMg==", "empty": "", "no": None}}),
        ("Secret", {"data": {"long": "aHVu\ndGVy\r\nMg=="}, "stringData": {"a": "plain text"}}),
        ("ConfigMap", {"data": {"port": "8080"}, "binaryData": {"logo": "AAEC"}}),
        ("ConfigMap", {"data": None}),
        ("Widget", {"data": {"port": 8080}}),
    ],
)
def test_what_can_be_read_is_let_through(kind: str, content: dict[str, Any]) -> None:
    assert graph_of(graph(kind, **content)).nodes[0].object["kind"] == kind


def test_another_kind_of_the_same_name_holds_what_it_likes() -> None:
    odd = graph("Secret", data={"size": 1})
    odd["nodes"][0]["object"]["apiVersion"] = "example.com/v1"
    assert graph_of(odd).nodes[0].object["data"] == {"size": 1}
