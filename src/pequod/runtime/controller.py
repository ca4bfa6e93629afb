"""The frame around a reconciler: everything about an object that is the same for every kind.

One pass: find the object in the cache, leave it alone if it asks for that, see to the finalizer,
reconcile or finalize, settle the conditions, publish one patch, decide when to look again. A pass
that fails costs nobody but its own object anything.
"""

import asyncio
import time
import traceback
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Generic, cast

import msgspec
import structlog
from prometheus_client import Counter, Histogram

from pequod.api import reasons
from pequod.api.meta import Resource
from pequod.base.backoff import Backoff, spread
from pequod.base.tasks import end
from pequod.base.telemetry import span
from pequod.kube.cache import Change, Projection, Unreadable
from pequod.kube.caches import Caches, Share
from pequod.kube.client import ALL, Selection
from pequod.kube.errors import ConflictError, FencedError, KubeError
from pequod.kube.kinds import Kind
from pequod.kube.objects import Key
from pequod.runtime.conditions import Conditions
from pequod.runtime.context import Context, explained
from pequod.runtime.dependencies import Dependencies
from pequod.runtime.events import Recorder, remarked
from pequod.runtime.publisher import Published, Publisher, copied
from pequod.runtime.queue import Priority, Queue
from pequod.runtime.reconciler import R, Reconciler
from pequod.runtime.verdicts import Result, Stalled, Waiting

PASS_LIMIT = 300.0
"""Seconds that one pass may take; it looks and returns, so this is much."""
RESYNC = 3600.0
"""Seconds after which every object is looked at again, whatever its reconciler says."""
WORTH = 30
"""How many times as long as a request takes an object on its way need not say so: where requests
take long, everybody waits for the API server, and progress comes before news of it."""
LONGEST_LINGER = 30.0
PAUSED = "pequod.io/paused"
REQUESTED = "reconcile.pequod.io/requestedAt"
_LONGEST_REQUEST = 256

