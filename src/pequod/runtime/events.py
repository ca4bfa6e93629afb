"""Events about our objects: made from the changes of conditions, counted instead of repeated.

Recording never waits and never fails; a worker of its own sends what there is. The same reason for
the same object becomes one Event with a growing count, and an object that has much to tell is cut
short. What two objects are about to tell one after the other, a graph and its source, is told once.
"""

import asyncio
import secrets
from dataclasses import dataclass, replace
from typing import Any, Literal

import structlog
from prometheus_client import Counter

from pequod.api import reasons
from pequod.api.meta import Condition, Resource
from pequod.kube.client import Client, Write
from pequod.kube.errors import FencedError, KubeError, NotFoundError
from pequod.kube.kinds import EVENTS
from pequod.kube.objects import Object, micro_time
from pequod.runtime.context import Remark

CONTROLLER = "pequod.io/operator"
SERIES = 600.0
"""Seconds after which a repeated event is a new one."""
HOLD = 5.0
"""Seconds for which something waits for another object to tell the same."""
QUIET = 60.0
"""Seconds between two updates of a count."""
BURST = 25
REFILL = 300.0
"""Seconds after which an object that told too much may tell one thing more."""
_BACKLOG = 1000
_LONGEST_NOTE = 1024
_LONGEST_NAME = 200

_dropped = Counter("pequod_events_dropped_total", "Events that were not recorded.", ("why",))
_log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class Happening:
    """Something to tell about an object."""

    about: Object
    namespace: str
    type: Literal["Normal", "Warning"]
    reason: str
    action: str
    note: str
    distinct: bool = False
    """Whether another note makes it another happening."""
    details: str = ""
    """What else there is to say; it may be said by another object."""
    along_with: str = ""
    """UID of that object."""

    @property
    def text(self) -> str:
        """All that there is to say."""
        return "; ".join(part for part in (self.note, self.details) if part)

    @property
    def series(self) -> tuple[str, str, str, str]:
        """What makes two of them one and the same, told twice."""
        return (self.about["uid"], self.reason, self.action, self.text if self.distinct else "")


@dataclass(slots=True)
class _Series:
    name: str
    began: float
    count: int = 1
    told: float = 0.0


@dataclass(slots=True)
class _Allowance:
    left: float
    at: float


