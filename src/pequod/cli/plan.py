"""`pequod plan`: what applying a file would do, without doing it.

Exit codes as `kubectl diff` has them: 0 nothing would change, 1 something would, more when that
cannot be said or would be refused.
"""

import sys
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pequod.cli import cluster, terminal
from pequod.cli.cluster import ContextOption, KubeconfigOption, PlaceOption

if TYPE_CHECKING:
    from pequod.cli.planning import Judged

CHANGES, WRONG, REFUSED = 1, 2, 3


def plan(
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="Transforms and ResourceGraphs; - for stdin.")
    ],
    *,
    namespace: PlaceOption = "default",
    policies: Annotated[
        str,
        typer.Option(metavar="MODULE", help="Policies to judge by, as the operator has; or off."),
    ] = "embedded:policy",
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
) -> None:
    """Say what applying a file would create, change, delete and adopt; changes nothing.

    Exit code 0: nothing would change. 1: something would. 2: that cannot be said. 3: it would be
    refused.
    """
    from pequod.base import logs
    from pequod.cli.planning import workshop
    from pequod.cli.plans import print_judged

    logs.set_up(level="error", style="console")

    async def main() -> "list[Judged]":
        async with AsyncExitStack() as stack:
            client = await stack.enter_async_context(cluster.connected(kubeconfig, context))
            shop = await stack.enter_async_context(workshop(client, policies))
            documents = await shop.documents(file, _read(file))
            judged = [await shop.judged(document, namespace) for document in documents]
        for one in judged:
            print_judged(one)
        return judged

    with cluster.explained(code=WRONG):
        judged = terminal.run(main)
    raise SystemExit(_code(judged))


def _code(judged: "list[Judged]") -> int:
    plans = [one.plan for one in judged if one.plan is not None]
    unplanned = sum(1 for one in judged if one.unplanned)
    if len(plans) + unplanned < len(judged) or any(one.refused for one in plans):
        return REFUSED
    if unplanned:
        return WRONG
    return CHANGES if any(one.changes or one.left for one in plans) else 0


def _read(file: str) -> str:
    if file == "-":
        return sys.stdin.read()
    try:
        return Path(file).read_text()
    except (UnicodeDecodeError, IsADirectoryError, FileNotFoundError) as error:
        problem = "is not there" if isinstance(error, FileNotFoundError) else "is no text"
        cluster.end(f"{file} {problem}", "Name a YAML or JSON file, or - for stdin.", WRONG)
