"""`pequod tree`: a source, its graph and every object, with how each does."""

import asyncio
from typing import TYPE_CHECKING, Annotated

import typer

from pequod.cli import cluster, terminal
from pequod.cli.cluster import ContextOption, KubeconfigOption, PlaceOption

if TYPE_CHECKING:
    from pequod.cli.trees import Drawing
    from pequod.kube.kinds import Kind


def tree(
    object_: Annotated[
        str, typer.Argument(metavar="KIND/NAME", help="transform/NAME, opchain/NAME or rg/NAME.")
    ],
    *,
    namespace: PlaceOption = "default",
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Go on until Ctrl-C.")] = False,
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
) -> None:
    """Show an object with everything that comes of it, and how each part does."""
    from pequod.cli.named import named
    from pequod.cli.trees import Drawing

    kind, name = named(object_)

    async def main() -> None:
        async with cluster.connected(kubeconfig, context) as client:
            drawing = Drawing(client, namespace, name, kind)
            if watch:
                await _followed(drawing)
            else:
                terminal.output.print(await drawing.tree(), soft_wrap=False)

    with cluster.explained():
        terminal.run(main)


async def _followed(drawing: "Drawing") -> None:
    """Draw anew whenever the source or its graph may have changed."""
    from rich.live import Live

    from pequod.base.tasks import end

    changed = asyncio.Event()
    tasks = [asyncio.create_task(_listen(drawing, kind, changed)) for kind in drawing.kinds]
    drawn = await drawing.tree()
    try:
        if not terminal.output.is_terminal:
            await _printed(drawing, changed)
            return
        with Live(drawn, console=terminal.output, auto_refresh=False) as live:
            while await changed.wait():
                changed.clear()
                live.update(await drawing.tree(), refresh=True)
    finally:
        await end(*tasks)


async def _printed(drawing: "Drawing", changed: asyncio.Event) -> None:
    """Print what is drawn, one tree after the other, where nothing can be drawn over."""
    changed.set()
    while await changed.wait():
        changed.clear()
        terminal.output.print(await drawing.tree(), soft_wrap=False)


async def _listen(drawing: "Drawing", kind: "Kind", changed: asyncio.Event) -> None:
    from pequod.kube.client import Selection
    from pequod.kube.watch import Watch

    async for _ in Watch(drawing.client, kind, Selection(namespace=drawing.namespace)).events():
        changed.set()
