"""`pequod dev`: a real Kubernetes control plane on this machine, without Docker.

A command imports what only it needs where it needs it: asking for the state of things should not
wait for an HTTP client to be loaded.
"""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated

import typer

from pequod.cli import terminal
from pequod.dev import instances
from pequod.dev.components import NodeKind
from pequod.dev.failure import DevError
from pequod.dev.programs import find_evaluator, find_programs
from pequod.dev.wish import Wish, programs_for

app = typer.Typer(
    help="A real Kubernetes control plane on this machine, without Docker.", no_args_is_help=True
)

Name = Annotated[str, typer.Option(help="Which control plane; several can run side by side.")]
NodeOption = Annotated[
    NodeKind,
    typer.Option("--node", help="What runs the pods: a simulation, a real node (root), nothing."),
]
Port = Annotated[int, typer.Option(help="Port of the API server; 0 for a free one.")]
KeepLogs = Annotated[
    Path | None, typer.Option(help="Copy the logs of the components there at the end.")
]


@app.command()
def up(  # noqa: PLR0913 -- a signature is the command line
    *,
    detach: Annotated[bool, typer.Option("--detach", help="Go on in the background.")] = False,
    node: NodeOption = "simulated",
    name: Name = "default",
    port: Port = 0,
    crds: Annotated[
        bool, typer.Option("--crds", help="Install Pequod's CRDs and admission policy as well.")
    ] = False,
    operator: Annotated[
        bool, typer.Option("--operator", help="Install the CRDs and run the operator as well.")
    ] = False,
    api_server: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE",
            help="A flag for the API server, for example feature-gates=Name=true; repeatable.",
        ),
    ] = None,
    keep_logs: KeepLogs = None,
) -> None:
    """Start a control plane; Ctrl-C ends it and leaves nothing behind."""
    from pequod.cli.foreground import run_in_foreground

    wish = Wish(
        name=name,
        node=node,
        port=port,
        crds=crds,
        operator=operator,
        api_server=tuple(api_server or ()),
        keep_logs=keep_logs,
    )
    terminal.run(lambda: _detached(wish) if detach else run_in_foreground(wish))


async def _detached(wish: Wish) -> None:
    from pequod.cli.foreground import export_line
    from pequod.dev.background import start_detached

    with terminal.build_progress() as report:
        await programs_for(wish, report)
    with terminal.waiting("Starting the control plane"):
        instance = await start_detached(wish)
    terminal.say(export_line(instance.layout.kubeconfig))


@app.command()
def run(
    *,
    node: NodeOption = "simulated",
    name: Name = "run",
    port: Port = 0,
    keep_logs: KeepLogs = None,
) -> None:
    """Start a control plane with the operator, apply the samples and show them live."""
    from pequod.cli.foreground import run_with_samples

    wish = Wish(name=name, node=node, port=port, operator=True, keep_logs=keep_logs)
    terminal.run(lambda: run_with_samples(wish))


@app.command()
def down(
    *,
    name: Name = "default",
    everything: Annotated[bool, typer.Option("--all", help="End every control plane.")] = False,
) -> None:
    """End a control plane and remove everything of it."""
    terminal.run(lambda: _end(name, everything=everything))


async def _end(name: str, *, everything: bool) -> None:
    from pequod.dev.background import ended

    states = [state for _, state in instances.instances()] if everything else [_state(name)]
    for state in states:
        with suppress(ProcessLookupError):
            os.kill(state.supervisor.pid, signal.SIGTERM)
    for state in states:
        await ended(state)
        terminal.errors.print(f"{state.name} is gone.")


def _state(name: str) -> instances.State:
    return instances.find(name)[1]


@app.command()
def status() -> None:
    """List the control planes of this machine."""
    terminal.run(_status)


