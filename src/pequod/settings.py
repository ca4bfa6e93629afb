"""Everything that can be said about how the operator runs; the command line fills it in."""

from dataclasses import dataclass, field
from pathlib import Path

from pequod.controllers.platform.identity import IdentityRules
from pequod.controllers.platform.limits import NamespaceLimits
from pequod.controllers.platform.policies import DEFAULT, Sets
from pequod.controllers.platform.resourcegraph import Rules
from pequod.controllers.rollup.wiring import RollupSettings
from pequod.runtime.health import Address
from pequod.runtime.leader import Timing
from pequod.sources.library import LibraryOptions

NAMESPACE = "pequod-system"
NAME = "pequod-operator"
"""Of the ServiceAccount, its roles, and the Lease."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What the flags say."""

    kubeconfig: Path | None = None
    context: str | None = None
    namespace: str = NAMESPACE
    health: Address | None = None
    metrics: Address | None = None
    leader_election: bool = True
    timing: Timing = field(default_factory=Timing)
    probe_interval: float = 60.0
    allow_local_clusters: bool = False
    identity: IdentityRules = field(default_factory=IdentityRules)
    limits: NamespaceLimits = field(default_factory=NamespaceLimits)
    abandon_after: float = 600.0
    evaluator: Path | None = None
    """The program that evaluates modules and CEL; without it there are no Transforms."""
    library: LibraryOptions | None = None
    """Where modules come from and are kept; without it there are no Transforms either."""
    policies: Sets = field(default_factory=lambda: {DEFAULT: None})
    """The platform's own policies, in sets that namespaces choose from."""
    rollup: RollupSettings = field(default_factory=RollupSettings)
    """How chains are looked at."""

    def rules(self) -> Rules:
        """What concerns graphs."""
        return Rules(
            namespace=self.namespace,
            account=NAME,
            abandon_after=self.abandon_after,
            limits=self.limits,
        )