class Recorder:
    """Sends events in the background."""

    def __init__(self, client: Client, *, instance: str) -> None:
        self._client = client
        self._instance = instance[:128]
        self._backlog: asyncio.Queue[Happening] = asyncio.Queue(_BACKLOG)
        self._series: dict[tuple[str, str, str, str], _Series] = {}
        self._allowances: dict[str, _Allowance] = {}
        self._held: dict[tuple[str, str], tuple[Happening, asyncio.TimerHandle]] = {}
        """What waits to be told along with something, by the UID and the reason of that."""

    def record(self, happening: Happening) -> None:
        """Tell something soon, or never if there is too much to tell."""
        if happening.along_with:
            self._hold(happening)
            return
        held = self._taken(happening.about["uid"], happening.reason)
        self._send_soon(replace(happening, details=held.details) if held else happening)

    def _hold(self, happening: Happening) -> None:
        """Wait for whoever may be about to tell the same."""
        place = (happening.along_with, happening.reason)
        self._tell_alone(place)
        timer = asyncio.get_running_loop().call_later(HOLD, self._tell_alone, place)
        self._held[place] = (happening, timer)

    def _tell_alone(self, place: tuple[str, str]) -> None:
        if held := self._taken(*place):
            self._send_soon(held)

    def _taken(self, uid: str, reason: str) -> Happening | None:
        held, timer = self._held.pop((uid, reason), (None, None))
        if timer is not None:
            timer.cancel()
        return held

    def _send_soon(self, happening: Happening) -> None:
        try:
            self._backlog.put_nowait(happening)
        except asyncio.QueueFull:
            _dropped.labels("backlog").inc()

    async def run(self) -> None:
        """Send what is recorded, one after the other."""
        while True:
            happening = await self._backlog.get()
            self._forget_the_past()
            try:
                await self._tell(happening)
            except FencedError:
                _dropped.labels("not leading").inc()
            except KubeError as error:
                _dropped.labels("refused").inc()
                _log.info("event not recorded", reason=happening.reason, error=str(error))

    async def _tell(self, happening: Happening) -> None:
        now = asyncio.get_running_loop().time()
        known = self._series.get(happening.series)
        if known is None:
            if self._may_tell(happening.about["uid"], now):
                await self._create(happening, now)
            return
        known.count += 1
        if now - known.told < QUIET:
            return
        known.told = now
        try:
            await self._count(happening, known)
        except NotFoundError:
            # Somebody removed it, or it has grown too old.
            del self._series[happening.series]
            await self._create(happening, now)

    async def _create(self, happening: Happening, now: float) -> None:
        name = f"{happening.about['name'][:_LONGEST_NAME]}.{secrets.token_hex(8)}"
        self._series[happening.series] = _Series(name, began=now, told=now)
        await self._client.create(
            EVENTS,
            {
                "apiVersion": EVENTS.api_version,
                "kind": EVENTS.kind,
                "metadata": {"name": name, "namespace": happening.namespace},
                "eventTime": micro_time(),
                "type": happening.type,
                "reason": happening.reason[:128],
                "action": happening.action,
                "note": happening.text[:_LONGEST_NOTE],
                "regarding": happening.about,
                "reportingController": CONTROLLER,
                "reportingInstance": self._instance,
            },
        )

    async def _count(self, happening: Happening, series: _Series) -> None:
        patch = {"series": {"count": series.count, "lastObservedTime": micro_time()}}
        await self._client.patch(EVENTS, series.name, patch, Write(), namespace=happening.namespace)

    def _may_tell(self, uid: str, now: float) -> bool:
        allowance = self._allowances.setdefault(uid, _Allowance(BURST, now))
        allowance.left = min(BURST, allowance.left + (now - allowance.at) / REFILL)
        allowance.at = now
        if allowance.left < 1:
            _dropped.labels("too many of one object").inc()
            return False
        allowance.left -= 1
        return True

    def _forget_the_past(self) -> None:
        now = asyncio.get_running_loop().time()
        for key in [key for key, known in self._series.items() if now - known.began > SERIES]:
            del self._series[key]
        full = BURST * REFILL
        for uid in [uid for uid, known in self._allowances.items() if now - known.at > full]:
            del self._allowances[uid]


def happenings(resource: Resource[Any, Any], news: list[Condition]) -> list[Happening]:
    """What to tell about the conditions of an object that changed."""
    return [
        Happening(
            about=_about(resource),
            namespace=resource.metadata.namespace or "default",
            type="Normal" if condition.status == "True" else "Warning",
            reason=_reason(condition),
            action=condition.type,
            note=condition.message or f"{condition.type} is {condition.status}",
        )
        for condition in news
    ]


def remarked(resource: Resource[Any, Any], remark: Remark) -> Happening:
    """What a reconciler has to tell besides."""
    return Happening(
        about=_about(resource),
        namespace=resource.metadata.namespace or "default",
        type=remark.type,
        reason=remark.reason,
        action="Reconcile",
        note=remark.note,
        details=remark.details,
        along_with=remark.along_with,
        distinct=True,
    )


def _about(resource: Resource[Any, Any]) -> Object:
    metadata = resource.metadata
    about: Object = {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "name": metadata.name,
        "uid": metadata.uid,
    }
    if metadata.namespace:
        about["namespace"] = metadata.namespace
    return about


def _reason(condition: Condition) -> str:
    """The reason of an event; that something succeeded says less than what it was."""
    return condition.type if condition.reason == reasons.SUCCEEDED else condition.reason
