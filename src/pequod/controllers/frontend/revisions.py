"""Revisions of sources, as ControllerRevisions beside their graphs."""

from collections.abc import Collection
from contextlib import suppress

import msgspec

from pequod.api.meta import ObjectMeta
from pequod.controllers.frontend.compiling import Compiled
from pequod.controllers.frontend.naming import shortened
from pequod.controllers.frontend.storing import SOURCE_LABEL, Source
from pequod.graph.revisions import (
    Kept,
    Stored,
    UnreadableRevisionError,
    next_number,
    packed,
    surplus,
    unpacked,
)
from pequod.kube.cache import Cache, Projection, Unreadable
from pequod.kube.client import Client, Exactly, Selection
from pequod.kube.errors import AlreadyExistsError, ConflictError, NotFoundError
from pequod.kube.kinds import SECRETS, Kind
from pequod.kube.objects import Described, Key

REVISIONS = Kind("apps", "v1", "ControllerRevision", "controllerrevisions")
SELECTION = Selection(labels=SOURCE_LABEL)
BY_SOURCE = "source"
_NUMBER = "pequod.io/revision"
_HASH = "pequod.io/render-hash"
_MODULE = "pequod.io/module-digest"
_SECRET = "pequod.io/sensitive"  # noqa: S105 -- an annotation
_LONGEST = 240


PROJECTION = Projection(Described, metadata_only=True)


class _Revision(msgspec.Struct, frozen=True):
    metadata: ObjectMeta
    data: object = None


def by_source(revision: Described) -> tuple[str, ...]:
    """The index that finds the revisions of a source."""
    return (revision.metadata.labels.get(SOURCE_LABEL, ""),)


class Revisions:
    """The revisions of all sources."""

    def __init__(self, client: Client, cache: Cache[Described]) -> None:
        self._client = client
        self._cache = cache
        cache.add_index(BY_SOURCE, by_source)

    def of(self, source: Source) -> list[Stored]:
        """Every revision of a source, newest first."""
        found = [self._cache.get(key) for key in self._cache.by(BY_SOURCE, source.uid)]
        known = [_stored(one) for one in found if isinstance(one, Described)]
        return sorted(
            (one for one in known if one is not None), key=lambda one: one.number, reverse=True
        )

    async def keep(self, source: Source, made: Compiled, digest: str) -> Stored:
        """Have a rendering as a revision; the newest one when that is what it is."""
        known = self.of(source)
        if known and known[0].render_hash == made.render_hash:
            return known[0]
        number = next_number(known)
        while True:
            try:
                return await self._create(source, made, digest, number)
            except AlreadyExistsError:
                # Made before a crash, or not heard of yet.
                found = await self._read(source, number)
                stored = _stored(found)
                if stored is not None and stored.render_hash == made.render_hash:
                    return stored
                number += 1

    async def _create(self, source: Source, made: Compiled, digest: str, number: int) -> Stored:
        metadata = source.metadata(_name(source, number))
        metadata["annotations"] = {
            _NUMBER: str(number),
            _HASH: made.render_hash,
            _MODULE: digest,
            _SECRET: made.secret,
        }
        revision = {
            "apiVersion": REVISIONS.api_version,
            "kind": REVISIONS.kind,
            "metadata": metadata,
            "revision": number,
            "data": packed(Kept(nodes=made.nodes, metadata=made.metadata)),
        }
        answer = await self._client.create(REVISIONS, revision)
        seen = self._cache.observe(msgspec.json.encode({"metadata": answer["metadata"]}))
        stored = _stored(seen)
        assert stored is not None, "written just now, with everything that it needs"
        return stored

    async def load(self, source: Source, stored: Stored) -> Kept:
        """What a revision holds; raises UnreadableRevisionError."""
        try:
            found = await self._read(source, stored.number)
        except NotFoundError as error:
            raise UnreadableRevisionError("it is gone") from error
        if found.metadata.labels.get(SOURCE_LABEL) != source.uid:
            raise UnreadableRevisionError("it belongs to something else")
        return unpacked(found.data)

    async def _read(self, source: Source, number: int) -> _Revision:
        name = _name(source, number)
        return await self._client.get(REVISIONS, name, namespace=source.namespace, type=_Revision)

    async def trim(self, source: Source, in_use: Collection[int]) -> None:
        """Remove the oldest revisions, and Secrets that no other one refers to."""
        known = self.of(source)
        old = surplus(known, in_use)
        kept = {one.secret for one in known if one not in old}
        for one in old:
            await self._remove(source, one)
            if one.secret and one.secret not in kept:
                await self._remove_secret(source, one.secret)

    async def _remove(self, source: Source, stored: Stored) -> None:
        with suppress(NotFoundError, ConflictError):
            await self._client.delete(
                REVISIONS, stored.name, Exactly(stored.uid), namespace=source.namespace
            )
        self._cache.observe_removal(Key(source.namespace, stored.name), stored.uid)

    async def _remove_secret(self, source: Source, name: str) -> None:
        try:
            found = await self._client.get_metadata(
                SECRETS, name, Described, namespace=source.namespace
            )
            if found.metadata.labels.get(SOURCE_LABEL) == source.uid:
                exactly = Exactly(found.metadata.uid)
                await self._client.delete(SECRETS, name, exactly, namespace=source.namespace)
        except (NotFoundError, ConflictError):
            return


def _name(source: Source, number: int) -> str:
    return f"{shortened(source.graph, _LONGEST)}-{number}"


def _stored(found: Described | _Revision | Unreadable) -> Stored | None:
    """A revision, unless somebody else has put our label on something of theirs."""
    if isinstance(found, Unreadable):
        return None
    metadata = found.metadata
    number = metadata.annotations.get(_NUMBER, "")
    if not number.isdecimal() or metadata.creation_timestamp is None:
        return None
    return Stored(
        number=int(number),
        render_hash=metadata.annotations.get(_HASH, ""),
        created_at=metadata.creation_timestamp,
        name=metadata.name,
        uid=metadata.uid,
        digest=metadata.annotations.get(_MODULE, ""),
        secret=metadata.annotations.get(_SECRET, ""),
    )
