"""The platform's own policies: one module for all Transforms, named by the operator's flag."""

import asyncio
from dataclasses import dataclass

from pequod.base.flights import Flights
from pequod.sources.artifact import Artifact
from pequod.sources.resolver import Reference, Resolver

INTERVAL = 600.0
"""Seconds after which a reference to policies is resolved again."""


@dataclass(slots=True)
class PlatformPolicies:
    """Where the policies come from; without a reference there are none."""

    resolver: Resolver
    reference: Reference | None
    _known: Artifact | None = None
    _at: float = 0.0
    _asking: Flights[Artifact] | None = None

    async def current(self) -> Artifact | None:
        """The policies in force; raises a SourceError: without them nothing is judged."""
        reference = self.reference
        if reference is None:
            return None
        now = asyncio.get_running_loop().time()
        if self._known is None or now - self._at > INTERVAL:
            self._asking = self._asking or Flights()
            self._known = await self._asking.share(
                "policies", lambda: self.resolver.resolve(reference)
            )
            self._at = now
        return self._known
