"""One object, applied: created only where there is none, changed only where it is ours.

At most two requests for drift, one for a change; what the API server says against it becomes a
`RefusedError` with a sentence for a person.
"""

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

import msgspec
from prometheus_client import Counter, Histogram

from pequod.api import reasons
from pequod.api.graph import ApplyPolicy
from pequod.graph.child import PRUNE, Child
from pequod.graph.children import Children
from pequod.graph.desired import Desired
from pequod.graph.fields import managers, previous_managers
from pequod.graph.model import GRAPH_LABEL, Ref, graph_of, released_by
from pequod.graph.ownership import HANDOVER
from pequod.graph.problems import conflict, explained, is_absent, is_immutable
from pequod.graph.record import Problem
from pequod.graph.takeover import take_over
from pequod.kube.client import Client, Exactly, Write
from pequod.kube.errors import ConflictError, FieldConflictError, KubeError, NotFoundError
from pequod.kube.objects import Object

_FORCED = Write(force=True)
_PLAIN = Write()
_encoder = msgspec.json.Encoder()

_total = Counter("pequod_apply_total", "Objects that were applied, or not.", ("result",))
_seconds = Histogram(
    "pequod_apply_duration_seconds",
    "How long an apply took, with everything that it needed.",
    buckets=(0.001, 0.005, 0.025, 0.1, 0.5, 1, 5, 30),
)


class RefusedError(Exception):
    """An apply that failed, explained."""

    def __init__(self, problem: Problem, *, lost: bool = False) -> None:
        super().__init__(problem.message)
        self.problem = problem
        self.lost = lost
        """Whether the object that we knew is gone."""


