"""Between a source and the store: trees are kept, and what the store has against them is said."""

from datetime import UTC, datetime
from pathlib import Path

from pequod.base.logs import one_line
from pequod.sources.artifact import Artifact
from pequod.sources.errors import RefusedError, SourceError, TooLargeError, UnavailableError
from pequod.sources.store import Fill, Store
from pequod.sources.tree import TreeError, TreeTooLargeError

_LONGEST = 300


async def kept(store: Store, fill: Fill, *, reference: str, next_step: str) -> str:
    """Let a tree be filled, and keep it; yields its digest, raises the errors of a source."""
    try:
        return await store.add(fill)
    except TreeError as error:
        raise unusable(error, reference=reference, next_step=next_step) from error


def unusable(error: TreeError, *, reference: str, next_step: str) -> SourceError:
    """The error for a tree that may not be used."""
    kind = TooLargeError if isinstance(error, TreeTooLargeError) else RefusedError
    problem = one_line(str(error), _LONGEST)
    return kind(reference, step="tree", problem=problem, next_step=next_step)


async def place_of(store: Store, digest: str, *, reference: str) -> Path:
    """Where a tree is that was just kept."""
    place = await store.find(digest)
    if place is None:
        raise UnavailableError(
            reference,
            step="store",
            problem="the tree was removed before it could be used",
            next_step="give the store more room",
        )
    return place


async def artifact(store: Store, digest: str, revision: str, *, reference: str) -> Artifact:
    """The artifact of a tree that was just kept."""
    place = await place_of(store, digest, reference=reference)
    return Artifact(digest=digest, revision=revision, tree=place, fetched_at=datetime.now(UTC))
