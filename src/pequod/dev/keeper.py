"""Keeping one component running: started again when it dies, given up when it keeps dying."""

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from pequod.dev.failure import DevError
from pequod.dev.layout import Layout
from pequod.dev.ports import is_taken
from pequod.dev.process import Process

FATAL_EXITS = 6
FATAL_WINDOW = 30.0
RESTART_DELAY = 0.3


class PortTakenError(DevError):
    """Somebody took a port between our choosing it and a component's using it."""


@dataclass(frozen=True, kw_only=True)
class Component:
    """A program of the control plane, by the name that a person knows it by."""

    name: str
    command: tuple[str, ...]
    listens: tuple[tuple[str, int], ...] = ()
    """Addresses that nobody else may hold."""
    restarted: bool = True
    """Whether it is started again when it ends; otherwise its end is the end of everything."""


def _listed(component: Component) -> str:
    return " and ".join(f"{address}:{port}" for address, port in component.listens)


class Keeper:
    """Runs one component until it is told to stop."""

    def __init__(self, component: Component, layout: Layout, changed: Callable[[], None]) -> None:
        self.component = component
        self.process: Process | None = None
        self._log = layout.logs / f"{component.name}.log"
        self._changed = changed
        self.started = asyncio.Event()
        self._exits: deque[float] = deque(maxlen=FATAL_EXITS)

    async def until_started(self) -> None:
        """Wait until the component has been started for the first time."""
        await self.started.wait()

    async def run(self) -> None:
        """Run the component, again and again; ends with an error when that has no hope."""
        try:
            while True:
                await self._run_once()
                await asyncio.sleep(RESTART_DELAY)
        finally:
            if self.process is not None:
                await self.process.kill()

    async def _run_once(self) -> None:
        name = self.component.name
        self.process = await Process.start(name, self.component.command, log=self._log)
        self.started.set()
        self._changed()
        code = await self.process.wait()
        self._changed()
        self._exits.append(asyncio.get_running_loop().time())
        words = self.process.last_words()
        if not self.component.restarted:
            raise DevError(
                f"{name} ended with exit code {code}:\n{words}",
                next_step="Nothing can go on without it; start again.",
            )
        if any(is_taken(address, port) for address, port in self.component.listens):
            raise PortTakenError(
                f"{name} needs {_listed(self.component)}, which another program has taken",
                next_step="End that program, or try again: other ports are chosen anew each time.",
            )
        if len(self._exits) == FATAL_EXITS and self._exits[-1] - self._exits[0] < FATAL_WINDOW:
            raise DevError(
                f"{name} keeps ending, last with exit code {code}:\n{words}",
                next_step="Run it again with --keep-logs to read its whole log.",
            )
