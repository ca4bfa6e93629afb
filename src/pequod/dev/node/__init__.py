"""What runs the pods: nothing, a simulation, or a real node.

The control plane knows a node through the protocol below only.
"""

from collections.abc import Sequence
from typing import Any, Protocol

from pequod.dev.components import Plan
from pequod.dev.keeper import Component


class Node(Protocol):
    """A node as the control plane sees it."""

    @property
    def name(self) -> str | None:
        """Name of the Node object to wait for; None where there is none."""

    def foundation(self) -> Component | None:
        """What must run before everything else, if anything."""

    async def prepare(self, foundation: int | None) -> None:
        """Make ready what the components need; the foundation runs as that process."""

    def components(self) -> Sequence[Component]:
        """What to run once the API server answers."""

    async def complete(self) -> None:
        """Do what needs the components to run."""

    def manifests(self) -> Sequence[dict[str, Any]]:
        """Objects to apply once the API server answers."""

    def inside(self, command: tuple[str, ...]) -> tuple[str, ...]:
        """The command that runs a program where it sees the node's files."""

    def seen_inside(self) -> Plan:
        """The plan with its paths as such a program sees them."""
