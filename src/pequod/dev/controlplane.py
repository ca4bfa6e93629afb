"""A control plane, running: started in order, kept running, ended without a trace."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from pequod.dev import components
from pequod.dev.components import Plan
from pequod.dev.credentials import access, write_credentials
from pequod.dev.failure import DevError
from pequod.dev.keeper import Component, Keeper
from pequod.dev.kubectl import Kubectl
from pequod.dev.node import Node
from pequod.dev.operator import operator, operator_ready, write_operator_account
from pequod.dev.programs import Programs
from pequod.kube.questions import Questions

START_TIMEOUT = 90.0
_POLL = 0.05

Listener = Callable[[dict[str, int]], None]


class ControlPlane:
    """The components of one plan."""

    def __init__(self, plan: Plan, programs: Programs, *, node: Node, listener: Listener) -> None:
        self.plan = plan
        self.kubectl = Kubectl.of(programs, plan.layout)
        self._programs = programs
        self._node = node
        self._listener = listener
        self._keepers: dict[str, Keeper] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self.waiting_until = "the components are prepared"

    async def start(self, *, name: str) -> None:
        """Return as soon as pods can be created and, with a node, scheduled."""
        async with asyncio.timeout(START_TIMEOUT):
            await asyncio.to_thread(write_credentials, self.plan, name=name)
            await self._unless_failed(self._node.prepare(await self._start_foundation()))
            self._keep("etcd", components.etcd(self.plan))
            self._keep("kube-apiserver", components.api_server(self.plan))
            async with Questions(access(self.plan)) as questions:
                await self._until("the API server answers", questions.answers)
                self._start_the_rest()
                await self._unless_failed(self._node.complete())
                await self._until("the API server is ready", questions.ready)
                await self.kubectl.apply(self._node.manifests())
                await self._until("pods can be created", lambda: _accounts_exist(questions))
                await self._until("the node is ready", lambda: self._node_ready(questions))

    async def _start_foundation(self) -> int | None:
        foundation = self._node.foundation()
        if foundation is None:
            return None
        keeper = self._run(foundation)
        await self._unless_failed(keeper.until_started())
        assert keeper.process is not None, "it has started"
        return keeper.process.pid

    def _start_the_rest(self) -> None:
        arguments = components.controller_manager(self._node.seen_inside())
        self._keep("kube-controller-manager", arguments, inside=True)
        self._keep("kube-scheduler", components.scheduler(self.plan))
        for component in self._node.components():
            self._run(component)

    async def run_operator(self, *, name: str) -> None:
        """Run the operator as well; return once it can reconcile."""
        async with asyncio.timeout(START_TIMEOUT):
            await write_operator_account(self.plan, self.kubectl, name=name)
            self._run(operator(self.plan))
            await self._until("the operator is ready", lambda: operator_ready(self.plan))

    async def failed(self) -> None:
        """Wait until a component cannot be kept running, and raise what is known of it."""
        await asyncio.wait(self._tasks.values(), return_when=asyncio.FIRST_COMPLETED)
        self._raise_failures()

    async def stop(self) -> None:
        """End every component; what else there is goes with the directory of the control plane."""
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    def _keep(self, name: str, arguments: list[str], *, inside: bool = False) -> None:
        command = self._programs.command(name, *arguments)
        command = self._node.inside(command) if inside else command
        listens = components.addresses(self.plan)[name]
        self._run(Component(name=name, command=command, listens=listens))

    def _run(self, component: Component) -> Keeper:
        keeper = Keeper(component, self.plan.layout, self._publish)
        self._keepers[component.name] = keeper
        self._tasks[component.name] = asyncio.create_task(keeper.run(), name=component.name)
        return keeper

    def _publish(self) -> None:
        running = {
            name: keeper.process.pid
            for name, keeper in self._keepers.items()
            if keeper.process is not None and keeper.process.exit_code is None
        }
        self._listener(running)

    async def _until(self, what: str, condition: Callable[[], Awaitable[bool]]) -> None:
        self.waiting_until = what
        while not await condition():
            self._raise_failures()
            await asyncio.sleep(_POLL)

    async def _unless_failed(self, work: Coroutine[Any, Any, None]) -> None:
        """Do some work, unless a component that it may wait for fails first."""
        task = asyncio.create_task(work)
        try:
            waited = (task, *self._tasks.values())
            await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
            self._raise_failures()
            await task
        finally:
            task.cancel()

    def _raise_failures(self) -> None:
        for task in self._tasks.values():
            if task.done():
                task.result()

    async def _node_ready(self, questions: Questions) -> bool:
        name = self._node.name
        if name is None:
            return True
        node = await questions.read(f"/api/v1/nodes/{name}")
        conditions = (node or {}).get("status", {}).get("conditions", ())
        return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)


async def _accounts_exist(questions: Questions) -> bool:
    return await questions.read("/api/v1/namespaces/default/serviceaccounts/default") is not None


@contextmanager
def patience(plane: ControlPlane) -> Iterator[None]:
    """Say what was waited for when it took too long."""
    try:
        yield
    except TimeoutError as error:
        raise DevError(
            f"after {START_TIMEOUT:.0f} s it was still not true that {plane.waiting_until}",
            next_step="Is the machine very busy? Try again, with --keep-logs to see more.",
        ) from error


@asynccontextmanager
async def running(plane: ControlPlane, *, name: str) -> AsyncIterator[ControlPlane]:
    """A control plane that is up inside the block and gone after it."""
    try:
        with patience(plane):
            await plane.start(name=name)
        yield plane
    finally:
        await plane.stop()