class DeletingError(Exception):
    """Somebody deletes the object: it can be made anew only when it is gone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What is to be applied, and on which terms."""

    desired: Desired
    graph: str
    """UID of the graph."""
    policy: ApplyPolicy
    uid: str
    """Of the object that we know; empty when we know none."""
    force: bool
    ours: bool
    """Whether all that is asked for was applied before: then its fields are ours to take back."""
    may_retake: bool
    adopts: bool = False
    """Whether an object that exists already, and is nobody else's, joins the graph."""
    version: str = ""
    """That the object must still have; empty for any."""
    lets_replicas_go: bool = False
    """Whether it no longer says how many replicas there are, and did so before."""
    sensitive: bool = False
    protected: bool = False
    """Whether the object asks not to be deleted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """The object as the API server has it now."""

    child: Child
    created: bool = False
    retaken: bool = False
    """Whether fields had to be taken back from somebody."""
    adopted: bool = False
    """Whether it existed before and has joined the graph just now."""
    previous_managers: tuple[str, ...] = ()


class Applier:
    """Applies objects in one identity's name."""

    def __init__(
        self,
        client: Client,
        children: Children,
        *,
        confirm: Callable[[], Awaitable[None]],
        lives: Callable[[str], bool],
    ) -> None:
        self._client = client
        self._children = children
        self._confirm = confirm
        """Look at the graph itself; raises when it is not what it was taken for."""
        self._lives = lives
        """Whether there is a graph of a UID."""

    async def apply(self, wish: Wish) -> Taken:
        """Make an object so; raises RefusedError, or DeletingError."""
        started = time.monotonic()
        result = "error"
        try:
            with self._children.writing(wish.desired.kind, wish.desired.ref):
                taken = await self._taken(wish)
            result = "created" if taken.created else "changed"
        except (KubeError, ValueError) as error:
            problem = explained(error, wish.desired.ref, sensitive=wish.sensitive)
            raise RefusedError(problem) from error
        finally:
            _total.labels(result).inc()
            _seconds.observe(time.monotonic() - started)
        return taken

    async def _taken(self, wish: Wish) -> Taken:
        if not wish.uid:
            return await self._created(wish)
        if wish.lets_replicas_go:
            await self._hand_replicas_over(wish)
        try:
            return await self._changed(wish, wish.uid)
        except ConflictError as error:
            if not is_absent(error):
                raise
        # What we knew is gone; whatever has its name now is met as at the first time.
        first = replace(wish, force=wish.policy.conflict_policy == "Force")
        try:
            return await self._created(first)
        except RefusedError as error:
            raise RefusedError(error.problem, lost=True) from error

    async def _created(self, wish: Wish) -> Taken:
        try:
            answer = await self._send(wish, "", _PLAIN)
        except ConflictError:
            # Where fields are managed by somebody, that is what the API server complains of first.
            return await self._met(wish)
        return Taken(child=answer, created=True)

    async def _met(self, wish: Wish, tries: int = 3) -> Taken:
        """Something of that name exists: go on if it is ours, or may become so."""
        ref, kind = wish.desired.ref, wish.desired.kind
        found = await self._client.get(kind, ref.name, namespace=ref.namespace or None)
        metadata = found["metadata"]
        if metadata.get("deletionTimestamp"):
            raise DeletingError
        label = graph_of(found)
        if wish.graph in {label, released_by(found)}:
            return await self._changed(wish, metadata["uid"])
        lives = bool(label) and self._lives(label)
        if lives or not wish.adopts:
            raise RefusedError(not_ours(wish.desired.ref, found, lives=lives))
        try:
            return await self._adopted(wish, found)
        except FieldConflictError:
            raise
        except ConflictError:
            # Its controller has written on it in between: look again.
            if tries == 1:
                raise
            return await self._met(wish, tries - 1)

    async def _adopted(self, wish: Wish, found: Object) -> Taken:
        metadata = found["metadata"]
        annotations = metadata.get("annotations") or {}
        wish = replace(wish, protected=annotations.get(PRUNE) == "disabled")
        recreates = wish.policy.recreate == "OnImmutable" and not wish.protected
        version = await take_over(
            self._client, wish.desired, found, force=wish.force, may_recreate=recreates
        )
        # Of two graphs that adopt the same object, the second one has to see what it is by then.
        taken = await self._changed(replace(wish, version=version), metadata["uid"])
        return Taken(
            child=taken.child,
            retaken=taken.retaken,
            adopted=True,
            previous_managers=previous_managers(metadata),
        )

    async def _changed(self, wish: Wish, uid: str) -> Taken:
        try:
            answer = await self._send(wish, uid, _FORCED if wish.force else _PLAIN)
        except FieldConflictError as error:
            if not wish.ours:
                raise
            if not wish.may_retake:
                raise RefusedError(conflict(error, wish.desired.ref, fought=True)) from error
            answer = await self._send(wish, uid, _FORCED)
            return Taken(child=answer, retaken=True)
        except KubeError as error:
            recreates = wish.policy.recreate == "OnImmutable" and not wish.protected
            if not is_immutable(error) or not recreates:
                raise
            return await self._recreated(wish, uid)
        return Taken(child=answer, retaken=wish.force and wish.ours)

    async def _recreated(self, wish: Wish, uid: str) -> Taken:
        """Delete an object and make it anew, as its policy says; its pods go with it."""
        ref, kind = wish.desired.ref, wish.desired.kind
        await self._confirm()
        answer = await self._client.delete(
            kind,
            ref.name,
            Exactly(uid),
            namespace=ref.namespace or None,
            propagation="Foreground",
        )
        if is_gone(answer):
            return await self._created(wish)
        self._children.observe(kind, answer)
        raise DeletingError

    async def _hand_replicas_over(self, wish: Wish) -> None:
        """Keep the number of replicas as it is until an autoscaler says another one."""
        ref, kind = wish.desired.ref, wish.desired.kind
        try:
            found = await self._client.get(kind, ref.name, namespace=ref.namespace or None)
        except NotFoundError:
            return
        replicas = (found.get("spec") or {}).get("replicas")
        if found["metadata"].get("uid") != wish.uid or not isinstance(replicas, int):
            return
        metadata = {"name": ref.name, "uid": wish.uid}
        if ref.namespace:
            metadata["namespace"] = ref.namespace
        kept: Object = {
            "apiVersion": kind.api_version,
            "kind": kind.kind,
            "metadata": metadata,
            "spec": {"replicas": replicas},
        }
        await self._client.apply(kind, kept, Write(force=True, manager=HANDOVER))

    async def _send(self, wish: Wish, uid: str, how: Write) -> Child:
        ref, kind = wish.desired.ref, wish.desired.kind
        body = _encoder.encode(wish.desired.with_precondition(uid, wish.version))
        answer = await self._client.apply_bytes(
            kind, ref.name, body, how, namespace=ref.namespace or None
        )
        return self._children.observe(kind, answer)


def is_gone(answer: bytes) -> bool:
    """Whether the answer to a delete says that the object is gone, not only going."""
    answered = msgspec.json.decode(answer, type=_Answered)
    return answered.kind == "Status" or answered.metadata.deletion_timestamp is None


class _AnsweredMetadata(msgspec.Struct, frozen=True, rename="camel"):
    deletion_timestamp: str | None = None


class _Answered(msgspec.Struct, frozen=True):
    kind: str = ""
    metadata: _AnsweredMetadata = _AnsweredMetadata()


def not_ours(ref: Ref, found: Object, *, lives: bool) -> Problem:
    """Whose an object is, and what helps: what a living graph keeps, nobody can adopt."""
    label = graph_of(found)
    others = ", ".join(managers(found["metadata"])) or "nobody that is known"
    owner = f"belongs to another graph ({GRAPH_LABEL}={label})" if label else "is not of a graph"
    way_out = "remove it, or set applyPolicy.mode to Adopt"
    if lives:
        way_out = "remove it from that graph first, or give the object another name"
    return Problem(
        reasons.ALREADY_EXISTS,
        f"{ref} exists already and {owner}; managed by {others}: {way_out}",
    )
