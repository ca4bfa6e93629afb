"""A control plane in the foreground: shown until Ctrl-C, then gone."""

import asyncio
import shlex
import shutil
import signal
import sys
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from rich.live import Live

from pequod.cli import terminal
from pequod.cli.samples import samples_table
from pequod.dev.controlplane import ControlPlane
from pequod.dev.credentials import access
from pequod.dev.places import shipped
from pequod.dev.session import session
from pequod.dev.wish import Wish, programs_for
from pequod.kube.questions import Questions

_REFRESH = 1.0


async def run_in_foreground(wish: Wish) -> None:
    """Start a control plane and keep it until somebody ends it."""
    async with _started(wish) as plane:
        terminal.say(export_line(plane.plan.layout.kubeconfig))
        await _until_told_to_stop(plane)


async def run_with_samples(wish: Wish) -> None:
    """Start a control plane with the samples in it, and show what becomes of them."""
    async with _started(wish) as plane:
        await plane.kubectl.apply_folders(shipped("deploy/samples"))
        _say_what_to_try(plane)
        showing = asyncio.create_task(_show_samples(plane))
        try:
            await _until_told_to_stop(plane)
        finally:
            showing.cancel()
            await asyncio.gather(showing, return_exceptions=True)


@asynccontextmanager
async def _started(wish: Wish) -> AsyncIterator[ControlPlane]:
    with terminal.build_progress() as report:
        programs = await programs_for(wish, report)
    begin = time.monotonic()
    async with AsyncExitStack() as stack:
        with terminal.waiting("Starting the control plane"):
            plane = await stack.enter_async_context(session(wish, programs))
        took = time.monotonic() - begin
        terminal.errors.print(
            f"[green]Ready[/] after {took:.1f} s at {plane.plan.server}. Ctrl-C ends it."
        )
        yield plane


async def _until_told_to_stop(plane: ControlPlane) -> None:
    """Wait for a signal, or for a component that cannot be kept running."""
    told = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, told.set)
    failure = asyncio.create_task(plane.failed())
    waiter = asyncio.create_task(told.wait())
    try:
        await asyncio.wait((failure, waiter), return_when=asyncio.FIRST_COMPLETED)
        if failure.done():
            failure.result()
    finally:
        failure.cancel()
        waiter.cancel()


def export_line(kubeconfig: Path) -> str:
    """What a person pastes into another terminal."""
    return f"export KUBECONFIG={shlex.quote(str(kubeconfig))}"


def _say_what_to_try(plane: ControlPlane) -> None:
    kubectl = "kubectl" if shutil.which("kubectl") else f"{shlex.quote(sys.argv[0])} dev kubectl"
    terminal.say(
        "In another terminal:\n"
        f"  {export_line(plane.plan.layout.kubeconfig)}\n"
        f"  {kubectl} get pequod --all-namespaces\n"
        f"  {kubectl} describe clusters.ajj.io in-cluster\n"
        f"  {kubectl} describe resourcegraph by-hand\n"
        f"  {kubectl} delete configmap by-hand-settings && {kubectl} get configmaps\n"
        f"  {kubectl} explain resourcegraph.spec.nodes.applyPolicy\n"
    )


async def _show_changes(questions: Questions) -> None:
    """Print the table each time that it has changed: for a log, or a program that reads along."""
    shown = ""
    while True:
        with terminal.output.capture() as capture:
            terminal.output.print(await samples_table(questions))
        if capture.get() != shown:
            shown = capture.get()
            terminal.say(shown)
        await asyncio.sleep(_REFRESH)


async def _show_samples(plane: ControlPlane) -> None:
    async with Questions(access(plane.plan)) as questions:
        if not terminal.output.is_terminal:
            await _show_changes(questions)
        with Live(await samples_table(questions), console=terminal.output) as live:
            while True:
                await asyncio.sleep(_REFRESH)
                live.update(await samples_table(questions))
