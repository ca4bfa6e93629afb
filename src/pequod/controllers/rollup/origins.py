"""What a chain cannot change: its name, and where it begins."""

import re

from pequod.api import reasons
from pequod.api.platform import ResourceGraph
from pequod.api.rollup import OPChain
from pequod.controllers.rollup.components.geth import DATA, ORIGIN
from pequod.controllers.rollup.configuration import Configuration
from pequod.kube.client import Client
from pequod.kube.errors import NotFoundError
from pequod.kube.kinds import Kind
from pequod.kube.objects import Described
from pequod.runtime.verdicts import Stalled

CLAIMS = Kind("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims")
_NAME = re.compile(r"[a-z]([-a-z0-9]{0,38}[a-z0-9])?")


def require_name(chain: OPChain) -> None:
    """Services and pods are called after the chain, and have stricter rules than it."""
    if not _NAME.fullmatch(chain.metadata.name):
        raise Stalled(
            reasons.INVALID_CONFIGURATION,
            f"metadata.name {chain.metadata.name}: must begin with a letter, hold letters, digits "
            "and - only, and be no longer than 40 characters: Services are called after it",
        )


async def require_origin(
    client: Client, chain: OPChain, configuration: Configuration, graph: ResourceGraph | None
) -> None:
    """The data that is there is of the chain that the configuration describes."""
    name = f"{chain.metadata.name}-{DATA}"
    if graph is not None:
        found = _stored(graph)
    elif chain.spec.components.geth.enabled:
        found = await _left_behind(client, chain.metadata.namespace or "", name)
    else:
        found = ""
    if found and found != configuration.identity:
        raise Stalled(
            reasons.ORIGIN_CHANGED,
            f"genesis.json and rollup.json describe a chain that begins otherwise than the one in "
            f"PersistentVolumeClaim {name}: its genesis cannot change. Put the former files back; "
            "or, to begin anew, delete the OPChain and that volume, or use another name",
        )


def _stored(graph: ResourceGraph) -> str:
    for node in graph.spec.nodes:
        if node.id == DATA:
            annotations: dict[str, str] = node.object["metadata"].get("annotations", {})
            return annotations.get(ORIGIN, "")
    return ""


async def _left_behind(client: Client, namespace: str, name: str) -> str:
    """Where a chain begins whose volume was kept."""
    try:
        found = await client.get_metadata(CLAIMS, name, Described, namespace=namespace)
    except NotFoundError:
        return ""
    return found.metadata.annotations.get(ORIGIN, "")
