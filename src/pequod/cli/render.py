"""`pequod render`: what a module makes of an input, without a cluster."""

import sys
from collections.abc import Iterable
from enum import StrEnum
from typing import Annotated, Any

import msgspec
import typer
import yaml

from pequod.api.graph import Graph
from pequod.cli import terminal
from pequod.cli.options import (
    CredentialsOption,
    CueRegistryOption,
    InputOption,
    ModuleArgument,
    NameOption,
    NamespaceOption,
    credentials_of,
)
from pequod.cli.violations import print_violations
from pequod.cli.workbench import VIOLATIONS, exit_codes, workbench
from pequod.render import drawing
from pequod.render.cue import Rendering
from pequod.render.cue import render as render_module


class Format(StrEnum):
    """What is printed."""

    YAML = "yaml"
    JSON = "json"
    GRAPH = "graph"
    DOT = "dot"
    MERMAID = "mermaid"


def render(  # noqa: PLR0913 -- a signature is the command line
    module: ModuleArgument,
    *,
    given: InputOption,
    name: NameOption = "example",
    namespace: NamespaceOption = "default",
    output: Annotated[
        Format, typer.Option("--output", "-o", help="Objects as yaml or json, or the graph.")
    ] = Format.YAML,
    credentials: CredentialsOption = None,
    cue_registry: CueRegistryOption = None,
) -> None:
    """Print what a module makes of an input; needs no cluster."""

    async def main() -> Rendering:
        async with workbench(credentials_of(credentials), cue_registry) as bench:
            tree = await bench.module(module)
            values = await bench.given(given)
            return await render_module(
                bench.evaluator, tree, values, name=name, namespace=namespace
            )

    with exit_codes():
        rendering = terminal.run(main)
    print_violations(rendering.violations)
    if rendering.graph is None or rendering.refused:
        raise SystemExit(VIOLATIONS)
    with terminal.explained():
        sys.stdout.write(shown(rendering.graph, output))
        sys.stdout.flush()


def shown(graph: Graph, output: Format) -> str:
    """A graph in the format that was asked for."""
    objects = [dict(node.object) for node in graph.nodes]
    match output:
        case Format.YAML:
            return _documents(objects)
        case Format.JSON:
            text = msgspec.json.encode({"apiVersion": "v1", "kind": "List", "items": objects})
            return msgspec.json.format(text).decode() + "\n"
        case Format.GRAPH:
            return _documents([msgspec.to_builtins(graph)])
        case Format.DOT:
            return drawing.dot(graph) + "\n"
        case Format.MERMAID:
            return drawing.mermaid(graph) + "\n"


def _documents(values: Iterable[Any]) -> str:
    return "---\n".join(
        yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=1000)
        for value in values
    )


class _Dumper(yaml.CSafeDumper):
    """Writes equal parts out, instead of referring from one to the other."""

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002 -- a hook of the library
        return True
