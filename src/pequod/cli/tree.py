"""`pequod tree`: a source, its graph and every object, with how each does."""

from typing import TYPE_CHECKING, Annotated

import typer

from pequod.cli import cluster, terminal
from pequod.cli.cluster import ContextOption, KubeconfigOption, PlaceOption

if TYPE_CHECKING:
    from pequod.cli.trees import Drawing


def tree(
    object_: Annotated[str, typer.Argument(metavar="KIND/NAME", help="transform/NAME or rg/NAME.")],
    *,
    namespace: PlaceOption = "default",
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Go on until Ctrl-C.")] = False,
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
) -> None:
    """Show an object with everything that comes of it, and how each part does."""
    from pequod.api.platform import Transform
    from pequod.cli.named import named
    from pequod.cli.trees import Drawing

    kind, name = named(object_)

    async def main() -> None:
        async with cluster.connected(kubeconfig, context) as client:
            drawing = Drawing(client, namespace, name, of_transform=kind is Transform)
            if watch:
                await _followed(drawing)
            else:
                terminal.output.print(await drawing.tree(), soft_wrap=False)

    with cluster.explained():
        terminal.run(main)


async def _followed(drawing: "Drawing") -> None:
    """Draw anew whenever a graph of the namespace changes."""
    from rich.live import Live

    from pequod.cli.trees import GRAPHS
    from pequod.kube.client import Selection
    from pequod.kube.watch import Watch

    events = Watch(drawing.client, GRAPHS, Selection(namespace=drawing.namespace)).events()
    drawn = await drawing.tree()
    if not terminal.output.is_terminal:
        terminal.output.print(drawn, soft_wrap=False)
        async for _ in events:
            terminal.output.print(await drawing.tree(), soft_wrap=False)
        return
    with Live(drawn, console=terminal.output, auto_refresh=False) as live:
        async for _ in events:
            live.update(await drawing.tree(), refresh=True)
