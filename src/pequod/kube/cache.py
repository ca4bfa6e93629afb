"""What an API server holds, kept here: one cache for each (kind, selection, projection).

A cache holds projections, not objects: a msgspec type says which fields are worth their memory.
What it answers is never older than our own writes: their answers are put into it (`observe`), and
events that tell of an earlier version than the one known are ignored (the idea of KEP-5647). An
object that does not fit its type is an `Unreadable` entry: it is one object's problem, not its
kind's. Nothing is dropped because a list or a stream failed.
"""

import asyncio
import sys
from collections import defaultdict
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from contextlib import aclosing, contextmanager
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import msgspec
import structlog
from prometheus_client import Counter

from pequod.base.logs import one_line
from pequod.kube.client import METADATA_ONLY, METADATA_ONLY_LIST
from pequod.kube.errors import KubeError, TimedOutError
from pequod.kube.kinds import Kind
from pequod.kube.objects import MISFITS, Key, Metadata, Named, version_number
from pequod.kube.watch import Began, Complete, Event, Failed, Garbled, Put, Removed

_unreadable = Counter(
    "pequod_watch_unreadable_total", "Objects that do not fit their type.", ("resource",)
)
_log = structlog.get_logger()


class Identified(Protocol):
    """The least that a projection keeps of an object's metadata."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def namespace(self) -> str | None:
        """Its namespace; nothing for a cluster-scoped object."""

    @property
    def uid(self) -> str:
        """Which of all objects that ever had the name."""

    @property
    def resource_version(self) -> str:
        """Which of its versions."""


class HasMetadata(Protocol):
    """What every projection has."""

    @property
    def metadata(self) -> Identified:
        """Which object it is."""


T = TypeVar("T", bound=HasMetadata)

_named = msgspec.json.Decoder(Named)


class Unreadable(msgspec.Struct, frozen=True):
    """An object that does not fit the type that it was to be read as."""

    metadata: Metadata
    problem: str


@dataclass(frozen=True, slots=True)
class Change(Generic[T]):
    """What became of an object: absent, readable or not, before and after."""

    key: Key
    before: "T | Unreadable | None"
    after: "T | Unreadable | None"
    ours: bool = False
    """Whether a write of our own explains all of it."""


Listener = Callable[[Change[T]], None]
Index = Callable[[T], Iterable[str]]


@dataclass(frozen=True, slots=True)
class Projection(Generic[T]):
    """What is kept of an object."""

    type: type[T]
    metadata_only: bool = False
    """Let the API server send metadata only."""
    read: Callable[[bytes | msgspec.Raw], T] | None = None
    """What makes a projection of an object where more than picking fields is to be done."""

    def reader(self) -> Callable[[bytes | msgspec.Raw], T]:
        """What makes a projection of the bytes of an object."""
        return self.read or msgspec.json.Decoder(self.type).decode

    @property
    def accept(self) -> tuple[str, str]:
        """The forms to ask for, in a stream and in a list."""
        return (METADATA_ONLY, METADATA_ONLY_LIST) if self.metadata_only else ("", "")


class Source(Protocol):
    """Where a cache hears what happens: a `Watch`."""

    heard: float
    tried: float

    def events(self) -> AsyncGenerator[Event, None]:
        """Lists and everything after them, without an end."""


class Cache(Generic[T]):
    """One selection of one kind, kept up to date by a watch."""

    def __init__(self, kind: Kind, projection: Projection[T], source: Source) -> None:
        self.kind = kind
        self.failure: KubeError | None = None
        """Why nothing is heard at the moment."""
        self._watch = source
        self._decode = projection.reader()
        self._peeks = projection.read is not None
        """Whether reading an object is worth a look at which one it is beforehand."""
        self._entries: dict[Key, T | Unreadable] = {}
        self._listeners: list[Listener[T]] = []
        self._indexes: dict[str, tuple[Index[T], defaultdict[str, set[Key]]]] = {}
        self._listed: set[Key] | None = None
        self._position: int | None = None
        self._written: set[Key] = set()
        self._nameless = False
        self._removed_by_us: set[str] = set()
        self._writing: dict[Key, tuple[int, T | Unreadable | None]] = {}
        self._answers: dict[Key, str] = {}
        self._certain: dict[Key, str] = {}
        self._synced = False
        self._news = asyncio.Event()
        """Set when the first list is complete, or fails."""

    def get(self, key: Key) -> T | Unreadable | None:
        """An object, at least as new as our last write to it."""
        return self._entries.get(key)

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[Key]:
        return iter(tuple(self._entries))

    def values(self) -> list[T]:
        """Every readable object."""
        return [value for value in self._entries.values() if not isinstance(value, Unreadable)]

    def add_index(self, name: str, index: Index[T]) -> None:
        """Find objects by the words that `index` yields for them."""
        if name in self._indexes:
            return
        self._indexes[name] = (index, defaultdict(set))
        for key, value in self._entries.items():
            self._reindex(Change(key, None, value))

    def by(self, index: str, word: str) -> frozenset[Key]:
        """The objects for which an index yields a word."""
        return frozenset(self._indexes[index][1].get(word, ()))

    def listen(self, listener: Listener[T]) -> Callable[[], None]:
        """Tell somebody of every change from now on; returns what ends it."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    @property
    def synced(self) -> bool:
        """Whether the first list is complete."""
        return self._synced

    async def until_synced(self, within: float) -> None:
        """Wait for the first list; raise as soon as it is known why there is none."""
        try:
            async with asyncio.timeout(within):
                while not self.synced:
                    if self.failure is not None:
                        raise self.failure
                    self._news.clear()
                    await self._news.wait()
        except TimeoutError as error:
            raise TimedOutError(f"{self.kind} could not be listed in {within:.0f} s") from error

    def age(self, now: float) -> float:
        """Seconds since anything was heard."""
        return now - self._watch.heard

    def stuck(self, now: float) -> float:
        """Seconds since the watch last did anything at all."""
        return now - self._watch.tried

    async def run(self) -> None:
        """Keep up to date until cancelled."""
        async with aclosing(self._watch.events()) as events:
            async for event in events:
                self._take(event)

    def observe(self, answer: bytes, *, certain: bool = False) -> T:
        """Take in an answer of the API server, which may be newer than what the watch has told.

        It may be remembered as `certain`, for whoever does not rely on a watch alone.
        """
        value = self._decode(answer)
        key = _key(value)
        before = self._entries.get(key)
        if key in self._writing:
            self._answers[key] = value.metadata.resource_version
        news = not self._gone(value) if before is None else _newer(value, before)
        if news:
            if self._listed is not None:
                self._written.add(key)
            self._store(Change(key, before, value))
        known = self._entries.get(key)
        if certain and known is not None and _same(known, value):
            self._certain[key] = value.metadata.resource_version
        return value

    def is_certain(self, key: Key, version: str) -> bool:
        """Whether the API server has answered us with that version of an object."""
        return self._certain.get(key) == version

    @contextmanager
    def writing(self, key: Key) -> Iterator[None]:
        """A write of ours to an object is on its way: what is heard of it may be its echo.

        Listeners hear of the object once, when its answer is there, and whether the write explains
        all that has changed. Of writes that overlap, the last one to end tells.
        """
        writers, before = self._writing.get(key, (0, self._entries.get(key)))
        self._writing[key] = (writers + 1, before)
        try:
            yield
        finally:
            self._written_once(key)

    def _written_once(self, key: Key) -> None:
        writers, before = self._writing.pop(key)
        if writers > 1:
            self._writing[key] = (writers - 1, before)
            return
        answered = self._answers.pop(key, None)
        after = self._entries.get(key)
        if after is not before:
            ours = (
                after is not None
                and after.metadata.resource_version == answered
                and (before is None or not _touched_by_others(before, after))
            )
            self._tell(Change(key, before, after, ours))

    def observe_removal(self, key: Key, uid: str) -> None:
        """Our own write has removed an object: what is still told of it comes late."""
        self._removed_by_us.add(uid)
        before = self._entries.get(key)
        if before is not None and before.metadata.uid == uid:
            self._drop(key, before)

    def _take(self, event: Event) -> None:
        match event:
            case Put(raw):
                self._put(raw)
            case Removed(raw):
                self._remove(raw)
            case Began(again):
                self._listed, self._nameless, self._position = set(), False, None
                if not again:
                    self._written.clear()
                    self._removed_by_us.clear()
                return
            case Garbled():
                self._nameless = True
                _log.error("object that cannot be named", kind=str(self.kind))
            case Complete(version):
                self._complete(version_number(version))
            case Failed(error):
                self.failure = error
                self._news.set()
                _log.warning("watch failed", kind=str(self.kind), error=str(error))
                return
        self.failure = None

    def _put(self, raw: msgspec.Raw) -> None:
        if self._peeks and self._is_known(raw):
            return
        value = self._read(raw)
        if value is None or value.metadata.uid in self._removed_by_us:
            return
        key = _key(value)
        before = self._entries.get(key)
        if self._listed is not None:
            self._listed.add(key)
            # A list is the truth, even where versions went backwards because the API server's
            # store was restored; only what we wrote after it began can be newer.
            news = key not in self._written or before is None or _newer(value, before)
        else:
            news = _newer(value, before) if before is not None else not self._told(value)
            self._advance(value)
        if news and (before is None or not _same(before, value)):
            self._store(Change(key, before, value))

    def _is_known(self, raw: msgspec.Raw) -> bool:
        """Whether a stream shows what an answer to us has shown already: most of what it shows."""
        if self._listed is not None:
            return False
        try:
            seen = _named.decode(raw)
        except MISFITS:
            return False
        before = self._entries.get(_key(seen))
        if before is None or not _same(before, seen):
            return False
        self._advance(before)
        return True

    def _remove(self, raw: msgspec.Raw) -> None:
        value = self._read(raw)
        if value is None:
            return
        key = _key(value)
        self._removed_by_us.discard(value.metadata.uid)
        self._advance(value)
        if self._listed is not None:
            self._listed.discard(key)
        before = self._entries.get(key)
        if before is not None and (_newer(value, before) or _same(before, value)):
            self._drop(key, before)

    def _complete(self, position: int | None) -> None:
        """What the list did not hold is gone, unless we wrote it after the list was made."""
        listed, self._listed = self._listed, None
        self._position = position
        if listed is not None and not self._nameless:
            for key in self._entries.keys() - listed:
                if key not in self._written or self._told(self._entries[key]):
                    self._drop(key, self._entries[key])
        self._synced = True
        self._news.set()

    def _advance(self, value: T | Unreadable) -> None:
        """Everything up to the version of a value that is told after the list has been told."""
        number = version_number(value.metadata.resource_version)
        if self._position is not None and number is not None:
            self._position = max(self._position, number)

    def _told(self, value: T | Unreadable) -> bool:
        """Whether the watch has told of everything up to the version of a value."""
        number = version_number(value.metadata.resource_version)
        return self._position is not None and number is not None and number <= self._position

    def _gone(self, value: T) -> bool:
        """Whether an object that is not here was removed after the answer that shows it."""
        return self._told(value) or value.metadata.uid in self._removed_by_us

    def _read(self, raw: msgspec.Raw) -> T | Unreadable | None:
        """An object as its type; when it does not fit, what can be known of it all the same."""
        try:
            return self._decode(raw)
        except MISFITS as error:
            problem = one_line(str(error), 512)
        _unreadable.labels(self.kind.resource).inc()
        try:
            metadata = msgspec.json.decode(raw, type=Named).metadata
        except MISFITS:
            _log.error("object without readable metadata", kind=str(self.kind), problem=problem)
            self._nameless = True
            return None
        return Unreadable(metadata, problem)

    def _store(self, change: Change[T]) -> None:
        assert change.after is not None, "only what is there is stored"
        self._entries[change.key] = change.after
        self._reindex(change)
        self._tell(change)

    def _drop(self, key: Key, before: T | Unreadable) -> None:
        del self._entries[key]
        self._certain.pop(key, None)
        change: Change[T] = Change(key, before, None)
        self._reindex(change)
        self._tell(change)

    def _reindex(self, change: Change[T]) -> None:
        for index, words in self._indexes.values():
            for word in _words(index, change.before):
                words[word].discard(change.key)
                if not words[word]:
                    del words[word]
            for word in _words(index, change.after):
                words[word].add(change.key)

    def _tell(self, change: Change[T]) -> None:
        if change.key in self._writing:
            return
        for listener in tuple(self._listeners):
            try:
                listener(change)
            except Exception:  # noqa: BLE001 -- a listener's bug is not the cache's
                _log.exception("a listener failed", kind=str(self.kind), key=str(change.key))


