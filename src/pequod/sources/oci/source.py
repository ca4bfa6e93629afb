"""References to OCI artifacts become trees in the store, and folders become artifacts."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Literal

from pequod.base.flights import Flights
from pequod.base.logs import one_line
from pequod.base.threads import finished
from pequod.evaluator.errors import EvaluationError
from pequod.evaluator.evaluator import Tree
from pequod.evaluator.registry import Layer, Registry, RegistryAccess, Upload
from pequod.kube.addresses import AddressRule
from pequod.sources.archive import extract
from pequod.sources.artifact import Artifact
from pequod.sources.credentials import ANONYMOUS, Credentials
from pequod.sources.errors import BadReferenceError, DeniedError, MissingError
from pequod.sources.keeping import artifact, kept, unusable
from pequod.sources.networks import refused_networks
from pequod.sources.oci import layers
from pequod.sources.oci.failures import judge
from pequod.sources.oci.reference import OciReference, host_of, parse
from pequod.sources.packing import MODULE_FILE, pack, pack_module
from pequod.sources.store import Store
from pequod.sources.tree import TreeError
from pequod.sources.unpacking import name_problem

_SHOWN = ("source", "revision", "created", "version")
_ANNOTATION = "org.opencontainers.image."
_LONGEST = 256
_NEXT_STEP = "push another artifact"


@dataclass(frozen=True, slots=True, kw_only=True)
class OciOptions:
    """What an operator decides about registries."""

    rule: AddressRule = field(default_factory=AddressRule)
    """Which addresses may be connected to."""
    plain_http: frozenset[str] = frozenset()
    """Hosts that are spoken to without TLS, as in development; no credentials are sent there.

    One without a port is meant whatever its port is."""


@dataclass(frozen=True, slots=True)
class _Content:
    digest: str
    metadata: Mapping[str, str]


class OciSource:
    """Artifacts of other people's registries."""

    def __init__(self, store: Store, registry: Registry, options: OciOptions | None = None) -> None:
        self._store = store
        self._registry = registry
        self._options = options or OciOptions()
        self._refused = refused_networks(self._options.rule)
        self._flights: Flights[_Content] = Flights()

    async def resolve(
        self,
        ref: str | OciReference,
        *,
        path: str = "",
        credentials: Credentials = ANONYMOUS,
        known: Artifact | None = None,
    ) -> Artifact:
        """The tree of a reference; `known` if it still is that, and then nothing is pulled."""
        wanted = parse(ref) if isinstance(ref, str) else ref
        path = _folder(wanted, path)
        access = self._access(str(wanted), (wanted.host,), credentials, wanted.repository)
        digest = wanted.digest or await self._digest_of(wanted, access)
        revision = f"{wanted.tag}@{digest}" if wanted.tag else digest
        if known is not None and _same(known, digest, path):
            place = await self._store.find(known.digest)
            if place is not None:
                same = known.revision == revision and known.tree == place
                return known if same else replace(known, revision=revision, tree=place)
        key = (wanted.at(digest), path, credentials.fingerprint)
        content = await self._flights.share(
            key, partial(self._content, wanted, digest, path=path, access=access)
        )
        made = await artifact(self._store, content.digest, revision, reference=str(wanted))
        return replace(made, metadata={**content.metadata, **_moved(known, wanted, digest)})

    async def push(
        self,
        folder: Path,
        reference: str | OciReference,
        *,
        credentials: Credentials = ANONYMOUS,
        kind: Literal["cue", "tar"] | None = None,
        annotations: Mapping[str, str] | None = None,
    ) -> str:
        """Store a folder under a tag, as a CUE module if it is one; yields the digest."""
        wanted = parse(reference) if isinstance(reference, str) else reference
        if wanted.digest:
            raise _bad(str(wanted), "a digest cannot be chosen", "write a tag only")
        access = self._access(str(wanted), (wanted.host,), credentials, wanted.repository)
        cue = (folder / MODULE_FILE).is_file() if kind is None else kind == "cue"
        async with self._store.scratch() as scratch:
            archive = scratch / "archive"
            try:
                await finished(pack_module if cue else pack, folder, archive)
                # What is pushed is what everybody will be able to pull.
                await finished(self._try_out, archive, scratch / "tree")
            except TreeError as error:
                raise unusable(
                    error, reference=str(wanted), next_step="change the folder"
                ) from error
            upload = replace(_upload(folder, archive, cue=cue), annotations=annotations or {})
            try:
                return await self._registry.push(f"{wanted.location}:{wanted.tag}", upload, access)
            except EvaluationError as error:
                raise judge(error, reference=str(wanted), step="push", access=access) from error

    async def modules(
        self, tree: Tree, registry: str, *, into: Path, credentials: Credentials = ANONYMOUS
    ) -> list[str]:
        """Fetch the CUE modules that a tree imports, for evaluating it offline; yields their names.

        The registry is a host, or a list as in CUE_REGISTRY (`example.com=host/path,host`).
        """
        hosts = tuple(_host_of_place(registry, one) for one in registry.split(","))
        access = self._access(registry, tuple(one for one in hosts if one), credentials)
        try:
            return await self._registry.modules(
                tree, registry, access, into=into, largest=self._store.limits.transfer_bytes
            )
        except EvaluationError as error:
            raise judge(error, reference=registry, step="modules", access=access) from error

    def _access(
        self,
        reference: str,
        hosts: tuple[str, ...],
        credentials: Credentials,
        repository: str = "",
    ) -> RegistryAccess:
        found = {host: credentials.for_host(host, repository) for host in hosts}
        logins = {host: login for host, login in found.items() if login is not None}
        plain = {host for host in hosts if self._is_plain(host)}
        if plain and len(plain) != len(set(hosts)):
            raise _bad(reference, "some of its registries have TLS and some have not", "use one")
        if plain and logins:
            raise DeniedError(
                reference,
                step="credentials",
                problem="credentials are not sent without TLS",
                next_step="use a registry with TLS, or no Secret",
            )
        return RegistryAccess(
            plain_http=bool(plain),
            authority=credentials.authority,
            logins=logins,
            refused=self._refused,
        )

    def _is_plain(self, host: str) -> bool:
        """Whether a registry has no TLS: by its address, or whatever its port is."""
        return bool({host, host.rpartition(":")[0]} & self._options.plain_http)

    async def _digest_of(self, wanted: OciReference, access: RegistryAccess) -> str:
        try:
            found = await self._registry.resolve(f"{wanted.location}:{wanted.tag}", access)
        except EvaluationError as error:
            raise judge(error, reference=str(wanted), step="resolve", access=access) from error
        return found.digest

    async def _content(
        self, wanted: OciReference, digest: str, *, path: str, access: RegistryAccess
    ) -> _Content:
        annotations: dict[str, str] = {}

        async def fill(folder: Path) -> None:
            async with self._store.scratch() as scratch:
                pulled = await self._registry.pull(
                    wanted.at(digest),
                    access,
                    into=scratch,
                    largest=self._store.limits.transfer_bytes,
                )
                annotations.update(pulled.annotations)
                whole = folder if not path else scratch / "tree"
                whole.mkdir(exist_ok=True)
                await finished(layers.assemble, pulled, whole, self._store.limits)
                if path:
                    await finished(_take, whole, path, folder, str(wanted))

        try:
            added = await kept(self._store, fill, reference=str(wanted), next_step=_NEXT_STEP)
        except EvaluationError as error:
            raise judge(error, reference=str(wanted), step="pull", access=access) from error
        shown = {name: annotations.get(_ANNOTATION + name, "") for name in _SHOWN}
        said = {"manifest": digest, "path": path, **shown}
        return _Content(
            added, {key: one_line(value, _LONGEST) for key, value in said.items() if value}
        )

    def _try_out(self, archive: Path, folder: Path) -> None:
        folder.mkdir()
        extract(archive, folder, self._store.limits)


