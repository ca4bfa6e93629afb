"""`pequod rollback`: return a Transform to an earlier revision, or forward again."""

from typing import Annotated

import typer

from pequod.cli import cluster, terminal
from pequod.cli.cluster import ContextOption, KubeconfigOption, PlaceOption


def rollback(
    transform: Annotated[str, typer.Argument(metavar="TRANSFORM", help="transform/NAME or NAME.")],
    *,
    to: Annotated[
        int | None,
        typer.Option(min=1, help="The revision; the last one that was Ready before the newest."),
    ] = None,
    forward: Annotated[
        bool, typer.Option("--forward", help="Go back to what the spec asks for.")
    ] = False,
    namespace: PlaceOption = "default",
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
) -> None:
    """Return a Transform to an earlier revision; it stays there until --forward."""
    from pequod.cli.named import transform_named
    from pequod.cli.revisions import chosen, set_rollback

    name = transform_named(transform)

    async def main() -> None:
        async with cluster.connected(kubeconfig, context) as client:
            if forward:
                await set_rollback(client, namespace, name, None)
                terminal.say(f"Transform {name} follows its spec again")
                return
            number = await chosen(client, namespace, name, to)
            await set_rollback(client, namespace, name, number)
            terminal.say(
                f"Transform {name} returns to revision {number}; "
                f"`pequod rollback {name} -n {namespace} --forward` takes that back"
            )

    with cluster.explained():
        terminal.run(main)
