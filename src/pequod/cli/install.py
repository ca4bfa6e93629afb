"""`pequod install`: the CRDs into a cluster of the user's, after asking which."""

import asyncio
import sys
from typing import Annotated, Any

import msgspec
import typer

from pequod.cli import terminal
from pequod.dev.failure import DevError
from pequod.dev.places import shipped
from pequod.dev.programs import Programs, find_programs

_TIMEOUT = 120.0


def install(
    *,
    context: Annotated[
        str | None, typer.Option(help="Context of the kubeconfig; asked for when absent.")
    ] = None,
    yes: Annotated[
        bool, typer.Option("--yes", help="Do not ask; --context must say which cluster.")
    ] = False,
) -> None:
    """Install the CRDs into a cluster, after asking which."""
    terminal.run(lambda: _install(context, yes=yes))


async def _install(context: str | None, *, yes: bool) -> None:
    if yes and context is None:
        raise DevError("--yes needs --context", next_step="Say which cluster: --context NAME.")
    with terminal.build_progress() as report:
        programs = await find_programs(("kubectl",), report)
    servers, current = await _contexts(programs)
    chosen = context or _ask_which(servers, current)
    if chosen not in servers:
        raise DevError(
            f"the kubeconfig has no context {chosen}",
            next_step=f"Choose one of: {', '.join(sorted(servers)) or 'none, it is empty'}.",
        )
    if not yes and not typer.confirm(f"Install the CRDs into {chosen} at {servers[chosen]}?"):
        raise DevError("nothing was installed", next_step="Run it again when you are sure.")
    folder = shipped("deploy/crds")
    applied = await _kubectl(
        programs, f"--context={chosen}", "apply", "--server-side", f"--filename={folder}"
    )
    terminal.output.print(applied.strip())


def _ask_which(servers: dict[str, str], current: str) -> str:
    if not servers:
        raise DevError(
            "the kubeconfig names no cluster",
            next_step="Set KUBECONFIG, or start a cluster here with `make up`.",
        )
    if not sys.stdin.isatty():
        raise DevError(
            "which cluster is meant can only be asked in a terminal",
            next_step="Name it: `pequod install --context NAME --yes`.",
        )
    for name, server in servers.items():
        terminal.output.print(f"{'*' if name == current else ' '} {name}  {server}")
    answer: str = typer.prompt("Which context?", default=current or None)
    return answer


async def _contexts(programs: Programs) -> tuple[dict[str, str], str]:
    """The server behind each context, and the current one."""
    text = await _kubectl(programs, "config", "view", "--output=json")
    config = msgspec.json.decode(text, type=dict[str, Any])
    servers = {
        cluster["name"]: cluster["cluster"].get("server", "")
        for cluster in config.get("clusters") or ()
    }
    contexts = {
        entry["name"]: servers.get(entry["context"]["cluster"], "an unknown server")
        for entry in config.get("contexts") or ()
    }
    return contexts, config.get("current-context", "")


async def _kubectl(programs: Programs, *arguments: str) -> str:
    process = await asyncio.create_subprocess_exec(
        *programs.command("kubectl", *arguments),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(_TIMEOUT):
            output, errors = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
    if process.returncode != 0:
        raise DevError(
            f"kubectl failed: {errors.decode(errors='replace').strip()}",
            next_step="Check that KUBECONFIG names a readable file and that its cluster answers.",
        )
    return output.decode()
