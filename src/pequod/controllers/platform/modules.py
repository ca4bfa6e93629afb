"""The module of a Transform, fetched: by whichever way its reference names, in its tenant's name.

A source that takes long is fetched in the background; the pass says so and is woken when the tree
is there. A reference that can move is resolved again after its interval, or when somebody asks;
what it was resolved to before stays in use meanwhile.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from pequod.api import reasons
from pequod.api.platform import CueReference, Transform
from pequod.base.durations import seconds
from pequod.base.tasks import Background
from pequod.controllers.platform.identity import Identities
from pequod.kube.client import Client
from pequod.kube.errors import KubeError, NotFoundError
from pequod.kube.kinds import CONFIG_MAPS, SECRETS, Kind
from pequod.kube.objects import Key, Secret
from pequod.runtime.context import Context
from pequod.runtime.controller import REQUESTED
from pequod.runtime.verdicts import Stalled, Verdict, Waiting
from pequod.sources import configmap
from pequod.sources.artifact import Artifact
from pequod.sources.credentials import ANONYMOUS, Credentials, read_secret
from pequod.sources.errors import BadReferenceError, SourceError
from pequod.sources.library import Library
from pequod.sources.resolver import Reference

AT_ONCE = 2.0
"""Seconds for which a pass waits for a source before it goes on with others."""
AGAIN = 60.0
"""Seconds after which something that was not there is looked for again, at the latest."""
REMEMBERED = 6.0
"""Seconds after which no source gives an answer that is older than the question was."""
_MOVING = frozenset({"git", "oci"})


class _ConfigMap(msgspec.Struct, frozen=True, rename="camel"):
    data: dict[str, str] = {}
    binary_data: dict[str, bytes] = {}


@dataclass(frozen=True, slots=True)
class _Wish:
    """What is to be fetched: while it is the same, the answer may be."""

    reference: CueReference
    version: str
    """Of the Secret or the ConfigMap that it refers to."""
    requested: str
    """What somebody who wants it to be resolved anew has written."""


@dataclass(slots=True)
class _Fetch:
    wish: _Wish
    task: asyncio.Task[Artifact]
    at: float = 0.0
    """When it ended, by the loop's clock."""
    asked_for: bool = False
    """Whether somebody wants to see what has just changed: what sources remember is too old."""
    goes_on: bool = False
    """Whether a pass has gone on without it: its end wakes the Transform."""

    def lasts(self, interval: float) -> float:
        """Seconds for which it is the answer."""
        return min(interval, REMEMBERED) if self.asked_for else interval


@dataclass(slots=True)
class _Known:
    """What a reference was resolved to last."""

    reference: CueReference
    artifact: Artifact
    failure: Exception | None = None
    """Why it could not be resolved again since then."""


