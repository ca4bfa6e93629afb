"""The verbs of an API server, for plain objects.

Everything that a caller may want to know of a failure is in the exception (`errors.py`). A client
is cheap: `acting_as` makes another one on the same transport.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Literal, TypeVar, overload
from urllib.parse import urlencode

import msgspec

from pequod.kube.auth import Impersonation
from pequod.kube.errors import BrokenAnswerError, GoneError
from pequod.kube.kinds import Kind
from pequod.kube.objects import MISFITS, Object
from pequod.kube.transport import Request, Transport

FIELD_MANAGER = "pequod-operator"
PAGE = 500
METADATA_ONLY = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"
METADATA_ONLY_LIST = (
    "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
)

T = TypeVar("T")
Propagation = Literal["Background", "Foreground", "Orphan"]

_encoder = msgspec.json.Encoder()


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """How a write is meant."""

    dry_run: bool = False
    """Let the API server check everything and store nothing."""
    force: bool = False
    """Take over fields that other managers have; for apply only."""
    manager: str = FIELD_MANAGER
    validation: Literal["Strict", "Warn", "Ignore"] = "Strict"
    """What the API server does about fields that the schema does not know; not for apply."""
    part: str | None = None
    """The sub-resource that is written, for example `status`."""

    def query(self) -> str:
        """The query that says so."""
        return _query(self)


@lru_cache(maxsize=256)
def _query(how: Write) -> str:
    options = {"fieldManager": how.manager, "fieldValidation": how.validation}
    if how.force:
        options["force"] = "true"
    if how.dry_run:
        options["dryRun"] = "All"
    return urlencode(options)


@lru_cache(maxsize=256)
def _lenient(how: Write) -> Write:
    """An apply by its schema refuses what that does not know anyhow.

    To be strict, the API server would read the whole body as YAML a second time.
    """
    return replace(how, validation="Ignore")


PLAIN = Write()


@dataclass(frozen=True, slots=True)
class Exactly:
    """Which object a delete is for, and in which version, if that matters."""

    uid: str
    resource_version: str | None = None

    def preconditions(self) -> dict[str, str]:
        """What the API server checks before it deletes."""
        if not self.uid:
            raise ValueError("a delete names the UID of what it deletes")
        if self.resource_version is None:
            return {"uid": self.uid}
        return {"uid": self.uid, "resourceVersion": self.resource_version}


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Which objects of a kind are meant."""

    namespace: str | None = None
    """One namespace; None for all."""
    labels: str = ""
    """A label selector, as kubectl's `-l` has it."""
    fields: str = ""
    """A field selector."""

    def query(self, **more: str) -> dict[str, str]:
        """The query that says so."""
        chosen = {"labelSelector": self.labels, "fieldSelector": self.fields}
        return {name: value for name, value in chosen.items() if value} | more


ALL = Selection()


class ListMeta(msgspec.Struct, frozen=True, rename="camel"):
    """What a list says of itself."""

    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")
    remaining_item_count: int = 0


class Page(msgspec.Struct, frozen=True):
    """A part of a list; its items are not decoded yet, so that one bad one is only one."""

    kind: str = ""
    metadata: ListMeta = ListMeta()
    items: list[msgspec.Raw] | None = None
    anew: bool = False
    """Whether this is all of the list as it is by now: what earlier pages held does not count."""


_pages = msgspec.json.Decoder(Page)


class _Version(msgspec.Struct, frozen=True, rename="camel"):
    git_version: str


