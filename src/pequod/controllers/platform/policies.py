"""The platform's own policies: sets of them, named by the operator's flags, chosen by namespace."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field

from pequod.api import reasons
from pequod.base.flights import Flights
from pequod.kube.cache import Cache, Projection
from pequod.kube.objects import Described, Key
from pequod.runtime.verdicts import Stalled
from pequod.sources.artifact import Artifact
from pequod.sources.errors import SourceError
from pequod.sources.resolver import Reference, Resolver

INTERVAL = 600.0
"""Seconds after which a reference to policies is resolved again."""
LABEL = "pequod.io/policies"
"""On a Namespace: the set of policies that Transforms in it are judged by."""
DEFAULT = ""
"""The set for namespaces that choose none."""

Sets = Mapping[str, Reference | None]


PROJECTION = Projection(Described, metadata_only=True)


class PoliciesAwayError(Exception):
    """The platform's own policies cannot be had: nothing is let through until they can."""

    def __init__(self, error: SourceError) -> None:
        super().__init__(
            f"the platform's policies cannot be fetched: {error}; tell those who run the operator"
        )
        self.reason = error.reason


@dataclass(slots=True)
class PlatformPolicies:
    """Where the policies come from; a set without a reference has none."""

    resolver: Resolver
    sets: Sets
    namespaces: Cache[Described] | None = None
    """Without it the default set is for all."""
    _known: dict[Reference, tuple[Artifact, float]] = field(default_factory=dict)
    _asking: Flights[Artifact] = field(default_factory=Flights)

    async def current(self, namespace: str) -> Artifact | None:
        """The policies in force in a namespace.

        Raises PoliciesAwayError: without them nothing is judged.
        """
        reference = self._reference(namespace)
        if reference is None:
            return None
        now = asyncio.get_running_loop().time()
        known = self._known.get(reference)
        if known is None or now - known[1] > INTERVAL:
            try:
                found = await self._asking.share(
                    reference, lambda: self.resolver.resolve(reference)
                )
            except SourceError as error:
                raise PoliciesAwayError(error) from error
            known = self._known[reference] = (found, now)
        return known[0]

    def forget(self, artifact: Artifact) -> None:
        """A tree is gone: if it was one of policies, it is fetched anew."""
        self._known = {
            reference: known for reference, known in self._known.items() if known[0] != artifact
        }

    def _reference(self, namespace: str) -> Reference | None:
        name = self._chosen(namespace)
        if name not in self.sets:
            known = ", ".join(sorted(one for one in self.sets if one)) or "none"
            raise Stalled(
                reasons.UNKNOWN_POLICIES,
                f"Namespace {namespace} asks for the policies {name} ({LABEL}), which the operator "
                f"does not have; it has: {known}. Correct the label, or start the operator with "
                f"--policy-set {name}=MODULE",
                after=INTERVAL,
            )
        return self.sets[name]

    def _chosen(self, namespace: str) -> str:
        if self.namespaces is None:
            return DEFAULT
        found = self.namespaces.get(Key("", namespace))
        if not isinstance(found, Described):
            return DEFAULT
        return found.metadata.labels.get(LABEL, DEFAULT)
