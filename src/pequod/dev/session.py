"""One run of a control plane, from the wish for it to its end."""

import asyncio
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from pequod.dev import instances
from pequod.dev.components import Network, Plan
from pequod.dev.controlplane import ControlPlane, running
from pequod.dev.instances import Instance, State
from pequod.dev.keeper import PortTakenError
from pequod.dev.node import Node, leftovers
from pequod.dev.node.network import Slot, claim_slot
from pequod.dev.node.real import RealNode
from pequod.dev.node.simulated import NoNode, SimulatedNode
from pequod.dev.places import shipped
from pequod.dev.ports import free_ports
from pequod.dev.programs import Programs
from pequod.dev.wish import Wish

_ATTEMPTS = 3


@asynccontextmanager
async def session(wish: Wish, found: Programs) -> AsyncIterator[ControlPlane]:
    """A control plane that is ready inside the block and of which nothing is left after it."""
    instance, state = await asyncio.to_thread(instances.claim, wish.name, wish.node)
    try:
        async with _first_that_starts(wish, found, instance, state) as plane:
            if wish.crds:
                await plane.kubectl.apply_folder(shipped("deploy/crds"))
            state.phase = "Ready"
            state.server = plane.plan.server
            instance.write(state)
            yield plane
    finally:
        if wish.keep_logs is not None:
            shutil.copytree(instance.layout.logs, wish.keep_logs, dirs_exist_ok=True)
        await asyncio.to_thread(instance.remove)


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
            shutil.rmtree(instance.layout.root)
            instance.layout.create()
            instance.write(state)
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
    )
    return ControlPlane(
        plan,
        found,
        node=_node(plan, found, slot),
        listener=lambda pids: instance.publish(state, pids),
    )


async def _claimed_slot(instance: Instance) -> Slot:
    slot = await claim_slot()
    leftovers.write_down(instance.layout, slot)
    return slot


def _node(plan: Plan, found: Programs, slot: Slot | None) -> Node:
    if slot is not None:
        return RealNode(plan, found, slot=slot)
    if plan.node == "simulated":
        return SimulatedNode(plan, found)
    return NoNode(plan)