_total = Counter("pequod_reconcile_total", "Passes by outcome.", ("controller", "result"))
_seconds = Histogram(
    "pequod_reconcile_duration_seconds",
    "How long passes took.",
    ("controller",),
    buckets=(0.001, 0.005, 0.025, 0.1, 0.5, 1, 5, 15, 60, 300),
)
_errors = Counter("pequod_reconcile_errors_total", "Passes that failed.", ("controller",))
_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a pass ended, and when the object is looked at again."""

    result: str
    after: float | None = None
    on_the_way: bool = False
    """Whether something is still going on, and nothing is wrong."""


@dataclass(slots=True)
class _Pass(Generic[R]):
    """One pass: the object as it is stored, and as it is to be."""

    found: R
    object: R


class OvertakenError(Exception):
    """Somebody changed or removed the object in the middle of a pass: it begins anew."""


class PassTimedOutError(Exception):
    """A pass that did not return."""

    reason = reasons.PASS_TIMED_OUT


class Controller(Generic[R]):
    """Runs one reconciler over the objects of its kind."""

    def __init__(
        self,
        reconciler: Reconciler[R],
        caches: Caches,
        recorder: Recorder,
        *,
        selection: Selection = ALL,
        backoff: Backoff | None = None,
        pass_limit: float = PASS_LIMIT,
    ) -> None:
        self.kind = Kind.of(reconciler.kind)
        self.name = reconciler.kind.definition.kind.lower()
        self.client = caches.client
        self._reconciler = reconciler
        self._pass_limit = pass_limit
        projection = Projection(cast("type[R]", reconciler.kind))
        self._share: Share[R] = caches.share(self.kind, projection, selection)
        self._cache = self._share.cache
        self._trigger_shares: list[Share[Any]] = [
            caches.share(trigger.kind, trigger.projection, trigger.selection)
            for trigger in reconciler.triggers
        ]
        for name, index in reconciler.indexes.items():
            self._cache.add_index(name, index)
        self._queue: Queue[Key] = Queue(self.name, backoff)
        self._dependencies = Dependencies(caches, self._woken)
        self._recorder = recorder
        self._publisher = Publisher(
            caches.client, self.kind, self._cache, recorder, quiet=reconciler.quiet
        )
        reconciler.attach(self._woken, self._cache)
        self._unreadable: dict[Key, tuple[str, str]] = {}
        """What was said about objects that cannot be read: once is enough."""
        self._conflicts: dict[Key, int] = {}
        """How often in a row the status of an object could not be written."""
        self._published: dict[Key, float] = {}
        """When the status of an object was last written."""
        self._unsaid: dict[Key, float] = {}
        """Since when an object has been on its way without having said so."""
        self._going: set[Key] = set()
        """Objects that wait for something that is going on."""
        self._stopping = False

    @property
    def synced(self) -> bool:
        """Whether everything is known that a pass needs to know."""
        return self._cache.synced and all(share.cache.synced for share in self._trigger_shares)

    def wake(self, key: Key) -> None:
        """Look at an object soon."""
        self._queue.add(key)

    async def run(self) -> None:
        """Reconcile for as long as we lead; nothing is done before everything is known."""
        self._stopping = False
        stops: list[Callable[[], None]] = []
        workers: list[asyncio.Task[None]] = []
        try:
            for share in (self._share, *self._trigger_shares):
                await _synced(share)
            stops = self._listen()
            for key in self._cache:
                self._queue.add(key, Priority.RESYNC)
            workers = [
                asyncio.create_task(self._work(), name=f"{self.name} {number}")
                for number in range(self._reconciler.concurrency)
            ]
            await asyncio.gather(*workers)
        finally:
            await end(*workers)
            for stop in stops:
                stop()
            self._dependencies.close()
            self._queue.clear()
            self._unreadable.clear()
            self._conflicts.clear()
            self._published.clear()
            self._unsaid.clear()
            self._going.clear()
            self._reconciler.reset()

    async def drain(self, within: float) -> None:
        """Begin nothing new, and let what is going on come to its end."""
        self._stopping = True
        deadline = asyncio.get_running_loop().time() + within
        while self._queue.working and asyncio.get_running_loop().time() < deadline:
            await asyncio.sleep(0.02)

    def _listen(self) -> list[Callable[[], None]]:
        stops = [self._cache.listen(self._changed)]
        for trigger, share in zip(self._reconciler.triggers, self._trigger_shares, strict=True):

            def changed(change: Change[Any], trigger: Any = trigger) -> None:  # noqa: ANN401
                for key in trigger.keys(change, self._cache.by):
                    self._woken(key)

            stops.append(share.cache.listen(changed))
        return stops

    def _woken(self, key: Key) -> None:
        """Something has happened that concerns an object."""
        self._queue.add(key, Priority.GOING if key in self._going else Priority.CHANGE)

    def _changed(self, change: Change[R]) -> None:
        if not change.ours:
            self._queue.add(change.key)

    async def _work(self) -> None:
        while True:
            key = await self._queue.get()
            try:
                if not self._stopping:
                    await self._observed_pass(key)
            finally:
                self._queue.done(key)

    async def _observed_pass(self, key: Key) -> None:
        """One pass, with everything that tells people how it went."""
        started = time.monotonic()
        result = "error"
        with (
            structlog.contextvars.bound_contextvars(controller=self.name, object=str(key)),
            span("reconcile", kind=self.kind.kind, object=str(key)),
        ):
            try:
                result = await self._pass(key)
            except (ConflictError, OvertakenError):
                # Somebody was faster; what they wrote is known by now.
                result = "conflict"
                self._conflicts[key] = self._conflicts.get(key, 0) + 1
                self._queue.retry(key)
            except FencedError:
                result = "fenced"
                self._queue.add_after(key, 1.0)
            except asyncio.CancelledError:
                task = asyncio.current_task()
                if task is None or task.cancelling():
                    raise
                # Not ours: somebody cancelled what the pass was waiting for.
                self._queue.retry(key)
            except Exception as error:  # noqa: BLE001 -- one object's failure is nobody else's
                reason, message = explained(error)
                _log.warning("pass not ended", reason=reason, message=message, at=_frames(error))
                self._queue.retry(key)
        _seconds.labels(self.name).observe(time.monotonic() - started)
        _total.labels(self.name, result).inc()
        if result == "error":
            _errors.labels(self.name).inc()

    async def _pass(self, key: Key) -> str:
        found = self._cache.get(key)
        if found is None:
            self._forget(key)
            return "gone"
        if isinstance(found, Unreadable):
            return await self._report_unreadable(key, found)
        self._unreadable.pop(key, None)
        if found.metadata.deletion_timestamp is not None:
            return await self._finalize(key, found, copied(found))
        if is_suspended(found):
            return await self._suspend(key, found, copied(found))
        held = await self._held(key, found)
        if held is None:
            return "gone"
        return await self._reconcile(key, held, copied(held))

    async def _suspend(self, key: Key, found: R, object_: R) -> str:
        """Leave an object alone, and need nothing for it."""
        await self._reconciler.rest(object_)
        settled = self._conditions(found)
        settled.suspends("the object asks to be left alone; take that back to go on")
        object_.status.conditions = settled.result()
        await self._publish(key, found, object_)
        self._dependencies.settle(key, frozenset())
        self._queue.succeeded(key)
        return "suspended"

    async def _held(self, key: Key, found: R) -> R | None:
        """The object with our finalizer on it: before anything is done, that it can be undone."""
        finalizer = self._reconciler.finalizer
        if finalizer is None or finalizer in found.metadata.finalizers:
            return found
        await self._publisher.set_finalizers(found, [*found.metadata.finalizers, finalizer])
        held = self._cache.get(key)
        if held is None or isinstance(held, Unreadable):
            return None
        return held if finalizer in held.metadata.finalizers else None

    async def _reconcile(self, key: Key, found: R, object_: R) -> str:
        work = _Pass(found, object_)
        settled = self._conditions(found)
        context = self._context(key, work, settled)
        outcome = await self._judged(settled, self._reconciler.reconcile(object_, context))
        self._dependencies.settle(key, context.needed)
        object_.status.observed_generation = found.metadata.generation
        if context.answered and (request := _request(found)):
            object_.status.last_handled_reconcile_at = request
        return await self._told(key, work, settled, context, outcome)

    def _context(self, key: Key, work: "_Pass[R]", settled: Conditions) -> Context:
        async def save() -> bool:
            work.object.status.conditions = settled.result()
            try:
                published = await self._publish(key, work.found, work.object)
            except ConflictError as error:
                raise OvertakenError from error
            stored = self._cache.get(key)
            if published == "gone" or stored is None or isinstance(stored, Unreadable):
                raise OvertakenError
            work.found = stored
            return published == "written"

        return Context(key, settled, self._dependencies, save, asked=_is_asked(work.found))

    async def _told(
        self,
        key: Key,
        work: "_Pass[R]",
        settled: Conditions,
        context: Context,
        outcome: Outcome,
    ) -> str:
        """Publish how a pass has ended; while an object is moving, not more often than it may."""
        work.object.status.conditions = settled.result()
        for remark in context.remarks:
            self._recorder.record(remarked(work.found, remark))
        if (left := self._unsaid_for(key, work.found, outcome)) > 0:
            self._queue.add_after(key, left)
        else:
            await self._publish(key, work.found, work.object)
            self._unsaid.pop(key, None)
        self._schedule(key, outcome)
        return outcome.result

    def _unsaid_for(self, key: Key, found: R, outcome: Outcome) -> float:
        """Seconds for which how a pass ended need not be said: it may be otherwise by then."""
        pace = self._reconciler.pace(found)
        if not pace or outcome.result not in {"waiting", "error"}:
            return 0.0
        now = asyncio.get_running_loop().time()
        due = self._published.get(key, 0.0) + pace
        if outcome.on_the_way:
            due = max(due, self._unsaid.setdefault(key, now) + self._linger)
        return due - now

    @property
    def _linger(self) -> float:
        """Seconds for which what is on its way need not say so."""
        if not self._reconciler.patient:
            return self._reconciler.linger
        busy = min(WORTH * self.client.transport.takes, LONGEST_LINGER)
        return max(self._reconciler.linger, busy)

    async def _bounded(self, work: Awaitable[Result | None]) -> Result:
        """Do some work within the time of a pass."""
        try:
            async with asyncio.timeout(self._pass_limit) as limit:
                return await work or Result()
        except TimeoutError as error:
            if not limit.expired():
                raise
            raise PassTimedOutError(
                f"the pass took longer than {self._pass_limit:.0f} s; it is tried again"
            ) from error

    async def _judged(self, settled: Conditions, work: Awaitable[Result | None]) -> Outcome:
        """Do the work, and turn its end into conditions and the time of the next look."""
        try:
            result = await self._bounded(work)
        except Waiting as verdict:
            settled.waits(verdict.reason, verdict.message)
            going_on = verdict.reason in reasons.ON_THE_WAY
            return Outcome("waiting", verdict.after, on_the_way=going_on)
        except Stalled as verdict:
            settled.stalls(verdict.reason, verdict.message)
            return Outcome("stalled", verdict.after)
        except (FencedError, OvertakenError):
            raise
        except Exception as error:  # noqa: BLE001 -- one object's failure is nobody else's
            reason, message = explained(error)
            _log.warning("reconcile failed", reason=reason, message=message)
            if reason == reasons.INTERNAL_ERROR:
                _log.warning("unexpected error", at=_frames(error))
            settled.fails(reason, message)
            return Outcome("error", getattr(error, "retry_after", None))
        settled.succeeded(result.message)
        return Outcome("success", result.after)

    async def _finalize(self, key: Key, found: R, object_: R) -> str:
        """Take back what was done, then let the object go."""
        finalizer = self._reconciler.finalizer
        if finalizer is None or finalizer not in found.metadata.finalizers:
            return "deleted"
        work = _Pass(found, object_)
        settled = self._conditions(found)
        context = self._context(key, work, settled)
        outcome = await self._judged(settled, self._reconciler.finalize(object_, context))
        self._dependencies.settle(key, context.needed)
        if outcome.result != "success":
            return await self._told(key, work, settled, context, outcome)
        for remark in context.remarks:
            self._recorder.record(remarked(found, remark))
        left = [name for name in work.found.metadata.finalizers if name != finalizer]
        await self._publisher.set_finalizers(work.found, left)
        self._queue.forget(key)
        return "finalized"

    async def _report_unreadable(self, key: Key, found: Unreadable) -> str:
        """Say so in the object itself, as far as an object that cannot be read can be told."""
        said = (found.metadata.uid, found.problem)
        if self._unreadable.get(key) == said:
            return "unreadable"
        _log.warning("object cannot be read", problem=found.problem)
        settled = Conditions((), generation=0, steps=(), now=datetime.now(UTC))
        message = f"the stored object does not fit its schema: {found.problem}; edit it to go on"
        settled.stalls(reasons.UNREADABLE, message)
        told = msgspec.to_builtins(settled.result())
        await self._publisher.publish_unreadable(key, found, {"conditions": told})
        self._unreadable[key] = said
        return "unreadable"

    async def _publish(self, key: Key, found: R, object_: R) -> Published:
        conflicts = self._conflicts.get(key, 0)
        published = await self._publisher.publish(found, object_.status, conflicts=conflicts)
        if published == "written":
            self._published[key] = asyncio.get_running_loop().time()
        self._conflicts.pop(key, None)
        return published

    def _schedule(self, key: Key, outcome: Outcome) -> None:
        if outcome.on_the_way:
            self._going.add(key)
        else:
            self._going.discard(key)
        if outcome.result == "error":
            if outcome.after is None:
                self._queue.retry(key)
            else:
                self._queue.add_after(key, outcome.after)
            return
        self._queue.succeeded(key)
        self._queue.add_after(key, min(outcome.after or RESYNC, spread(RESYNC)))

    def _conditions(self, found: R) -> Conditions:
        """What is known of an object, without steps that it has no more."""
        steps = self._reconciler.steps(found)
        past = set(type(found).definition.conditions).difference(steps)
        return Conditions(
            [known for known in found.status.conditions if known.type not in past],
            generation=found.metadata.generation,
            steps=steps,
            now=datetime.now(UTC),
        )

    def _forget(self, key: Key) -> None:
        self._queue.forget(key)
        self._dependencies.settle(key, frozenset())
        self._unreadable.pop(key, None)
        self._conflicts.pop(key, None)
        self._published.pop(key, None)
        self._unsaid.pop(key, None)
        self._going.discard(key)
        self._reconciler.forget(key)


def _frames(error: BaseException) -> str:
    """Where an error comes from, without its text: that may hold whatever passed through it."""
    frames = traceback.extract_tb(error.__traceback__)[-8:]
    return " < ".join(f"{Path(f.filename).name}:{f.lineno} {f.name}" for f in reversed(frames))


async def _synced(share: Share[Any]) -> None:
    """Wait for a cache for as long as it takes; it logs why, and /readyz says what is missing."""
    while not share.cache.synced:
        with suppress(KubeError):
            await share.cache.until_synced(30.0)
            return
        await asyncio.sleep(1.0)


def _request(object_: Resource[Any, Any]) -> str:
    """What the annotation says by which somebody asks for a pass."""
    request: str = object_.metadata.annotations.get(REQUESTED, "")
    return request[:_LONGEST_REQUEST]


def _is_asked(object_: Resource[Any, Any]) -> bool:
    """Whether somebody asks for a pass that was not had yet."""
    return _request(object_) not in {"", object_.status.last_handled_reconcile_at}


def is_suspended(object_: Any) -> bool:  # noqa: ANN401 -- any kind
    """Whether an object asks to be left alone, in one of the ways to say so."""
    spec, labels = object_.spec, object_.metadata.labels
    asked = getattr(spec, "suspend", False) or getattr(spec, "paused", False)
    return bool(asked) or labels.get(PAUSED) == "true"
