"""Taking an object over from the tools that managed it: their fields become ours.

Nothing of the object changes by that. It is one patch of `metadata.managedFields`, bound to the
version of the object that was read; the apply that follows removes what the node does not name. A
crash between the two is nothing: what is left to be taken over is found by looking.
"""

from pequod.graph import ownership
from pequod.graph.desired import Desired
from pequod.graph.fields import BEFORE_FIRST_APPLY
from pequod.graph.model import LAST_APPLIED
from pequod.graph.problems import is_immutable
from pequod.graph.rehearsal import escaped, rehearsed
from pequod.kube.client import Client, Write
from pequod.kube.errors import FieldConflict, FieldConflictError, KubeError
from pequod.kube.objects import Object


async def take_over(
    client: Client, wanted: Desired, found: Object, *, force: bool, may_recreate: bool
) -> str:
    """Make the fields of tools ours, if the apply that follows will be accepted.

    Returns the version of the object that this has led to.

    Raises FieldConflictError when others than these tools hold fields that the node names, and the
    API server's refusal of the apply; the object is as it was then.
    """
    metadata = found["metadata"]
    try:
        await require_acceptable(client, wanted, metadata["uid"], force=force)
    except KubeError as error:
        if not (may_recreate and is_immutable(error)):
            raise
    known = ownership.entries(metadata) or await _unrecorded(client, wanted, found)
    entries = ownership.taken_over(
        known, wanted.kind.api_version, keep_replicas=ownership.leaves_replicas(wanted)
    )
    changes: list[Object] = []
    if entries is not None:
        changes.append({"op": "add", "path": "/metadata/managedFields", "value": entries})
    if LAST_APPLIED in (metadata.get("annotations") or {}):
        changes.append({"op": "remove", "path": f"/metadata/annotations/{escaped(LAST_APPLIED)}"})
    if not changes:
        return str(metadata["resourceVersion"])
    # To replace what cannot be replaced is a precondition; a failed `test` would be no conflict.
    exactly = [
        {"op": "replace", "path": f"/metadata/{name}", "value": metadata[name]}
        for name in ("uid", "resourceVersion")
    ]
    ref = wanted.ref
    patched = await client.json_patch(
        wanted.kind, ref.name, [*exactly, *changes], namespace=ref.namespace or None
    )
    return str(patched["metadata"]["resourceVersion"])


async def require_acceptable(client: Client, wanted: Desired, uid: str, *, force: bool) -> None:
    """Let the API server judge an apply before anything is changed for it.

    Raises what it has against it; that tools which would be replaced hold fields is nothing.
    """
    how = Write(dry_run=True, force=force)
    try:
        await client.apply(wanted.kind, wanted.with_precondition(uid), how)
    except FieldConflictError as error:
        if others := error.with_others(_is_tools):
            raise others from error


def _is_tools(conflict: FieldConflict) -> bool:
    return ownership.is_tool(conflict.manager) and not conflict.part


async def _unrecorded(client: Client, wanted: Desired, found: Object) -> list[ownership.Entry]:
    """Whom the API server would take for the manager of an object that names none."""
    answer = await rehearsed(client, wanted, found)
    known = ownership.entries(answer["metadata"])
    return [one for one in known if one.get("manager") == BEFORE_FIRST_APPLY]
