"""One way from any reference to its artifact.

Whatever kind a source is of: equal questions are asked once, failures that may pass are tried
again, and what was good last is remembered, on disk as well, so that it stays in use while its
source is away. Credentials are part of the question: nobody gets what he could not have fetched.
"""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Literal, Protocol

import msgspec
import structlog
from prometheus_client import Counter, Histogram

from pequod.base.backoff import Backoff
from pequod.base.flights import Flights
from pequod.sources.artifact import Artifact
from pequod.sources.credentials import ANONYMOUS, Credentials
from pequod.sources.errors import SourceError
from pequod.sources.store import Store

_log = structlog.get_logger()
_results = Counter("pequod_source_resolve_total", "References resolved.", ["type", "result"])
_duration = Histogram(
    "pequod_source_resolve_duration_seconds",
    "Time from a reference to its artifact.",
    ["type"],
    buckets=(0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120),
)

_REMEMBERED = 10_000
"""Artifacts that are known without asking the disk."""

Type = Literal["git", "jj", "oci", "embedded"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """What somebody wrote to name a module."""

    type: Type
    ref: str

    def __str__(self) -> str:
        return f"{self.type} {self.ref}"


class Source(Protocol):
    """A kind of place where trees come from."""

    async def resolve(
        self,
        ref: str,
        /,
        *,
        credentials: Credentials = ANONYMOUS,
        known: Artifact | None = None,
    ) -> Artifact:
        """The artifact of a reference; `known` itself if that is still what it means."""


class _Record(msgspec.Struct, frozen=True):
    """What is remembered of an artifact; never anything of the credentials."""

    digest: str
    revision: str
    fetched_at: datetime
    metadata: dict[str, str]


Sleep = Callable[[float], Awaitable[None]]


class Resolver:
    """All sources behind one door."""

    def __init__(
        self,
        store: Store,
        sources: Mapping[Type, Source],
        *,
        records: Path | None = None,
        attempts: int = 3,
        backoff: Backoff | None = None,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self._store = store
        self._sources = sources
        self._records = records
        self._attempts = attempts
        self._backoff = backoff or Backoff(first=0.5, limit=10.0)
        self._sleep = sleep
        self._flights: Flights[Artifact] = Flights()
        self._known: dict[str, Artifact] = {}

    async def resolve(self, reference: Reference, credentials: Credentials = ANONYMOUS) -> Artifact:
        """The artifact that a reference means now; raises a SourceError."""
        key = _key(reference, credentials)
        return await self._flights.share(key, lambda: self._resolve(key, reference, credentials))

    async def last_good(
        self, reference: Reference, credentials: Credentials = ANONYMOUS
    ) -> Artifact | None:
        """What the reference meant when it could last be resolved, if its tree is still there."""
        key = _key(reference, credentials)
        known = self._known.get(key) or await asyncio.to_thread(self._recall, key)
        if known is None or await self._store.find(known.digest) is None:
            return None
        return known

    async def _resolve(self, key: str, reference: Reference, credentials: Credentials) -> Artifact:
        known = await self.last_good(reference, credentials)
        with _duration.labels(reference.type).time():
            found = await self._tried(reference, credentials, known)
        _results.labels(reference.type, "same" if found is known else "new").inc()
        if found is not known:
            self._known[key] = found
            while len(self._known) > _REMEMBERED:
                del self._known[next(iter(self._known))]
            await asyncio.to_thread(self._remember, key, found)
        return found

    async def _tried(
        self, reference: Reference, credentials: Credentials, known: Artifact | None
    ) -> Artifact:
        source = self._sources[reference.type]
        failures = 0
        while True:
            try:
                return await source.resolve(reference.ref, credentials=credentials, known=known)
            except SourceError as error:
                failures += 1
                _results.labels(reference.type, type(error).__name__).inc()
                if not error.transient or failures >= self._attempts:
                    raise
                _log.info("source tried again", reference=str(reference), problem=error.problem)
            await self._sleep(self._backoff.delay(failures))

    def _recall(self, key: str) -> Artifact | None:
        if self._records is None:
            return None
        try:
            record = msgspec.json.decode((self._records / key).read_bytes(), type=_Record)
        except (OSError, msgspec.DecodeError):
            return None
        return Artifact(
            digest=record.digest,
            revision=record.revision,
            tree=self._store.place(record.digest),
            fetched_at=record.fetched_at,
            metadata=record.metadata,
        )

    def _remember(self, key: str, artifact: Artifact) -> None:
        if self._records is None:
            return
        record = _Record(
            artifact.digest, artifact.revision, artifact.fetched_at, dict(artifact.metadata)
        )
        with suppress(OSError):
            self._records.mkdir(parents=True, exist_ok=True)
            temporary = self._records / f".{key}"
            temporary.write_bytes(msgspec.json.encode(record))
            temporary.rename(self._records / key)


def _key(reference: Reference, credentials: Credentials) -> str:
    parts = (reference.type, reference.ref, credentials.fingerprint)
    return hashlib.sha256(msgspec.json.encode(parts)).hexdigest()
