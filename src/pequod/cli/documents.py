"""Documents of a file as an API server takes them: whole, or not at all."""

from collections.abc import Mapping
from typing import Any

from pequod.api.platform import Transform
from pequod.graph.differences import NOT_INTENT
from pequod.kube.client import Client, Write
from pequod.kube.errors import AlreadyExistsError, ForbiddenError, NotFoundError
from pequod.kube.kinds import Kind
from pequod.runtime.controller import PAUSED, is_suspended

TRANSFORMS = Kind.of(Transform)

SUSPENDED = (
    f"it is suspended: nothing of this happens until spec.suspend, or the label {PAUSED}, is "
    "removed"
)


async def require_accepted(
    client: Client, kind: Kind, document: Mapping[str, Any]
) -> tuple[str, ...]:
    """Let the API server judge a document by its schema: names, rules, fields that are unknown.

    Raises what it has against it; that there is such an object already is nothing. Whoever may not
    create such objects is told that nobody has looked.
    """
    metadata = {
        name: value for name, value in document["metadata"].items() if name not in NOT_INTENT
    }
    body = {name: value for name, value in document.items() if name != "status"}
    try:
        await client.create(kind, body | {"metadata": metadata}, Write(dry_run=True))
    except AlreadyExistsError:
        return ()
    except ForbiddenError:
        return (f"unknown fields are not noticed, since you may not create a {kind.kind} here",)
    return ()


async def stored_transform(client: Client, transform: Transform) -> Transform | None:
    """The Transform as the cluster has it; None where there is none, or it is not to be seen."""
    metadata = transform.metadata
    try:
        return await client.get(
            TRANSFORMS, metadata.name, namespace=metadata.namespace, type=Transform
        )
    except (NotFoundError, ForbiddenError):
        return None


def pauses(
    document: Mapping[str, Any], asked: Transform, stored: Transform | None
) -> tuple[str, ...]:
    """Why nothing of a plan would happen for now."""
    notes = []
    if is_suspended(asked):
        notes.append(SUSPENDED)
    if stored is None:
        return tuple(notes)
    spec, labels = document["spec"], asked.metadata.labels
    if not notes and "suspend" not in spec and PAUSED not in labels and is_suspended(stored):
        notes.append(
            "it is suspended on the cluster, which this file says nothing about: nothing of this "
            f"happens until spec.suspend, or the label {PAUSED}, is removed there"
        )
    if "rollbackTo" not in spec and stored.spec.rollback_to is not None:
        notes.append(
            f"spec.rollbackTo is {stored.spec.rollback_to} on the cluster, which this file says "
            "nothing about: that revision stays until the field is removed there (`pequod "
            f"rollback {asked.metadata.name} -n {asked.metadata.namespace} --forward`)"
        )
    return tuple(notes)