async def _status() -> None:
    from rich.table import Table

    found = instances.instances()
    if not found:
        terminal.errors.print("No control plane is running. `pequod dev up` starts one.")
        return
    columns = ("Name", "Phase", "Node", "Server", "Registry", "Components")
    table = Table(*columns, box=None, pad_edge=False)
    for _, state in found:
        alive = [name for name, process in state.components.items() if process.alive]
        names = ", ".join(sorted(alive))
        where = (state.server, state.registry)
        table.add_row(state.name, state.phase, state.node, *where, names)
    terminal.output.print(table)


@app.command()
def kubeconfig(
    *,
    name: Name = "default",
    path: Annotated[bool, typer.Option("--path", help="Print where it is instead.")] = False,
) -> None:
    """Print the kubeconfig of a control plane."""
    terminal.run(lambda: _kubeconfig(name, path=path))


async def _kubeconfig(name: str, *, path: bool) -> None:
    instance, state = instances.find(name)
    if state.phase != "Ready":
        raise DevError(
            f"the control plane {name} is still starting",
            next_step="Wait for `pequod dev status` to say Ready.",
        )
    file = instance.layout.kubeconfig
    typer.echo(str(file) if path else file.read_text(), nl=path)


@app.command(
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
    add_help_option=False,
)
def kubectl(context: typer.Context) -> None:
    """Run kubectl as the control plane has it, against $KUBECONFIG or the default control plane."""
    command = terminal.run(lambda: _kubectl_command(context.args))
    os.execv(command[0], command)


async def _kubectl_command(arguments: list[str]) -> list[str]:
    if "KUBECONFIG" not in os.environ:
        instance, _ = instances.find("default")
        os.environ["KUBECONFIG"] = str(instance.layout.kubeconfig)
        os.environ["KUBECACHEDIR"] = str(instance.layout.kubectl_cache)
    with terminal.build_progress() as report:
        programs = await find_programs(("kubectl",), report)
    return [*programs.command("kubectl", *arguments)]


@app.command("exec", context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def execute(
    context: typer.Context,
    *,
    name: Name = "default",
) -> None:
    """Run a program inside a real node: `pequod dev exec ctr --namespace k8s.io images list`."""
    command = terminal.run(lambda: _inside_command(name, context.args))
    os.execvp(command[0], command)


async def _inside_command(name: str, arguments: list[str]) -> list[str]:
    from pequod.dev.node.real import enter, first_process

    _, state = instances.find(name)
    foundation = state.components.get("node")
    if foundation is None or not arguments:
        raise DevError(
            f"the control plane {name} has no real node" if arguments else "no program was named",
            next_step="Start one with `pequod dev up --node real`, then name a program to run.",
        )
    return [*enter(first_process(foundation.pid)), *arguments]


@app.command()
def build(*, node: NodeOption = "simulated") -> None:
    """Build what is not in the cache yet: the evaluator, and what a control plane needs."""
    terminal.run(lambda: _build(Wish(node=node)))


async def _build(wish: Wish) -> None:
    with terminal.build_progress() as report:
        await find_evaluator(report)
        await programs_for(wish, report)


@app.command()
def tools() -> None:
    """Install jj, and what a real node needs, where possible; say what is missing elsewhere."""
    terminal.run(_tools)


async def _tools() -> None:
    from pequod.dev.jujutsu import ensure_jujutsu
    from pequod.dev.node import packages

    with _only_said_outside_ci(), terminal.build_progress() as report:
        await ensure_jujutsu(report)
    with _only_said_outside_ci():
        await packages.install_packages(terminal.errors.print)
    obstacle = packages.obstacle()
    if obstacle is None:
        with terminal.build_progress() as report:
            await programs_for(Wish(node="real"), report)
    else:
        terminal.errors.print(f"[yellow]No real node here:[/] {obstacle}. {obstacle.next_step}")


@contextmanager
def _only_said_outside_ci() -> Iterator[None]:
    """Go on without a tool on somebody's own machine, but never where everything is tested."""
    try:
        yield
    except DevError as error:
        if "CI" in os.environ:
            raise
        terminal.errors.print(f"{error.problem}\n{error.next_step}", markup=False)
