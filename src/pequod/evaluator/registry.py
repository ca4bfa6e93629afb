"""The verbs of the OCI worker, typed: registries of modules, charts and other artifacts.

Secrets go over the pipe to the worker and nowhere else. What is pulled becomes files of a folder
that the caller owns; every byte of it has the digest that was asked for.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, TypeVar

import msgspec

from pequod.evaluator.errors import BrokenError
from pequod.evaluator.evaluator import Tree
from pequod.evaluator.pool import Pool
from pequod.evaluator.worker import Bounds

T = TypeVar("T")
BOUNDS = Bounds(seconds=130.0, cpu_seconds=60, requests=200)
"""For the pool of a registry: networks are slower than evaluations."""
_MARGIN = 5.0
"""The worker gives up so much earlier than it would be killed, and says why."""


class Login(Protocol):
    """Who we are to a registry: a name and a password, or a token."""

    @property
    def username(self) -> str:
        """The name."""
        ...

    @property
    def password(self) -> str:
        """Its password."""
        ...

    @property
    def token(self) -> str:
        """What is sent instead of both."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistryAccess:
    """How registries may be reached."""

    plain_http: bool = False
    authority: str | None = None
    """Certificates, in PEM, that are believed instead of the system's."""
    logins: Mapping[str, Login] = field(default_factory=dict, repr=False)
    """By host and port; sent to nobody else."""
    refused: tuple[str, ...] = ()
    """Networks that are never connected to, as `10.0.0.0/8`."""


class Resolved(msgspec.Struct, frozen=True, rename="camel"):
    """What a tag means now."""

    digest: str
    media_type: str
    size: int


class Layer(msgspec.Struct, frozen=True, rename="camel"):
    """A part of an artifact, as a file."""

    media_type: str
    file: str
    digest: str = ""
    size: int = 0
    annotations: dict[str, str] = {}


class Pulled(msgspec.Struct, frozen=True, rename="camel"):
    """An artifact whose layers are files now."""

    digest: str
    config_type: str
    layers: tuple[Layer, ...]
    artifact_type: str = ""
    annotations: dict[str, str] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Upload:
    """An artifact that is to be pushed."""

    config_type: str
    layers: Sequence[Layer]
    config: str = "{}"
    artifact_type: str = ""
    annotations: Mapping[str, str] = field(default_factory=dict)


class _Pushed(msgspec.Struct, frozen=True):
    digest: str


class _Modules(msgspec.Struct, frozen=True):
    modules: list[str]


class Registry:
    """Asks workers that were started with `--network`."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def resolve(self, reference: str, access: RegistryAccess, *, owner: str = "") -> Resolved:
        """What `host/repository:tag` means now."""
        return await self._ask(
            "oci.resolve", {"reference": reference}, access, answer=Resolved, owner=owner
        )

    async def pull(
        self,
        reference: str,
        access: RegistryAccess,
        *,
        into: Path,
        largest: int,
        owner: str = "",
    ) -> Pulled:
        """Fetch the layers of `host/repository@digest` into a folder, together not too large."""
        params = {"reference": reference, "into": str(into), "largest": largest}
        return await self._ask("oci.pull", params, access, answer=Pulled, owner=owner)

    async def push(
        self, reference: str, upload: Upload, access: RegistryAccess, *, owner: str = ""
    ) -> str:
        """Store an artifact under `host/repository:tag`; yields its digest."""
        params = {
            "reference": reference,
            "artifactType": upload.artifact_type,
            "configType": upload.config_type,
            "config": upload.config,
            "layers": upload.layers,
            "annotations": upload.annotations,
        }
        pushed = await self._ask("oci.push", params, access, answer=_Pushed, owner=owner)
        return pushed.digest

    async def modules(
        self,
        tree: Tree,
        registry: str,
        access: RegistryAccess,
        *,
        into: Path,
        largest: int,
        owner: str = "",
    ) -> list[str]:
        """Fetch every CUE module that a tree imports into a cache; yields their names.

        The cache is for whoever may use this registry: it is named by modules, not by content.
        """
        params = {**tree.params(), "registry": registry, "into": str(into), "largest": largest}
        found = await self._ask("oci.modules", params, access, answer=_Modules, owner=owner)
        return found.modules

    async def _ask(
        self,
        verb: str,
        params: Mapping[str, object],
        access: RegistryAccess,
        *,
        answer: type[T],
        owner: str,
    ) -> T:
        whole = {**params, **_connection(access), "seconds": self._patience()}
        raw = await self._pool.ask(verb, whole, owner=owner)
        try:
            return msgspec.json.decode(raw, type=answer)
        except msgspec.ValidationError as error:
            raise BrokenError(f"the evaluator's answer has another shape: {error}") from error

    def _patience(self) -> float:
        seconds = self._pool.bounds.seconds
        return max(seconds - _MARGIN, seconds / 2)


def _connection(access: RegistryAccess) -> dict[str, object]:
    return {
        "plainHttp": access.plain_http,
        "authority": access.authority or "",
        "logins": {
            host: {"username": one.username, "password": one.password, "token": one.token}
            for host, one in access.logins.items()
        },
        "refused": access.refused,
    }
