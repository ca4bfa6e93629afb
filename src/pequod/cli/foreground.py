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

from rich.console import Group, RenderableType
from rich.live import Live

from pequod.api.platform import Transform
from pequod.cli import terminal
from pequod.cli.samples import samples_table
from pequod.cli.trees import Drawing
from pequod.dev.controlplane import ControlPlane
from pequod.dev.credentials import access
from pequod.dev.places import shipped
from pequod.dev.session import session
from pequod.dev.wish import Wish, programs_for
from pequod.kube.client import Client
from pequod.kube.errors import KubeError
from pequod.kube.questions import Questions
from pequod.kube.transport import Transport

_REFRESH = 1.0
_SAMPLE = ("default", "hello")
"""Namespace and name of the Transform whose tree is shown: that of deploy/samples."""


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
    here = shlex.quote(sys.argv[0])
    pequod = "pequod" if shutil.which("pequod") else here
    kubectl = "kubectl" if shutil.which("kubectl") else f"{here} dev kubectl"
    patch = f"{kubectl} patch transform hello --type=merge -p"
    things = (
        ("everything, and how it does", f"{kubectl} get pequod --all-namespaces"),
        ("what a Transform became", f"{pequod} tree transform/hello"),
        ("delete an object: it comes back", f"{kubectl} delete service hello"),
        ("change the input", f"""{patch} '{{"spec": {{"input": {{"replicas": 3}}}}}}'"""),
        ("go back", f"{pequod} rollback hello"),
        ("and forward again", f"{pequod} rollback hello --forward"),
        ("break it: what runs stays", f"""{patch} '{{"spec": {{"input": {{"port": 70000}}}}}}'"""),
        ("and mend it", f"""{patch} '{{"spec": {{"input": {{"port": 8080}}}}}}'"""),
        ("what another sample would make", f"{pequod} plan {_sample('webservice.yaml')}"),
        ("a graph made by hand", f"{kubectl} describe resourcegraph by-hand"),
        ("this cluster", f"{kubectl} describe clusters.ajj.io in-cluster"),
    )
    width = max(len(what) for what, _ in things)
    lines = [f"  {what:{width}}  {command}" for what, command in things]
    first = f"  {export_line(plane.plan.layout.kubeconfig)}"
    terminal.say("\n".join(["In another terminal:", first, "Then try:", *lines, ""]))


def _sample(name: str) -> str:
    """A sample that is not applied yet, as somebody names it who is here."""
    path, here = shipped("deploy/samples/platform") / name, Path.cwd()
    return shlex.quote(str(path.relative_to(here) if path.is_relative_to(here) else path))


class _Picture:
    """The samples as a table, and what became of the Transform among them as a tree."""

    def __init__(self, questions: Questions, client: Client) -> None:
        self._questions = questions
        namespace, name = _SAMPLE
        self._drawing = Drawing(client, namespace, name, Transform)

    async def drawn(self) -> RenderableType:
        """As things are now; without the tree where there is none."""
        table = await samples_table(self._questions)
        try:
            return Group(table, "", await self._drawing.tree())
        except KubeError:
            return table


async def _show_changes(picture: _Picture) -> None:
    """Print the picture each time that it has changed: for a log, or a program that reads along."""
    shown = ""
    while True:
        with terminal.output.capture() as capture:
            terminal.output.print(await picture.drawn(), soft_wrap=False)
        if capture.get() != shown:
            shown = capture.get()
            terminal.say(shown)
        await asyncio.sleep(_REFRESH)


async def _show_samples(plane: ControlPlane) -> None:
    transport = Transport(access(plane.plan))
    try:
        async with Questions(access(plane.plan)) as questions:
            picture = _Picture(questions, Client(transport))
            if not terminal.output.is_terminal:
                await _show_changes(picture)
            with Live(await picture.drawn(), console=terminal.output) as live:
                while True:
                    await asyncio.sleep(_REFRESH)
                    live.update(await picture.drawn())
    finally:
        await transport.close()