def _key(value: HasMetadata) -> Key:
    metadata = value.metadata
    return Key(sys.intern(metadata.namespace or ""), metadata.name)


def _same(before: HasMetadata, after: HasMetadata) -> bool:
    old, new = before.metadata, after.metadata
    return bool(old.uid == new.uid and old.resource_version == new.resource_version)


def _newer(value: HasMetadata, than: HasMetadata) -> bool:
    """Whether a value is later than another; where that cannot be known, whether it differs."""
    one = version_number(value.metadata.resource_version)
    other = version_number(than.metadata.resource_version)
    if one is None or other is None:
        return not _same(value, than)
    return one > other


def _touched_by_others(before: HasMetadata, after: HasMetadata) -> bool:
    """Whether a write's answer shows more than what a write to the status can have changed."""
    old, new = before.metadata, after.metadata
    return any(
        getattr(old, name, None) != getattr(new, name, None)
        for name in (
            "uid",
            "generation",
            "labels",
            "annotations",
            "deletion_timestamp",
            "graph",
        )
    )


def _words(index: Index[T], value: T | Unreadable | None) -> set[str]:
    if value is None or isinstance(value, Unreadable):
        return set()
    try:
        return set(index(value))
    except Exception:  # noqa: BLE001 -- an index's bug is not the cache's
        _log.exception("an index failed", key=str(_key(value)))
        return set()
