"""The module of a Transform, fetched: by whichever way its reference names, in its tenant's name.

A source that takes long is fetched in the background; the pass says so and is woken when the tree
is there. A reference that can move is resolved again after its interval, or when somebody asks.
"""

import asyncio
from base64 import b64decode
from binascii import Error as BadBase64
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
from pequod.kube.objects import Key
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
    binary_data: dict[str, str] = {}


class _Secret(msgspec.Struct, frozen=True):
    data: dict[str, str] = {}


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

    def lasts(self, interval: float) -> float:
        """Seconds for which it is the answer."""
        return min(interval, REMEMBERED) if self.asked_for else interval


class Modules:
    """The modules of all Transforms."""

    def __init__(self, library: Library, identities: Identities) -> None:
        self._library = library
        self._identities = identities
        self._fetches: dict[Key, _Fetch] = {}
        self._background = Background()
        self.wake: Callable[[Key], None] = lambda _key: None
        """Wakes a Transform whose module is there; the reconciler says how."""

    async def fetched(self, transform: Transform, ctx: Context) -> Artifact:
        """The module as it is now, or was a moment ago; raises a verdict or a SourceError."""
        wish = await self._wish(transform, ctx)
        fetch = self._fetches.get(ctx.key)
        if fetch is None or not self._holds(fetch, wish, transform):
            fetch = await self._begin(transform, ctx, wish)
        if not fetch.task.done():
            await asyncio.wait((fetch.task,), timeout=AT_ONCE)
        if not fetch.task.done():
            fetch.task.add_done_callback(lambda _task: self.wake(ctx.key))
            raise Waiting(reasons.FETCHING, f"{_named(wish.reference)} is being fetched")
        try:
            return fetch.task.result()
        except SourceError as error:
            self.forget(ctx.key)
            raise _judged(error, transform) from error
        except (Verdict, KubeError):
            self.forget(ctx.key)
            raise

    def after(self, transform: Transform, key: Key) -> float | None:
        """Seconds until the reference is to be resolved again; None when it cannot move."""
        fetch = self._fetches.get(key)
        if fetch is None or not _moves(transform.spec.cue_ref):
            return None
        return max(fetch.at + fetch.lasts(seconds(transform.spec.interval)) - _clock(), 0.1)

    def forget(self, key: Key) -> None:
        """A Transform is gone, or its module is not needed."""
        fetch = self._fetches.pop(key, None)
        if fetch is not None:
            fetch.task.cancel()

    async def close(self) -> None:
        """End what is still going on."""
        self._fetches.clear()
        await self._background.close()

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
        self.forget(ctx.key)
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
    binary = {key: b64decode(text) for key, text in found.binary_data.items()}
    return await configmap.add(library.store, f"ConfigMap {namespace}/{name}", found.data, binary)


async def _credentials(client: Client, namespace: str, name: str) -> Credentials:
    try:
        found = await client.get(SECRETS, name, namespace=namespace, type=_Secret)
    except NotFoundError as error:
        raise _absent(SECRETS, namespace, name) from error
    try:
        data = {key: b64decode(text) for key, text in found.data.items()}
    except (BadBase64, ValueError) as error:
        raise Stalled(
            reasons.BAD_CREDENTIALS, f"Secret {namespace}/{name} cannot be decoded"
        ) from error
    return read_secret(data, name=f"{namespace}/{name}")


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
