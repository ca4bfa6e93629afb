"""`pequod install`: the CRDs and the admission policy into a cluster of the user's."""

import sys
from typing import Annotated, Any

import msgspec
import typer

from pequod.cli import terminal
from pequod.dev.failure import DevError
from pequod.dev.programs import Programs, find_programs


def install(
    *,
    context: Annotated[
        str | None, typer.Option(help="Context of the kubeconfig; asked for when absent.")
    ] = None,
    yes: Annotated[
        bool, typer.Option("--yes", help="Do not ask; --context must say which cluster.")
    ] = False,
) -> None:
    """Install the CRDs and the admission policy into a cluster, after asking which."""
    programs, servers, current = terminal.run(_look_around)
    with terminal.explained():
        chosen = _chosen(context, servers, current, yes=yes)
    terminal.run(lambda: _install(programs, chosen))


async def _look_around() -> tuple[Programs, dict[str, str], str]:
    """kubectl, the server behind each context of the user's kubeconfig, and the current context."""
    from pequod.dev.kubectl import Kubectl

    with terminal.build_progress() as report:
        programs = await find_programs(("kubectl",), report)
    text = await Kubectl(programs).run("config", "view", "--output=json")
    config = msgspec.json.decode(text, type=dict[str, Any])
    servers = {
        cluster["name"]: cluster["cluster"].get("server", "")
        for cluster in config.get("clusters") or ()
    }
    contexts = {
        entry["name"]: servers.get(entry["context"]["cluster"], "an unknown server")
        for entry in config.get("contexts") or ()
    }
    return programs, contexts, config.get("current-context", "")


def _chosen(context: str | None, servers: dict[str, str], current: str, *, yes: bool) -> str:
    """The context that the user named, or names now, and agrees to."""
    if not servers:
        raise DevError(
            "the kubeconfig names no cluster",
            next_step="Set KUBECONFIG, or start a cluster here with `make up`.",
        )
    if not (yes and context) and not sys.stdin.isatty():
        raise DevError(
            "which cluster is meant can only be asked in a terminal",
            next_step="Name it: `pequod install --context NAME --yes`.",
        )
    if yes and context is None:
        raise DevError("--yes needs --context", next_step="Say which cluster: --context NAME.")
    chosen = context or _ask_which(servers, current)
    if chosen not in servers:
        raise DevError(
            f"the kubeconfig has no context {chosen}",
            next_step=f"Choose one of: {', '.join(sorted(servers))}.",
        )
    question = f"Install the CRDs and the admission policy into {chosen} at {servers[chosen]}?"
    if not yes and not typer.confirm(question):
        raise DevError("nothing was installed", next_step="Run it again when you are sure.")
    return chosen


def _ask_which(servers: dict[str, str], current: str) -> str:
    for name, server in servers.items():
        typer.echo(f"{'*' if name == current else ' '} {name}  {server}")
    answer: str = typer.prompt("Which context?", default=current or None)
    return answer


async def _install(programs: Programs, context: str) -> None:
    from pequod.dev.kubectl import Kubectl

    applied = await Kubectl(programs, f"--context={context}").install_kinds()
    typer.echo(applied.strip())
