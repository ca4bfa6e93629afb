"""Sensitive parts that were stored a moment ago, for the first passes over the graph that has them.

Whoever executes a graph reads its sensitive parts in the tenant's name. What this very process has
just put there need not be read back: it is handed over for a while, for the graph and the
generation that it was stored with, and for no other.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field

from pequod.api.platform import ResourceGraph

LIFETIME = 60.0
"""Seconds for which something is handed over."""

Parts = Mapping[tuple[str, str], bytes]
"""By the names of Secrets and the keys in them."""


@dataclass(frozen=True, slots=True)
class _Handed:
    generation: int
    until: float
    parts: Parts = field(repr=False)


class Handover:
    """Where parts wait for their graphs."""

    def __init__(self) -> None:
        self._handed: dict[str, _Handed] = {}

    def put(self, graph: ResourceGraph, parts: Parts) -> None:
        """Leave the parts of a graph for its next passes."""
        if parts:
            loop, uid = asyncio.get_running_loop(), graph.metadata.uid
            until = loop.time() + LIFETIME
            self._handed[uid] = _Handed(graph.metadata.generation, until, parts)
            loop.call_at(until, self._expire, uid)

    def of(self, graph: ResourceGraph) -> Parts:
        """What was handed over for a graph as it is now."""
        found = self._handed.get(graph.metadata.uid)
        return found.parts if found and found.generation == graph.metadata.generation else {}

    def drop(self, uid: str) -> None:
        """A graph is gone."""
        self._handed.pop(uid, None)

    def clear(self) -> None:
        """Somebody else executes graphs from now on."""
        self._handed.clear()

    def _expire(self, uid: str) -> None:
        found = self._handed.get(uid)
        if found is not None and found.until <= asyncio.get_running_loop().time():
            del self._handed[uid]