def _same(known: Artifact, digest: str, path: str) -> bool:
    return (known.metadata.get("manifest"), known.metadata.get("path", "")) == (digest, path)


def _moved(known: Artifact | None, wanted: OciReference, digest: str) -> dict[str, str]:
    """Where a tag was before: most are meant to stay, so people are told."""
    if known is None or not wanted.tag or known.revision.partition("@")[0] != wanted.tag:
        return {}
    before = known.metadata.get("manifest", "")
    return {"moved-from": before} if before and before != digest else {}


def _folder(wanted: OciReference, path: str) -> str:
    path = path.removeprefix("./").strip("/") if not path.startswith("/") else path
    problem = name_problem(path) if path not in {"", "."} else None
    if problem is not None:
        raise _bad(str(wanted), f"the path {one_line(path, 100)!r} {problem}", "write deploy/base")
    return "" if path == "." else path


def _take(whole: Path, path: str, folder: Path, reference: str) -> None:
    """Move what is in a folder of the artifact to where the tree is made."""
    place = whole / path
    if not place.is_dir():
        raise MissingError(
            reference,
            step="path",
            problem=f"there is no folder {path} in it",
            next_step="write a folder that is there, or none",
        )
    for one in place.iterdir():
        one.rename(folder / one.name)


def _upload(folder: Path, archive: Path, *, cue: bool) -> Upload:
    if not cue:
        content = Layer(media_type=layers.PEQUOD_CONTENT, file=str(archive))
        return Upload(config_type=layers.PEQUOD_CONFIG, layers=(content,))
    content = Layer(media_type=layers.CUE_CONTENT, file=str(archive))
    module_file = Layer(media_type=layers.CUE_MODULE_FILE, file=str(folder / MODULE_FILE))
    return Upload(config_type=layers.CUE_CONFIG, layers=(content, module_file))


def _host_of_place(registry: str, place: str) -> str:
    """The host of one place in a list of registries; empty when modules shall not be fetched."""
    where = place.rpartition("=")[2]
    return "" if where == "none" else host_of(registry, where.partition("/")[0])


def _bad(reference: str, problem: str, next_step: str) -> BadReferenceError:
    return BadReferenceError(
        one_line(reference, 200), step="reference", problem=problem, next_step=next_step
    )
