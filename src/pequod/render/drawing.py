"""A graph as a picture, in the languages that tools understand."""

from collections.abc import Iterator

from pequod.api.graph import Graph, Node

_BREAK = "\\n"
"""How Graphviz writes the end of a line."""


def dot(graph: Graph) -> str:
    """For Graphviz."""
    lines = [f'  "{node.id}" [label="{_label(node, _BREAK)}"];' for node in graph.nodes]
    lines += [f'  "{source}" -> "{target}";' for source, target in _edges(graph)]
    return "\n".join(["digraph {", "  node [shape=box];", *lines, "}"])


def mermaid(graph: Graph) -> str:
    """For Markdown that is shown by a forge."""
    names = {node.id: f"n{number}" for number, node in enumerate(graph.nodes)}
    lines = [f'  {names[node.id]}["{_label(node, "<br/>")}"]' for node in graph.nodes]
    lines += [f"  {names[source]} --> {names[target]}" for source, target in _edges(graph)]
    return "\n".join(["flowchart TD", *lines])


def _edges(graph: Graph) -> Iterator[tuple[str, str]]:
    """From what must be there first to what needs it."""
    known = {node.id for node in graph.nodes}
    for node in graph.nodes:
        for needed in node.depends_on:
            if needed in known:
                yield needed, node.id


def _label(node: Node, line_break: str) -> str:
    name = f"{node.object['kind']}/{node.object['metadata'].get('name', '')}"
    return line_break.join((node.id, name.replace('"', "'").replace("\\", "/")))
