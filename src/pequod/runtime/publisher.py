"""What an object says of itself, written: one patch for a pass, and none without a change."""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from contextlib import suppress
from typing import Any, Generic, Literal

import msgspec

from pequod.api.meta import Status
from pequod.kube.cache import Cache, Unreadable
from pequod.kube.client import Client, Write
from pequod.kube.errors import ConflictError, NotFoundError
from pequod.kube.kinds import Kind
from pequod.kube.objects import MISFITS, Key, Object, merge_patch
from pequod.runtime.conditions import news
from pequod.runtime.events import Recorder, happenings
from pequod.runtime.reconciler import R

INSIST = 3
"""Conflicts in a row after which the version of the object no longer matters, only its UID."""

Published = Literal["unchanged", "written", "gone"]
"""What publishing a status has shown: nothing to write, a write, or that the object is gone."""


class Publisher(Generic[R]):
    """Writes statuses and finalizers of one kind."""

    def __init__(
        self,
        client: Client,
        kind: Kind,
        cache: Cache[R],
        recorder: Recorder,
        *,
        quiet: AbstractSet[str] = frozenset(),
    ) -> None:
        self._client = client
        self._kind = kind
        self._cache = cache
        self._recorder = recorder
        self._quiet = quiet

    async def publish(self, before: R, status: Status, *, conflicts: int = 0) -> Published:
        """Make an object's status so, and tell what has changed about its conditions."""
        patch = merge_patch(plain(before.status), plain(status))
        if not patch:
            return "unchanged"
        insist = conflicts >= INSIST
        answer = await self._patch(before, {"status": patch}, part="status", insist=insist)
        if answer is None:
            return "gone"
        changed = news(before.status.conditions, status.conditions, self._quiet)
        for happening in happenings(before, changed):
            self._recorder.record(happening)
        return "written"

    async def publish_unreadable(self, key: Key, found: Unreadable, status: Object) -> None:
        """Say in its status that an object cannot be read, whatever else stands there."""
        body = {"metadata": {"uid": found.metadata.uid}, "status": status}
        await self._send(key, body, part="status")

    async def set_finalizers(self, object_: R, finalizers: list[str]) -> None:
        """Make an object's finalizers so."""
        patch = {"metadata": {"finalizers": finalizers}}
        answer = await self._patch(object_, patch, part=None)
        deleted = object_.metadata.deletion_timestamp is not None
        if deleted and not finalizers and answer is not None:
            key = Key(object_.metadata.namespace or "", object_.metadata.name)
            self._cache.observe_removal(key, object_.metadata.uid)

    async def _patch(
        self, object_: R, patch: Object, *, part: str | None, insist: bool = False
    ) -> bytes | None:
        metadata = object_.metadata
        conditions = {"uid": metadata.uid}
        if not insist:
            conditions["resourceVersion"] = metadata.resource_version
        body = patch | {"metadata": patch.get("metadata", {}) | conditions}
        return await self._send(Key(metadata.namespace or "", metadata.name), body, part=part)

    async def _send(self, key: Key, body: Object, *, part: str | None) -> bytes | None:
        """Patch an object that we know, and keep the answer; None when the object is gone."""
        with self._cache.writing(key):
            try:
                answer = await self._client.patch(
                    self._kind, key.name, body, Write(part=part), namespace=key.namespace or None
                )
            except NotFoundError:
                return None
            except ConflictError:
                await self._look_again(key)
                raise
            # An object that cannot be read comes as such by the watch.
            with suppress(*MISFITS):
                self._cache.observe(answer)
            return answer

    async def _look_again(self, key: Key) -> None:
        """Fetch what we conflict with, so that the next pass does not meet it blindly."""
        try:
            current = await self._client.get(
                self._kind, key.name, namespace=key.namespace or None, type=msgspec.Raw
            )
            self._cache.observe(bytes(current))
        except (NotFoundError, *MISFITS):
            return


def plain(status: Status) -> Object:
    """A status as JSON has it."""
    made: Mapping[str, Any] = msgspec.to_builtins(status)
    return dict(made)


def copied(object_: R) -> R:
    """An object whose status may be changed without changing what the cache holds."""
    status = msgspec.convert(plain(object_.status), type(object_.status))
    return msgspec.structs.replace(object_, status=status)
