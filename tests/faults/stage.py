"""Where faults are played: a control plane, a proxy that fails on demand, an operator behind it.

The operator is a real process. When it is killed, another one takes its place, as a kubelet would
see to it; both speak to the API server by way of the proxy, and everybody else directly.
"""

import asyncio
import re
import secrets
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TypeVar

from clusters import Api
from faultproxy import Call, FaultProxy, Match, fault_proxy
from graphs import Graphs, grant
from instances import Foreground
from operators import ACCOUNT, NAMESPACE, Operator, operator_token
from pequod.base.tasks import end
from pequod.kube.kubeconfig import own_access
from waiting import eventually

T = TypeVar("T")

PATIENCE = 120.0
_NOT_OF_GRAPHS = ("/events", "/leases/", "/token")


def writes_of(namespace: str) -> Match:
    """What is written to graphs of a namespace, and to their objects."""
    place = re.compile(rf"^/apis?/.*/namespaces/{namespace}/[^/?]+")

    def matches(call: Call) -> bool:
        return (
            call.writes
            and place.match(call.path) is not None
            and not any(part in call.path for part in _NOT_OF_GRAPHS)
        )

    return matches


def in_thread(ask: Callable[[], T]) -> Awaitable[T]:
    """Ask something that blocks, without stopping the proxy."""
    return asyncio.to_thread(ask)


class Stage:
    """The operator behind its proxy."""

    def __init__(self, api: Api, proxy: FaultProxy, kubeconfig: Path, logs: Path) -> None:
        self.api = api
        self.proxy = proxy
        self.starts = 0
        self.operator: Operator
        self._kubeconfig = kubeconfig
        self._logs = logs
        self.held = False
        """Whether there is no operator until it is resumed."""
        self._begin()

    def _begin(self) -> None:
        self.starts += 1
        log = self._logs / f"operator-{self.starts}.log"
        self.operator = Operator(self._kubeconfig, log, "--no-leader-election")

    async def keep(self) -> None:
        """Start another operator whenever one has died."""
        while True:
            if self.operator.process.poll() is not None and not self.held:
                self._begin()
            await asyncio.sleep(0.02)

    def kill(self, *, hold: bool = False) -> None:
        """Kill the operator, and let another one begin: at once, or when it is resumed."""
        self.held = self.held or hold
        self.operator.process.kill()
        self.operator.process.wait()

    def resume(self) -> None:
        self.held = False

    @asynccontextmanager
    async def without_operator(self) -> AsyncIterator[None]:
        """Kill the operator; the next one begins after the block."""
        self.kill(hold=True)
        try:
            yield
        finally:
            self.resume()

    async def ready(self) -> None:
        """Wait until the operator says that it is."""
        await eventually(
            lambda: in_thread(lambda: self.operator.page("/readyz")[0] == 200),
            "the operator is ready",
            within=PATIENCE,
        )

    async def namespace(self) -> Graphs:
        """A namespace of a run's own, with an account that may do everything in it."""
        return await in_thread(self._namespace)

    def _namespace(self) -> Graphs:
        name = f"run-{secrets.token_hex(5)}"
        made = self.api.create("/api/v1/namespaces", {"metadata": {"name": name}})
        assert made.code == 201, made.message
        grant(self.api, name)
        user = f"system:serviceaccount:{NAMESPACE}:{ACCOUNT}"
        return Graphs(self.api, name, self.api.acting_as(user, group="system:masters"))

    async def until(
        self, condition: Callable[[], bool], what: str, *, within: float = PATIENCE
    ) -> None:
        """Wait for something that the API server has to be asked for."""
        try:
            await eventually(lambda: in_thread(condition), what, within=within)
        except AssertionError as error:
            tail = "\n".join(self.operator.text.splitlines()[-15:])
            raise AssertionError(f"{error}\nThe operator said last:\n{tail}") from None

    def writes(self, namespace: str) -> list[Call]:
        """What the operator has written to graphs of a namespace and to their objects."""
        return self.proxy.asked(writes_of(namespace))


@asynccontextmanager
async def stage(plane: Foreground, folder: Path) -> AsyncIterator[Stage]:
    """An operator behind a proxy, for the length of a block."""
    async with fault_proxy(own_access(plane.api.kubeconfig)) as proxy:
        token = await in_thread(partial(operator_token, plane.api))
        kubeconfig = proxy.kubeconfig(folder / "kubeconfig", token)
        made = Stage(plane.api, proxy, kubeconfig, folder)
        keeper = asyncio.create_task(made.keep(), name="keep the operator")
        try:
            await made.ready()
            yield made
        finally:
            await end(keeper)
            with suppress(ProcessLookupError):
                made.operator.send(signal.SIGKILL)
            await in_thread(made.operator.process.wait)
