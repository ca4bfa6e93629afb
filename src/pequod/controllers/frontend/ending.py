"""The end of a source: its graph goes first, and takes its objects with it."""

from contextlib import suppress

from pequod.api import reasons
from pequod.api.graph import DeletionPolicy
from pequod.api.platform import ResourceGraph
from pequod.controllers.frontend.storing import GRAPHS, Source
from pequod.kube.cache import Cache, Unreadable
from pequod.kube.client import Client, Exactly
from pequod.kube.errors import ConflictError, NotFoundError
from pequod.kube.objects import MISFITS, Named
from pequod.runtime.verdicts import Waiting

AGAIN = 10.0
"""Seconds after which a graph that is being deleted is asked for: an event may be lost."""


async def end_graph(
    client: Client,
    graphs: Cache[ResourceGraph],
    source: Source,
    policy: DeletionPolicy,
    *,
    going: set[str],
) -> None:
    """Delete the graph of a source; raises a verdict until it is gone.

    What the source says about its objects counts, also when its graph was rendered before that.
    `going` remembers which graphs were seen on their way out: what is out of sight then is gone.
    """
    found = graphs.get(source.key)
    if found is None or isinstance(found, Unreadable):
        if f"{source.uid} {source.graph}" not in going:
            await _require_gone(client, source)
        return
    if not source.has(found):
        return
    if found.metadata.deletion_timestamp is None:
        await _deleted(client, graphs, found, source, policy)
    going.add(f"{source.uid} {source.graph}")
    told = next((one.message for one in found.status.conditions if one.type == "Ready"), "")
    words = f": {told}" if told and found.metadata.deletion_timestamp is not None else ""
    raise Waiting(
        reasons.FINALIZING, f"ResourceGraph {source.key} is being deleted{words}", after=AGAIN
    )


async def delete_graph(client: Client, graphs: Cache[ResourceGraph], source: Source) -> None:
    """Delete a graph that the source no longer has, and do not wait for it."""
    found = graphs.get(source.key)
    if found is None or isinstance(found, Unreadable) or not source.has(found):
        return
    if found.metadata.deletion_timestamp is None:
        await _deleted(client, graphs, found, source, found.spec.deletion_policy)


async def _deleted(
    client: Client,
    graphs: Cache[ResourceGraph],
    graph: ResourceGraph,
    source: Source,
    policy: DeletionPolicy,
) -> None:
    uid = graph.metadata.uid
    try:
        if graph.spec.deletion_policy != policy:
            patch = {"metadata": {"uid": uid}, "spec": {"deletionPolicy": policy}}
            await client.patch(GRAPHS, source.graph, patch, namespace=source.namespace)
        answer = await client.delete(GRAPHS, source.graph, Exactly(uid), namespace=source.namespace)
    except NotFoundError:
        return
    except ConflictError as error:
        raise Waiting(
            reasons.FINALIZING, f"ResourceGraph {source.key} has changed meanwhile", after=1.0
        ) from error
    # What nothing holds is gone, and the answer is no graph. A deletion is never taken back:
    # whoever ends the graph need not ask whether it is really to go.
    with suppress(*MISFITS):
        graphs.observe(answer, certain=True)


async def _require_gone(client: Client, source: Source) -> None:
    """What a cache does not show may be there all the same."""
    try:
        await client.get_metadata(GRAPHS, source.graph, Named, namespace=source.namespace)
    except NotFoundError:
        return
    raise Waiting(
        reasons.FINALIZING, f"ResourceGraph {source.key} is not known to be gone yet", after=1.0
    )