class Modules:
    """The modules of all Transforms."""

    def __init__(self, library: Library, identities: Identities) -> None:
        self._library = library
        self._identities = identities
        self._fetches: dict[Key, _Fetch] = {}
        self._known: dict[Key, _Known] = {}
        self._background = Background()
        self.wake: Callable[[Key], None] = lambda _key: None
        """Wakes a Transform whose module is there; the reconciler says how."""

    async def fetched(self, transform: Transform, ctx: Context) -> Artifact:
        """The module as it is now, or was a moment ago; raises a verdict or a SourceError."""
        wish = await self._wish(transform, ctx)
        fetch = self._fetches.get(ctx.key)
        if fetch is None or not self._holds(fetch, wish, transform):
            fetch = await self._begin(transform, ctx, wish)
        if not await self._is_there(fetch, ctx.key):
            # Whoever asks wants to see what it is by now, not what is in use meanwhile.
            ctx.answered = not ctx.asked
            return self._meanwhile(fetch, ctx.key)
        try:
            artifact = fetch.task.result()
        except SourceError as error:
            failure = _judged(error, transform)
            self._note_failure(failure, wish.reference, ctx.key)
            raise failure from error
        except (Verdict, KubeError) as error:
            self._note_failure(error, wish.reference, ctx.key)
            raise
        self._known[ctx.key] = _Known(wish.reference, artifact)
        return artifact

    def after(self, transform: Transform, key: Key) -> float | None:
        """Seconds until the reference is to be resolved again; None when it cannot move.

        None as well while it is being resolved: the end of that wakes the Transform.
        """
        fetch = self._fetches.get(key)
        if fetch is None or not fetch.task.done() or not _moves(transform.spec.cue_ref):
            return None
        return max(fetch.at + fetch.lasts(seconds(transform.spec.interval)) - _clock(), 0.1)

    def forget(self, key: Key) -> None:
        """A Transform is gone, or its module is not needed, or its tree is gone."""
        self._known.pop(key, None)
        self._end(key)

    def _end(self, key: Key) -> None:
        """End a fetch that nobody needs any more."""
        fetch = self._fetches.pop(key, None)
        if fetch is not None:
            fetch.task.cancel()

    async def close(self) -> None:
        """End what is still going on."""
        self._fetches.clear()
        self._known.clear()
        await self._background.close()

    async def _is_there(self, fetch: _Fetch, key: Key) -> bool:
        """Whether a fetch has ended; one pass waits for that, and is woken if it was too early."""
        if not fetch.task.done() and not fetch.goes_on:
            await asyncio.wait((fetch.task,), timeout=AT_ONCE)
            if not fetch.task.done():
                fetch.goes_on = True
                fetch.task.add_done_callback(lambda _task: self.wake(key))
        return fetch.task.done()

    def _meanwhile(self, fetch: _Fetch, key: Key) -> Artifact:
        """What is known of a reference while it is being resolved, if that is anything."""
        known, reference = self._known.get(key), fetch.wish.reference
        if known is None or known.reference != reference:
            raise Waiting(reasons.FETCHING, f"{_named(reference)} is being fetched")
        if known.failure is not None:
            # Not good again before it is known to be: what is said would change with every try.
            raise known.failure.with_traceback(None)
        return known.artifact

    def _note_failure(self, failure: Exception, reference: CueReference, key: Key) -> None:
        """A fetch has ended in vain: the next pass begins another one."""
        self._end(key)
        known = self._known.get(key)
        if known is not None and known.reference == reference:
            known.failure = failure

    async def _wish(self, transform: Transform, ctx: Context) -> _Wish:
        reference = transform.spec.cue_ref
        needed: tuple[Kind, str] | None = None
        if reference.pull_secret_ref is not None:
            needed = (SECRETS, reference.pull_secret_ref.name)
        elif reference.type == "configmap":
            needed = (CONFIG_MAPS, reference.ref)
        version = ""
        if needed is not None:
            kind, name = needed
            found = await ctx.observed(kind, Key(ctx.key.namespace, name))
            if found is None:
                raise _absent(kind, ctx.key.namespace, name)
            version = found.metadata.resource_version
        return _Wish(reference, version, transform.metadata.annotations.get(REQUESTED, ""))

    def _holds(self, fetch: _Fetch, wish: _Wish, transform: Transform) -> bool:
        """Whether what was fetched is still the answer."""
        if fetch.wish != wish:
            return False
        if not fetch.task.done() or not _moves(wish.reference):
            return True
        return _clock() - fetch.at < fetch.lasts(seconds(transform.spec.interval))

    async def _begin(self, transform: Transform, ctx: Context, wish: _Wish) -> _Fetch:
        account = transform.spec.service_account_name
        client = await self._identities.home(ctx.key.namespace, account)
        before = self._fetches.get(ctx.key)
        asked_for = before is not None and before.wish.requested != wish.requested
        self._end(ctx.key)
        work = fetch_module(self._library, wish.reference, ctx.key.namespace, client)
        task = self._background.start(work, name=f"fetch {ctx.key}")
        fetch = self._fetches[ctx.key] = _Fetch(wish, task, _clock(), asked_for)
        task.add_done_callback(lambda _task: setattr(fetch, "at", _clock()))
        return fetch


async def fetch_module(
    library: Library, reference: CueReference, namespace: str, client: Client
) -> Artifact:
    """The module of a reference; what it refers to in its namespace is read by the client."""
    match reference.type:
        case "inline":
            return await library.inline.resolve(reference.ref)
        case "configmap":
            return await _config_map(library, reference.ref, namespace, client)
        case kind:
            credentials = ANONYMOUS
            if reference.pull_secret_ref is not None:
                name = reference.pull_secret_ref.name
                credentials = await _credentials(client, namespace, name)
            wanted = Reference(type=kind, ref=reference.ref.removeprefix("oci://"))
            return await library.resolver.resolve(wanted, credentials)


async def _config_map(library: Library, name: str, namespace: str, client: Client) -> Artifact:
    try:
        found = await client.get(CONFIG_MAPS, name, namespace=namespace, type=_ConfigMap)
    except NotFoundError as error:
        raise _absent(CONFIG_MAPS, namespace, name) from error
    label = f"ConfigMap {namespace}/{name}"
    return await configmap.add(library.store, label, found.data, found.binary_data)


async def _credentials(client: Client, namespace: str, name: str) -> Credentials:
    try:
        found = await client.get(SECRETS, name, namespace=namespace, type=Secret)
    except NotFoundError as error:
        raise _absent(SECRETS, namespace, name) from error
    return read_secret(found.content, name=f"{namespace}/{name}")


def _absent(kind: Kind, namespace: str, name: str) -> Waiting:
    reason = reasons.SECRET_NOT_FOUND if kind is SECRETS else reasons.SOURCE_MISSING
    text = f"{kind.kind} {namespace}/{name} does not exist; create it, or correct spec.cueRef"
    return Waiting(reason, text, after=AGAIN)


def _judged(error: SourceError, transform: Transform) -> Exception:
    """What a failure means for the pass: some only a person can mend, some may pass."""
    if isinstance(error, BadReferenceError):
        return Stalled(error.reason, str(error))
    if error.transient:
        return error
    after = min(seconds(transform.spec.interval), AGAIN)
    return Waiting(error.reason, str(error), after=after)


def _moves(reference: CueReference) -> bool:
    """Whether a reference may come to mean something else by itself."""
    return reference.type in _MOVING and "@sha256:" not in reference.ref


def _named(reference: CueReference) -> str:
    return "the module" if reference.type == "inline" else f"{reference.type} {reference.ref}"


def _clock() -> float:
    return asyncio.get_running_loop().time()
