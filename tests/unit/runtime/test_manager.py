"""What runs together ends together, and nothing that has ended looks alive."""

import asyncio
from typing import Any, cast

import pytest
from structlog.testing import capture_logs

from pequod.kube.caches import Caches
from pequod.kube.client import Client
from pequod.runtime.controller import Controller
from pequod.runtime.events import Recorder
from pequod.runtime.leader import Leadership
from pequod.runtime.lease import Lease, Term
from pequod.runtime.manager import Manager


class OneController:
    """Runs until it is told to do something else."""

    name = "one"
    kind = "One.v1"

    def __init__(self) -> None:
        self.synced = True
        self.runs = 0
        self.running = False
        self.fails: BaseException | None = None
        self.changed = asyncio.Event()

    async def run(self) -> None:
        self.runs += 1
        self.running = True
        try:
            await self.changed.wait()
            if self.fails is not None:
                raise self.fails
        finally:
            self.running = False

    async def drain(self, _within: float) -> None:
        return None


class Store:
    """A Lease that anybody may take from us."""

    def __init__(self) -> None:
        self.lease: Lease | None = None
        self.breaks = False

    async def read(self) -> Lease | None:
        if self.breaks:
            raise RuntimeError("can't start new thread")
        return self.lease

    async def write(self, term: Term, *, over: Lease | None) -> Lease:
        self.lease = Lease(str(int(over.version) + 1 if over else 1), term)
        return self.lease


def manager(one: OneController, leadership: Leadership | None = None) -> Manager:
    client = cast("Client", None)
    return Manager(
        [cast("Controller[Any]", one)],
        caches=Caches(client),
        recorder=Recorder(client, instance="test"),
        leadership=leadership,
    )


async def started(one: OneController) -> None:
    async with asyncio.timeout(5):
        while not one.running:
            await asyncio.sleep(0)


async def test_being_told_to_stop_ends_everything_and_gives_the_lease_back() -> None:
    one, store, stop = OneController(), Store(), asyncio.Event()
    with capture_logs():
        leadership = Leadership(store, identity="me")
        running = asyncio.create_task(manager(one, leadership).run(stop))
        await started(one)
        stop.set()
        await running
    assert not one.running
    assert store.lease is not None
    assert store.lease.term.holder_identity == ""


@pytest.mark.parametrize("fails", [None, ZeroDivisionError(), asyncio.CancelledError()])
async def test_a_controller_that_ends_by_itself_is_the_end_of_the_operator(
    fails: BaseException | None,
) -> None:
    one = OneController()
    one.fails = fails
    with capture_logs():
        running = asyncio.create_task(manager(one).run(asyncio.Event()))
        await started(one)
        one.changed.set()
        with pytest.raises(ExceptionGroup, match="unhandled errors") as raised:
            async with asyncio.timeout(5):
                await running
    assert raised.group_contains(RuntimeError, match="the controller one ended")


async def test_an_election_that_breaks_is_the_end_of_the_operator() -> None:
    one, store = OneController(), Store()
    store.breaks = True
    with pytest.raises(ExceptionGroup) as raised:
        async with asyncio.timeout(5):
            await manager(one, Leadership(store, identity="me")).run(asyncio.Event())
    assert raised.group_contains(RuntimeError, match="thread")


async def test_readiness_names_the_kind_that_is_missing() -> None:
    one = OneController()
    one.synced = False
    page = manager(one).ready()["caches"]
    with pytest.raises(Exception, match=r"not listed yet, for One\.v1"):
        await page()
    one.synced = True
    assert await page() == "ok"
