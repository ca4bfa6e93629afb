"""One run of a control plane, from the wish for it to its end."""

import asyncio
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from pequod.dev import instances
from pequod.dev.components import Network, Plan
from pequod.dev.controlplane import ControlPlane, patience, running
from pequod.dev.failure import DevError
from pequod.dev.instances import Instance, State
from pequod.dev.keeper import PortTakenError
from pequod.dev.node import Node, leftovers
from pequod.dev.node.network import Slot, claim_slot
from pequod.dev.node.real import RealNode
from pequod.dev.node.simulated import NoNode, SimulatedNode
from pequod.dev.ports import free_ports
from pequod.dev.programs import Programs
from pequod.dev.wish import Wish

_ATTEMPTS = 3


@asynccontextmanager
async def session(wish: Wish, found: Programs) -> AsyncIterator[ControlPlane]:
    """A control plane that is ready inside the block and of which nothing is left after it."""
    _require_place_for_logs(wish)
    instance, state = await asyncio.to_thread(instances.claim, wish.name, wish.node)
    try:
        async with _first_that_starts(wish, found, instance, state) as plane:
            if wish.crds or wish.operator:
                await plane.kubectl.install_kinds()
            if wish.operator:
                with patience(plane):
                    await plane.run_operator(name=wish.name)
            state.phase = "Ready"
            state.server = plane.plan.server
            if plane.plan.network.node is not None:
                state.registry = f"{plane.plan.network.host}:{plane.plan.ports.registry}"
            instance.write(state)
            yield plane
    finally:
        try:
            if wish.keep_logs is not None:
                shutil.copytree(instance.layout.logs, wish.keep_logs, dirs_exist_ok=True)
        finally:
            await asyncio.to_thread(instances.release, instance)


def _require_place_for_logs(wish: Wish) -> None:
    """Find out now, not at the end, that the logs cannot be kept there."""
    if wish.keep_logs is None:
        return
    try:
        wish.keep_logs.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DevError(
            f"logs cannot be kept in {wish.keep_logs}: {error.strerror}",
            next_step="Name a folder for --keep-logs that you may write to.",
        ) from error


@asynccontextmanager
async def _first_that_starts(
    wish: Wish, found: Programs, instance: Instance, state: State
) -> AsyncIterator[ControlPlane]:
    """Try again with other ports when somebody was faster, unless one port was insisted upon."""
    for attempt in range(1, _ATTEMPTS + 1):
        plane = await _plane(wish, found, instance, state)
        started = False
        try:
            async with running(plane, name=wish.name):
                started = True
                yield plane
        except PortTakenError:
            if started or wish.port or attempt == _ATTEMPTS:
                raise
            await asyncio.to_thread(instances.reset, instance, state)
        else:
            return


async def _plane(wish: Wish, found: Programs, instance: Instance, state: State) -> ControlPlane:
    slot = await _claimed_slot(instance) if wish.node == "real" else None
    network = slot.network if slot else Network()
    plan = Plan(
        layout=instance.layout,
        ports=free_ports(network.host, api_server=wish.port),
        network=network,
        node=wish.node,
        api_server=wish.api_server,
    )
    return ControlPlane(
        plan,
        found,
        node=_node(plan, found, slot),
        listener=lambda pids: instance.publish(state, pids),
    )


async def _claimed_slot(instance: Instance) -> Slot:
    return await claim_slot(leftovers.new_owner(instance.layout))


def _node(plan: Plan, found: Programs, slot: Slot | None) -> Node:
    if slot is not None:
        return RealNode(plan, found, slot=slot)
    if plan.node == "simulated":
        return SimulatedNode(plan, found)
    return NoNode(plan)