class Client:
    """One identity at one API server."""

    def __init__(self, transport: Transport, impersonation: Impersonation | None = None) -> None:
        self.transport = transport
        who = impersonation or transport.access.impersonation
        self._headers = tuple(who.headers()) if who else ()

    def acting_as(self, impersonation: Impersonation) -> "Client":
        """The same API server in somebody's name."""
        return Client(self.transport, impersonation)

    @overload
    async def get(self, kind: Kind, name: str, *, namespace: str | None = None) -> Object: ...
    @overload
    async def get(
        self,
        kind: Kind,
        name: str,
        *,
        namespace: str | None = None,
        type: type[T],
    ) -> T: ...
    async def get(
        self,
        kind: Kind,
        name: str,
        *,
        namespace: str | None = None,
        type: Any = Object,  # noqa: A002 -- the overloads say which
    ) -> Any:
        """An object as it is now: a read that sees every write before it."""
        return decoded(await self.get_bytes(kind, name, namespace=namespace), type)

    async def get_bytes(
        self, kind: Kind, name: str, *, namespace: str | None = None, accept: str = ""
    ) -> bytes:
        """The same, not decoded."""
        path = kind.path(namespace=namespace, name=name)
        return await self._send("GET", path, kind, verb="get", headers=_accepting(accept))

    async def get_metadata(
        self, kind: Kind, name: str, as_: type[T], *, namespace: str | None = None
    ) -> T:
        """What an object is, without what it holds: much less to be sent and read."""
        answer = await self.get_bytes(kind, name, namespace=namespace, accept=METADATA_ONLY)
        return decoded(answer, as_)

    async def page(
        self,
        kind: Kind,
        selection: Selection = ALL,
        *,
        limit: int = PAGE,
        after: str = "",
        accept: str = "",
    ) -> Page:
        """One page of a list, consistent with the first one."""
        query = selection.query(limit=str(limit))
        if after:
            query["continue"] = after
        path = f"{kind.path(namespace=selection.namespace)}?{urlencode(query)}"
        body = await self._send("GET", path, kind, verb="list", headers=_accepting(accept))
        try:
            page = _pages.decode(body)
        except MISFITS as error:
            raise BrokenAnswerError(f"the list of {kind} cannot be read: {error}") from error
        if not page.kind.endswith("List") or not page.metadata.resource_version:
            # An answer without a list in it must not come to mean that nothing is there.
            raise BrokenAnswerError(f"the answer to a list of {kind} is no list")
        return page

    async def pages(
        self, kind: Kind, selection: Selection = ALL, *, limit: int = PAGE, accept: str = ""
    ) -> AsyncIterator[Page]:
        """Every page of a list; when the list expires on the way, all of it anew as a last page."""
        after = ""
        while True:
            try:
                page = await self.page(kind, selection, limit=limit, after=after, accept=accept)
            except GoneError:
                if not after:
                    raise
                page = await self.page(kind, selection, limit=0, accept=accept)
                yield msgspec.structs.replace(page, anew=True)
                return
            yield page
            after = page.metadata.continue_
            if not after:
                return

    async def list(self, kind: Kind, selection: Selection = ALL) -> list[Object]:
        """Every object of a selection, as they are now."""
        found: list[Object] = []
        async for page in self.pages(kind, selection):
            if page.anew:
                found.clear()
            found += [decoded(raw, Object) for raw in page.items or ()]
        return found

    async def count(self, kind: Kind, selection: Selection = ALL) -> int:
        """How many objects there are, without fetching them."""
        # What remains after a page is not counted by the API server where it has to select.
        limit = 0 if selection.labels or selection.fields else 1
        page = await self.page(kind, selection, limit=limit, accept=METADATA_ONLY_LIST)
        return len(page.items or ()) + max(page.metadata.remaining_item_count, 0)

    async def create(self, kind: Kind, object_: Mapping[str, Any], how: Write = PLAIN) -> Object:
        """Create an object that is not there yet, or post to a sub-resource of one that is."""
        metadata = object_.get("metadata", {})
        name = metadata["name"] if how.part else None
        path = _written_path(kind, name, how, metadata.get("namespace"))
        body = _encoder.encode(object_)
        return decoded(await self._write("POST", path, kind, body, verb="create"), Object)

    async def apply(self, kind: Kind, object_: Mapping[str, Any], how: Write = PLAIN) -> Object:
        """Server-side apply: make our fields so, and leave those of others alone."""
        metadata = object_["metadata"]
        body = _encoder.encode(object_)
        answer = await self.apply_bytes(
            kind, metadata["name"], body, how, namespace=metadata.get("namespace")
        )
        return decoded(answer, Object)

    async def apply_bytes(
        self,
        kind: Kind,
        name: str,
        body: bytes,
        how: Write = PLAIN,
        *,
        namespace: str | None = None,
    ) -> bytes:
        """Server-side apply of an object that is encoded already; the answer is not decoded."""
        path = _written_path(kind, name, _lenient(how), namespace)
        return await self._write("PATCH", path, kind, body, verb="apply")

    async def patch(
        self,
        kind: Kind,
        name: str,
        patch: Mapping[str, Any],
        how: Write = PLAIN,
        *,
        namespace: str | None = None,
    ) -> bytes:
        """A JSON merge patch; `metadata.uid` and `resourceVersion` in it are preconditions."""
        path = _written_path(kind, name, how, namespace)
        body = _encoder.encode(patch)
        return await self._write("PATCH", path, kind, body, verb="patch")

    async def json_patch(
        self,
        kind: Kind,
        name: str,
        operations: Sequence[Mapping[str, Any]],
        how: Write = PLAIN,
        *,
        namespace: str | None = None,
    ) -> Object:
        """A JSON patch (RFC 6902); to replace `metadata.resourceVersion` is a precondition."""
        path = _written_path(kind, name, how, namespace)
        answer = await self._send(
            "PATCH",
            path,
            kind,
            verb="patch",
            body=_encoder.encode(operations),
            headers=(("Content-Type", "application/json-patch+json"),),
        )
        return decoded(answer, Object)

    async def replace(self, kind: Kind, object_: Mapping[str, Any], how: Write = PLAIN) -> Object:
        """Replace an object whose resource version we know."""
        metadata = object_["metadata"]
        path = _written_path(kind, metadata["name"], how, metadata.get("namespace"))
        body = _encoder.encode(object_)
        return decoded(await self._write("PUT", path, kind, body, verb="update"), Object)

    async def delete(
        self,
        kind: Kind,
        name: str,
        exactly: Exactly,
        *,
        namespace: str | None = None,
        propagation: Propagation = "Background",
        dry_run: bool = False,
    ) -> bytes:
        """Delete one object; another one of the same name is a conflict.

        The answer is a Status when the object is gone, and the object while something holds it.
        """
        options: Object = {
            "kind": "DeleteOptions",
            "apiVersion": "v1",
            "preconditions": exactly.preconditions(),
            "propagationPolicy": propagation,
        }
        if dry_run:
            options["dryRun"] = ["All"]
        path = kind.path(namespace=namespace, name=name)
        return await self._write("DELETE", path, kind, _encoder.encode(options), verb="delete")

    async def read(self, path: str, type: type[T], *, accept: str = "") -> T:  # noqa: A002
        """What is at a path that is no object: versions, discovery, health."""
        request = Request(
            method="GET",
            path=path,
            headers=(*self._headers, *_accepting(accept)),
            verb="read",
            resource=path.split("/")[1].partition("?")[0],
        )
        return decoded(await self.transport.send(request), type)

    async def version(self) -> str:
        """The version of Kubernetes that the server says it is."""
        return (await self.read("/version", _Version)).git_version

    def watch_request(
        self, kind: Kind, selection: Selection, query: Mapping[str, str], *, accept: str = ""
    ) -> Request:
        """The request for a stream of events; `watch.py` sends it."""
        chosen = selection.query(watch="true", **query)
        return Request(
            method="GET",
            path=f"{kind.path(namespace=selection.namespace)}?{urlencode(chosen)}",
            headers=(*self._headers, *_accepting(accept)),
            verb="watch",
            resource=kind.resource,
        )

    async def _write(self, method: str, path: str, kind: Kind, body: bytes, *, verb: str) -> bytes:
        content = _CONTENT[verb]
        return await self._send(method, path, kind, verb=verb, body=body, headers=content)

    async def _send(
        self,
        method: str,
        path: str,
        kind: Kind,
        *,
        verb: str,
        body: bytes | None = None,
        headers: tuple[tuple[str, str], ...] = (),
    ) -> bytes:
        request = Request(
            method=method,
            path=path,
            body=body,
            headers=(*self._headers, *headers),
            verb=verb,
            resource=kind.resource,
        )
        return await self.transport.send(request)


_CONTENT = {
    "create": (("Content-Type", "application/json"),),
    "update": (("Content-Type", "application/json"),),
    "delete": (("Content-Type", "application/json"),),
    "patch": (("Content-Type", "application/merge-patch+json"),),
    # JSON is YAML: that is what the content type of server-side apply is called.
    "apply": (("Content-Type", "application/apply-patch+yaml"),),
}


def _accepting(accept: str) -> tuple[tuple[str, str], ...]:
    return (("Accept", accept),) if accept else ()


def _written_path(kind: Kind, name: str | None, how: Write, namespace: str | None) -> str:
    return f"{kind.path(namespace=namespace, name=name, part=how.part)}?{how.query()}"


def decoded(body: bytes | msgspec.Raw, type: type[T]) -> T:  # noqa: A002 -- msgspec's word for it
    """An answer as a value of ours."""
    try:
        return msgspec.json.decode(body, type=type)
    except MISFITS as error:
        raise BrokenAnswerError(f"an answer cannot be read: {error}") from error
