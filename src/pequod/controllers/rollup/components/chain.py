"""What the objects of a chain are made from."""

import hashlib
from dataclasses import dataclass
from typing import Literal

from pequod.api.rollup import OPChainSpec
from pequod.controllers.rollup.configuration import Configuration

Component = Literal["geth", "node", "batcher", "proposer"]
COMPONENTS: tuple[Component, ...] = ("geth", "node", "batcher", "proposer")
"""In the order in which they start."""

HTTP, WS, ENGINE, P2P, GETH_METRICS = 8545, 8546, 8551, 30303, 6060
NODE_RPC, NODE_P2P = 8547, 9003
BATCHER_RPC, PROPOSER_RPC = 8548, 8560
METRICS = 7300
"""Of everything but geth."""

_DIGEST = 16


@dataclass(frozen=True, slots=True)
class Chain:
    """A chain that is to run."""

    name: str
    namespace: str
    spec: OPChainSpec
    configuration: Configuration

    def object_name(self, component: Component) -> str:
        """What everything of a component is called."""
        return f"{self.name}-{component}"

    def url(self, component: Component, port: int) -> str:
        """Where a component serves the others."""
        return f"http://{self.object_name(component)}:{port}"

    def enabled(self) -> tuple[Component, ...]:
        """The components that run, in the order in which they start."""
        return tuple(one for one in COMPONENTS if getattr(self.spec.components, one).enabled)


def digest(*parts: str | bytes | None) -> str:
    """A short word for what a pod reads when it starts: another word starts another pod."""
    whole = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part or b""
        whole.update(len(data).to_bytes(8, "big") + data)
    return whole.hexdigest()[:_DIGEST]
