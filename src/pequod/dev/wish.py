"""What a person asks for, and the programs that it takes."""

from dataclasses import dataclass
from pathlib import Path

from pequod.dev import programs
from pequod.dev.builds import Report
from pequod.dev.components import NodeKind
from pequod.dev.node import packages
from pequod.dev.programs import Programs


@dataclass(frozen=True, kw_only=True)
class Wish:
    """What a person asked for."""

    name: str = "default"
    node: NodeKind = "simulated"
    port: int = 0
    """Port of the API server; a free one for 0."""
    crds: bool = False
    """Whether our CRDs and the admission policy are there from the start."""
    operator: bool = False
    """Whether the operator runs as well; it needs the CRDs."""
    api_server: tuple[str, ...] = ()
    """Flags for the API server besides our own, each as `name=value`."""
    keep_logs: Path | None = None
    """Where the logs of the components are copied to at the end."""


async def programs_for(wish: Wish, report: Report) -> Programs:
    """Every program that the wish needs, built if need be."""
    extra = {
        "none": (),
        "simulated": programs.SIMULATED_NODE,
        "real": programs.REAL_NODE,
    }[wish.node]
    if wish.node == "real" and (obstacle := packages.obstacle()):
        raise obstacle
    found = await programs.find_programs((*programs.BASIC, *extra), report)
    if wish.node == "real":
        found = Programs(found.commands | (await programs.find_add_ons(report)).commands)
    return found
