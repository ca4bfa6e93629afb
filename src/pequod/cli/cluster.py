"""The cluster that a command is about, in the user's own name."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from pequod.cli import terminal

if TYPE_CHECKING:
    from pequod.kube.client import Client

KubeconfigOption = Annotated[
    Path | None,
    typer.Option(help="How to reach the cluster; without it as kubectl does.", show_default=False),
]
ContextOption = Annotated[
    str | None, typer.Option(help="Context of the kubeconfig, if not its own.", show_default=False)
]
PlaceOption = Annotated[
    str, typer.Option("--namespace", "-n", help="Namespace of objects that name none.")
]


@asynccontextmanager
async def connected(kubeconfig: Path | None, context: str | None) -> "AsyncIterator[Client]":
    """A client in the user's own name."""
    from pequod.kube.client import Client
    from pequod.kube.kubeconfig import own_access
    from pequod.kube.transport import Transport

    transport = Transport(own_access(kubeconfig, context))
    try:
        yield Client(transport)
    finally:
        await transport.close()


@contextmanager
def explained(code: int = 1) -> Iterator[None]:
    """Turn what an API server has against something into a sentence and an exit code."""
    from pequod.kube.errors import ForbiddenError, KubeError, NotFoundError

    try:
        yield
    except NotFoundError as error:
        end(str(error), "Check the name and the namespace (-n).", code)
    except ForbiddenError as error:
        end(str(error), "Ask for the right to do this, or use another --context.", code)
    except KubeError as error:
        end(str(error), "Check --kubeconfig and --context, and that the cluster answers.", code)


def end(problem: str, next_step: str, code: int) -> NoReturn:
    """Say what is wrong and what to do next, and end."""
    terminal.errors.print(f"error: {problem}\n{next_step}", markup=False)
    raise SystemExit(code)
