"""Which kinds an API server serves: kind <-> resource <-> scope.

What was found is remembered until it is old, or until somebody asks for a kind that is not in it.
A group whose own server is away is unknown, never absent.
"""

import asyncio
from collections.abc import Iterable

import msgspec

from pequod.kube.client import Client
from pequod.kube.errors import KubeError, NotFoundError, ServerError, Status, UnknownKindError
from pequod.kube.kinds import Kind

LIFETIME = 600.0
"""Seconds for which what was found is believed."""
NEGATIVE_LIFETIME = 5.0
"""Seconds for which a kind that was not found is believed to be missing."""

_AGGREGATED = (
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,"
    "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json"
)


class _ResponseKind(msgspec.Struct, frozen=True):
    group: str = ""
    version: str = ""
    kind: str = ""


class _Resource(msgspec.Struct, frozen=True, rename="camel"):
    resource: str
    scope: str = "Namespaced"
    response_kind: _ResponseKind | None = None


class _Version(msgspec.Struct, frozen=True):
    version: str
    resources: tuple[_Resource, ...] = ()
    freshness: str = "Current"


class _GroupMeta(msgspec.Struct, frozen=True):
    name: str = ""


class _Group(msgspec.Struct, frozen=True):
    metadata: _GroupMeta = _GroupMeta()
    versions: tuple[_Version, ...] = ()


class _GroupList(msgspec.Struct, frozen=True):
    kind: str = ""
    items: tuple[_Group, ...] = ()


class _PlainVersion(msgspec.Struct, frozen=True, rename="camel"):
    group_version: str


class _PlainGroup(msgspec.Struct, frozen=True):
    versions: tuple[_PlainVersion, ...] = ()


class _PlainGroups(msgspec.Struct, frozen=True):
    groups: tuple[_PlainGroup, ...] = ()


class _PlainResource(msgspec.Struct, frozen=True):
    name: str
    kind: str
    namespaced: bool = True


class _PlainResources(msgspec.Struct, frozen=True):
    resources: tuple[_PlainResource, ...] = ()


class Discovery:
    """What one API server serves."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._kinds: dict[tuple[str, str], Kind] = {}
        self._unknown: set[str] = set()
        self._asked = float("-inf")
        self._stale = True
        self._lock = asyncio.Lock()

    async def find(self, api_version: str, kind: str) -> Kind:
        """The kind of that name; UnknownKindError only when the API server itself says so."""
        await self._ask_unless(younger_than=LIFETIME)
        if (api_version, kind) not in self._kinds:
            await self._ask_unless(younger_than=NEGATIVE_LIFETIME)
        found = self._kinds.get((api_version, kind))
        if found is not None:
            return found
        if api_version in self._unknown:
            status = Status(
                message=f"whether {kind}.{api_version} exists is unknown: its own "
                "API server is away",
                code=503,
            )
            raise ServerError(503, status)
        raise UnknownKindError(
            f"the API server does not serve {kind} in {api_version}; install its CRD, or check "
            "apiVersion and kind"
        )

    async def find_any(self, group: str, version: str, kind: str) -> Kind:
        """A kind in that version, or in any other: what was stored in one is served by all.

        UnknownKindError only when the API server serves none, and no part of the group is away.
        """
        try:
            return await self.find(f"{group}/{version}" if group else version, kind)
        except UnknownKindError:
            served = [one for one in self._kinds.values() if (one.group, one.kind) == (group, kind)]
            if served:
                return served[0]
            if any(name.rpartition("/")[0] == group for name in self._unknown):
                text = f"whether {kind}.{group} exists is unknown: its own API server is away"
                raise ServerError(503, Status(message=text, code=503)) from None
            raise

    def invalidate(self) -> None:
        """Something was installed or removed: ask again before the next answer."""
        self._stale = True

    async def _ask_unless(self, *, younger_than: float) -> None:
        clock = asyncio.get_running_loop().time
        async with self._lock:
            if not self._stale and clock() - self._asked < younger_than:
                return
            core = await self._group_list("/api")
            groups = await self._group_list("/apis")
            if core is None or groups is None:
                kinds, unknown = await self._plain()
            else:
                kinds, unknown = _read((*core.items, *groups.items))
            self._kinds, self._unknown = kinds, unknown
            self._stale, self._asked = False, clock()

    async def _group_list(self, path: str) -> _GroupList | None:
        """Everything in one answer; None from a server that is too old for it."""
        found = await self._client.read(path, _GroupList, accept=_AGGREGATED)
        return found if found.kind == "APIGroupDiscoveryList" else None

    async def _plain(self) -> tuple[dict[tuple[str, str], Kind], set[str]]:
        """The same by one request for each version."""
        groups = await self._client.read("/apis", _PlainGroups)
        names = [version.group_version for group in groups.groups for version in group.versions]
        kinds: dict[tuple[str, str], Kind] = {}
        unknown: set[str] = set()
        for name in ("v1", *names):
            path = f"/apis/{name}" if "/" in name else f"/api/{name}"
            try:
                listed = await self._client.read(path, _PlainResources)
            except NotFoundError:
                continue
            except KubeError:
                unknown.add(name)
                continue
            group, _, version = name.rpartition("/")
            for item in listed.resources:
                if "/" not in item.name:
                    kind = Kind(group, version, item.kind, item.name, item.namespaced)
                    kinds[name, item.kind] = kind
        return kinds, unknown


def _read(groups: Iterable[_Group]) -> tuple[dict[tuple[str, str], Kind], set[str]]:
    kinds: dict[tuple[str, str], Kind] = {}
    unknown: set[str] = set()
    for group in groups:
        for version in group.versions:
            name = group.metadata.name
            api_version = f"{name}/{version.version}" if name else version.version
            if version.freshness != "Current":
                unknown.add(api_version)
            for item in version.resources:
                if item.response_kind is None:
                    continue
                kind = item.response_kind.kind
                namespaced = item.scope == "Namespaced"
                kinds[api_version, kind] = Kind(
                    name, version.version, kind, item.resource, namespaced
                )
    return kinds, unknown
