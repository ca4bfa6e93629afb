"""What a chain cannot change: its name, and where it begins."""

import re
from collections.abc import Mapping

from pequod.api import reasons
from pequod.api.platform import ResourceGraph
from pequod.api.rollup import OPChain
from pequod.controllers.rollup.components.geth import DATA, FORKS, ORIGIN
from pequod.controllers.rollup.configuration import Configuration
from pequod.controllers.rollup.identity import is_another
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
    client: Client,
    chain: OPChain,
    configuration: Configuration,
    graph: ResourceGraph | None,
    now: float,
) -> None:
    """The data that is there is of the chain that the configuration describes."""
    name = f"{chain.metadata.name}-{DATA}"
    known = _stored(graph) if graph is not None else {}
    if not known and chain.spec.components.geth.enabled:
        known = await _left_behind(client, chain.metadata.namespace or "", name)
    found = known.get(ORIGIN, "")
    if is_another(found, configuration.identity):
        raise Stalled(
            reasons.ORIGIN_CHANGED,
            "genesis.json and rollup.json describe another chain than the one in "
            f"PersistentVolumeClaim {name}: where it begins, and how it is derived, cannot change. "
            "Put the former files back; or, to begin anew, delete the OPChain and that volume, or "
            "use another name",
        )
    if found and (moved := _moved(_times(known.get(FORKS, "")), configuration.forks, now)):
        raise Stalled(
            reasons.ORIGIN_CHANGED,
            f"rollup.json: {'; '.join(moved)}: a chain cannot change its past. Forks are set, or "
            "moved, to a time to come",
        )


def _moved(before: Mapping[str, int], after: Mapping[str, int], now: float) -> list[str]:
    """Forks that would change blocks that have been made."""
    changed = {
        name: (before.get(name), after.get(name))
        for name in {*before, *after}
        if before.get(name) != after.get(name)
    }
    return [
        f".{name} was {_said(old)} and is {_said(new)}"
        for name, (old, new) in sorted(changed.items())
        if any(time is not None and time <= now for time in (old, new))
    ]


def _said(time: int | None) -> str:
    return "not set" if time is None else str(time)


def _times(text: str) -> dict[str, int]:
    pairs = (one.partition("=") for one in text.split(",") if one)
    return {name: int(time) for name, _, time in pairs if time.isdecimal()}


def _stored(graph: ResourceGraph) -> dict[str, str]:
    for node in graph.spec.nodes:
        if node.id == DATA:
            annotations: dict[str, str] = node.object["metadata"].get("annotations", {})
            return annotations
    return {}


async def _left_behind(client: Client, namespace: str, name: str) -> dict[str, str]:
    """What a volume says that was kept when its chain was deleted."""
    try:
        found = await client.get_metadata(CLAIMS, name, Described, namespace=namespace)
    except NotFoundError:
        return {}
    return found.metadata.annotations
