"""Nodes that run nothing: none at all, or kwok's, whose pods become ready without a container."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from pequod.dev import components
from pequod.dev.commands import run
from pequod.dev.components import Plan
from pequod.dev.keeper import Component
from pequod.dev.programs import Programs

_MANIFESTS = Path(__file__).parents[1] / "manifests"


class NoNode:
    """A control plane alone: objects are stored and reconciled, pods stay Pending."""

    name: str | None = None

    def __init__(self, plan: Plan) -> None:
        self._plan = plan

    def foundation(self) -> Component | None:
        """Nothing comes first."""
        return None

    async def prepare(self, foundation: int | None) -> None:
        """Nothing to do."""

    def components(self) -> Sequence[Component]:
        """Nothing to run."""
        return ()

    async def complete(self) -> None:
        """Nothing to do."""

    def manifests(self) -> Sequence[dict[str, Any]]:
        """Nothing to apply."""
        return ()

    def inside(self, command: tuple[str, ...]) -> tuple[str, ...]:
        """There is no inside."""
        return command

    def seen_inside(self) -> Plan:
        """There is no inside."""
        return self._plan


class SimulatedNode(NoNode):
    """One large node by kwok: pods run, Jobs complete, volumes are bound."""

    name = "simulated"

    def __init__(self, plan: Plan, programs: Programs) -> None:
        super().__init__(plan)
        self._programs = programs

    async def prepare(self, foundation: int | None) -> None:  # noqa: ARG002 -- the protocol's
        """Write how simulated things live: kwok's own stages, and ours for volumes."""
        config = self._plan.layout.config
        rebuild = "Delete the cache folder, so that the program is built again."
        stages = await run(*self._programs.command("kwok-stages"), next_step=rebuild)
        (config / "kwok-stages.yaml").write_text(stages)
        (config / "kwok-volumes.yaml").write_bytes((_MANIFESTS / "kwok-volumes.yaml").read_bytes())

    def components(self) -> Sequence[Component]:
        """Kwok."""
        command = self._programs.command("kwok", *components.kwok(self._plan))
        return (Component(name="kwok", command=command),)

    def manifests(self) -> Sequence[dict[str, Any]]:
        """The Node, and the class of its volumes."""
        return [*yaml.load_all((_MANIFESTS / "simulated.yaml").read_bytes(), yaml.CSafeLoader)]
