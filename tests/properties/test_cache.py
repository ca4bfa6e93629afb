"""Whatever is told, in whatever order, a cache ends up with what the API server holds.

A small API server lives in the state machine: a log of versions, and a watch on it that lists,
follows, breaks off and repeats itself. We write to it as well, and our answers take their time.
"""

from asyncio import CancelledError
from collections import deque
from collections.abc import AsyncGenerator, Generator, Iterator
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field

import msgspec
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)
from structlog.testing import capture_logs

from pequod.kube.cache import Cache, Change, Projection, Unreadable
from pequod.kube.errors import UnreachableError
from pequod.kube.kinds import CONFIG_MAPS
from pequod.kube.objects import Key, Metadata, Object
from pequod.kube.watch import Began, Complete, Event, Failed, Put, Removed

NAMES = st.sampled_from("abc")
WORDS = st.sampled_from(["red", "blue", 7])
"""The last one does not fit its type."""
STEPS = st.sampled_from(["put", "delete", "we write", "we delete", "answer", "go on"])
MEANWHILE = st.lists(STEPS, max_size=6)


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    with capture_logs():
        yield


class Thing(msgspec.Struct, frozen=True):
    metadata: Metadata
    word: str


class _Pause:
    def __await__(self) -> Generator[None]:
        yield


class Feed:
    """A source that is told what to say."""

    def __init__(self) -> None:
        self.heard = self.tried = 0.0
        self.waiting: deque[Event] = deque()

    async def events(self) -> AsyncGenerator[Event, None]:
        while True:
            while self.waiting:
                yield self.waiting.popleft()
            await _Pause()


@dataclass
class Happening:
    """A version of the API server's store."""

    version: int
    object_: Object
    deletion: bool

    @property
    def event(self) -> Event:
        raw = msgspec.Raw(msgspec.json.encode(self.object_))
        return Removed(raw) if self.deletion else Put(raw)


@dataclass
class Flight:
    """A write of ours whose answer is on its way."""

    made: Happening
    uid: str
    writing: AbstractContextManager[None] | None


@dataclass
class Server:
    """Objects, and how they came to be."""

    log: list[Happening] = field(default_factory=list)
    objects: dict[str, Object] = field(default_factory=dict)

    @property
    def version(self) -> int:
        return self.log[-1].version if self.log else 1

    def put(self, name: str, word: object) -> Happening:
        version = self.version + 1
        uid = self.uid(name) or f"uid-{version}"
        self.objects[name] = _object(name, uid, version, word)
        return self._happened(self.objects[name], deletion=False)

    def delete(self, name: str) -> Happening:
        gone = self.objects.pop(name)
        last = _object(name, gone["metadata"]["uid"], self.version + 1, gone["word"])
        return self._happened(last, deletion=True)

    def uid(self, name: str) -> str:
        found = self.objects.get(name)
        return found["metadata"]["uid"] if found else ""

    def deleted(self, uid: str) -> bool:
        return any(past.deletion and past.object_["metadata"]["uid"] == uid for past in self.log)

    def deleted_after(self, name: str, version: int) -> bool:
        return any(
            past.deletion and past.object_["metadata"]["name"] == name and past.version > version
            for past in self.log
        )

    def _happened(self, object_: Object, *, deletion: bool) -> Happening:
        made = Happening(int(object_["metadata"]["resourceVersion"]), object_, deletion)
        self.log.append(made)
        return made


def _object(name: str, uid: str, version: int, word: object) -> Object:
    metadata = {"name": name, "uid": uid, "resourceVersion": str(version)}
    return {"metadata": metadata, "word": word}


def _colours(thing: Thing) -> list[str]:
    return [thing.word, "any"]


class CacheMachine(RuleBasedStateMachine):
    """Histories of one kind."""

    @initialize()
    def start(self) -> None:
        self.server = Server()
        self.flights: dict[str, Flight] = {}
        self.begin_anew()

    def begin_anew(self) -> None:
        """A cache that knows nothing."""
        self.feed = Feed()
        self.cache = Cache(CONFIG_MAPS, Projection(Thing), self.feed)
        self.cache.add_index("colour", _colours)
        self.cache.listen(self.listen)
        self.told: dict[str, Thing | Unreadable] = {}
        self.wrong: list[str] = []
        self.observed: dict[str, int] = {}
        self.removed: set[str] = set()
        self.phase = "away"
        self.unsent: list[Event] | None = None
        self.position = 0
        self.running = self.cache.run()
        self.running.send(None)

    def end(self) -> None:
        with suppress(CancelledError):
            self.running.throw(CancelledError())

    def listen(self, change: Change[Thing]) -> None:
        name = change.key.name
        # The cache survives what its listeners raise, so what is wrong is told by an invariant.
        if self.told.get(name) != change.before:
            self.wrong.append(f"{change}: something else was told before")
        if change.after is not None:
            self.told[name] = change.after
            return
        gone = self.told.pop(name, None)
        if gone is None or not self.server.deleted(gone.metadata.uid):
            self.wrong.append(f"{change}: it is still there")

    def tell(self, event: Event) -> None:
        self.feed.waiting.append(event)
        self.running.send(None)

    @rule(name=NAMES, word=WORDS)
    def somebody_writes(self, name: str, word: object) -> None:
        self.server.put(name, word)

    @rule(name=NAMES)
    def somebody_deletes(self, name: str) -> None:
        if name in self.server.objects:
            self.server.delete(name)

    @rule(name=NAMES, guarded=st.booleans())
    def we_write(self, name: str, guarded: bool) -> None:  # noqa: FBT001
        if name not in self.flights:
            writing = self.cache.writing(Key("", name)) if guarded else None
            if writing is not None:
                writing.__enter__()
            made = self.server.put(name, "ours")
            self.flights[name] = Flight(made, self.server.uid(name), writing)

    @rule(name=NAMES)
    def we_delete(self, name: str) -> None:
        if name not in self.flights and name in self.server.objects:
            uid = self.server.uid(name)
            self.flights[name] = Flight(self.server.delete(name), uid, None)

    @rule(name=NAMES)
    def our_answer_comes(self, name: str) -> None:
        flight = self.flights.pop(name, None)
        if flight is None:
            return
        if flight.made.deletion:
            self.cache.observe_removal(Key("", name), flight.uid)
            self.removed.add(flight.uid)
        else:
            self.cache.observe(msgspec.json.encode(flight.made.object_))
            self.observed[name] = flight.made.version
        if flight.writing is not None:
            flight.writing.__exit__(None, None, None)

    @rule(name=NAMES)
    def our_answer_is_lost(self, name: str) -> None:
        flight = self.flights.pop(name, None)
        if flight is not None and flight.writing is not None:
            flight.writing.__exit__(None, None, None)

    @rule()
    def a_list_begins(self) -> None:
        self.tell(Began())
        self.phase, self.unsent = "listing", None

    @precondition(lambda self: self.phase == "listing" and self.unsent is None)
    @rule(data=st.data())
    def the_list_is_made(self, data: st.DataObject) -> None:
        self.snapshot(data.draw(st.permutations(sorted(self.server.objects))))

    def snapshot(self, names: list[str]) -> None:
        self.unsent = [
            Put(msgspec.Raw(msgspec.json.encode(self.server.objects[name]))) for name in names
        ]
        self.position, self.listed = len(self.server.log), self.server.version

    @precondition(lambda self: self.unsent is not None)
    @rule()
    def the_watch_goes_on(self) -> None:
        if self.unsent:
            self.tell(self.unsent.pop(0))
        elif self.position < len(self.server.log):
            self.position += 1
            self.tell(self.server.log[self.position - 1].event)

    @precondition(lambda self: self.phase == "listing" and self.unsent == [])
    @rule()
    def the_list_is_complete(self) -> None:
        past = self.server.log[self.position - 1].version if self.position else 1
        self.tell(Complete(str(max(past, self.listed))))
        self.phase = "following"
        assert self.cache.synced

    @rule(name=NAMES, before=MEANWHILE, after=MEANWHILE)
    def a_list_is_made_while_something_happens(
        self, name: str, before: list[str], after: list[str]
    ) -> None:
        self.a_list_begins()
        self.happen(name, before)
        self.snapshot(sorted(self.server.objects))
        self.happen(name, after)
        while self.unsent:
            self.the_watch_goes_on()
        self.the_list_is_complete()

    def happen(self, name: str, steps: list[str]) -> None:
        for step in steps:
            match step:
                case "put":
                    self.somebody_writes(name, "red")
                case "delete":
                    self.somebody_deletes(name)
                case "we write":
                    self.we_write(name, guarded=False)
                case "we delete":
                    self.we_delete(name)
                case "answer":
                    self.our_answer_comes(name)
                case "go on" if self.unsent is not None:
                    self.the_watch_goes_on()

    @precondition(lambda self: self.phase == "following")
    @rule(data=st.data())
    def the_watch_repeats_itself(self, data: st.DataObject) -> None:
        if self.position:
            number = data.draw(st.integers(0, self.position - 1))
            self.tell(self.server.log[number].event)

    @rule()
    def the_watch_fails(self) -> None:
        before = self.entries()
        self.tell(Failed(UnreachableError("nobody answers")))
        assert self.entries() == before
        assert self.cache.failure is not None
        if self.phase == "listing":
            self.phase, self.unsent = "away", None

    @rule()
    def we_are_started_again(self) -> None:
        self.end()
        self.flights.clear()
        self.begin_anew()

    @rule(answers_first=st.booleans())
    def everything_is_told(self, answers_first: bool) -> None:  # noqa: FBT001
        if answers_first:
            self.all_answers_come()
        if self.phase != "following":
            self.a_list_is_made_while_something_happens("a", [], [])
        while self.position < len(self.server.log):
            self.the_watch_goes_on()
        self.all_answers_come()
        expected = {
            name: object_["metadata"]["resourceVersion"]
            for name, object_ in self.server.objects.items()
        }
        found = {name: value.metadata.resource_version for name, value in self.entries().items()}
        assert found == expected
        assert self.told == self.entries()

    def all_answers_come(self) -> None:
        for name in tuple(self.flights):
            self.our_answer_comes(name)

    def entries(self) -> dict[str, Thing | Unreadable]:
        found = {key.name: self.cache.get(key) for key in self.cache}
        return {name: value for name, value in found.items() if value is not None}

    @invariant()
    def listeners_know_what_the_cache_knows(self) -> None:
        busy = {name for name, flight in self.flights.items() if flight.writing is not None}
        entries = self.entries()
        for name in (self.told.keys() | entries.keys()) - busy:
            assert self.told.get(name) == entries.get(name)

    @invariant()
    def nothing_that_is_there_was_dropped(self) -> None:
        assert not self.wrong

    @invariant()
    def nothing_is_older_than_our_own_writes(self) -> None:
        entries = self.entries()
        for name, version in self.observed.items():
            found = entries.get(name)
            if found is None:
                assert self.server.deleted_after(name, version)
            else:
                assert int(found.metadata.resource_version) >= version
        assert not self.removed & {found.metadata.uid for found in entries.values()}

    @invariant()
    def indexes_are_what_they_would_be_if_they_were_made_now(self) -> None:
        readable = self.cache.values()
        for word in ("red", "blue", "ours", "any"):
            expected = {
                Key("", thing.metadata.name) for thing in readable if word in _colours(thing)
            }
            assert self.cache.by("colour", word) == expected

    def teardown(self) -> None:
        if hasattr(self, "running"):
            self.everything_is_told(answers_first=False)
            self.end()


CacheMachine.TestCase.settings = settings(
    max_examples=250, stateful_step_count=40, deadline=None, print_blob=True
)
TestCache = CacheMachine.TestCase


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param([], ["put", "we delete", "answer"], id="we remove what the list still holds"),
        pytest.param(["we write"], ["delete", "go on", "go on", "answer"], id="our answer is late"),
        pytest.param(["we write", "delete", "answer"], [], id="removed before the list"),
        pytest.param([], ["delete", "we write", "answer"], id="made after the list"),
    ],
)
def test_what_happens_to_an_object_while_a_list_is_made(
    before: list[str], after: list[str]
) -> None:
    """Histories that chance seldom finds."""
    machine = CacheMachine()
    machine.start()
    machine.somebody_writes("a", "red")
    machine.a_list_is_made_while_something_happens("a", before, after)
    while machine.position < len(machine.server.log):
        machine.the_watch_goes_on()
        machine.nothing_is_older_than_our_own_writes()
        machine.nothing_that_is_there_was_dropped()
    machine.teardown()
