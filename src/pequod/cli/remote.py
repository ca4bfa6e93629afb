"""Modules that are elsewhere: fetched into the user's own cache, and pushed from it.

The user is on his own machine: his Docker login is used where no Secret is named, and registries
on the loopback are spoken to without TLS, as Docker does.
"""

import os
from contextlib import AsyncExitStack
from hashlib import sha256
from pathlib import Path

from pequod.cli import terminal
from pequod.cli.moduleplace import Place
from pequod.cli.workbench import store_folder
from pequod.dev.programs import find_evaluator
from pequod.evaluator.evaluator import Tree
from pequod.evaluator.pool import Pool
from pequod.evaluator.registry import BOUNDS, Registry
from pequod.kube.addresses import AddressRule
from pequod.sources.artifact import Artifact
from pequod.sources.credentials import ANONYMOUS, Credentials, read_secret
from pequod.sources.git.source import GitOptions, GitSource
from pequod.sources.oci.reference import parse
from pequod.sources.oci.source import OciOptions, OciSource
from pequod.sources.resolver import Reference, Resolver, Source
from pequod.sources.store import Store

_RULE = AddressRule(allow_local=True)
_LOOPBACK = ("localhost", "127.0.0.1", "[::1]")


async def fetch(stack: AsyncExitStack, place: Place, credentials: Credentials) -> Artifact:
    """The tree of a module that is in git or in a registry."""
    store = await _store(stack)
    if place.kind == "git":
        reference = Reference(type="git", ref=place.ref)
        source: Source = await _git(stack, store)
    else:
        reference = Reference(type="oci", ref=place.ref)
        source = await _oci(stack, store, place.ref)
        credentials = credentials if credentials != ANONYMOUS else _docker_login()
    resolver = Resolver(store, {reference.type: source}, records=store_folder() / "references")
    return await resolver.resolve(reference, credentials)


async def push_module(
    stack: AsyncExitStack, folder: Path, reference: str, credentials: Credentials
) -> str:
    """Store a module in a registry; yields the reference that will always mean it."""
    source = await _oci(stack, await _store(stack), reference)
    credentials = credentials if credentials != ANONYMOUS else _docker_login()
    digest = await source.push(folder, reference, credentials=credentials)
    return f"oci://{parse(reference).at(digest)}"


async def fetch_imports(
    stack: AsyncExitStack, tree: Tree, registry: str, credentials: Credentials
) -> Path:
    """Fetch the CUE modules that a module imports; yields the folder that they are in."""
    source = await _oci(stack, await _store(stack), f"{registry.partition('/')[0]}/imports")
    credentials = credentials if credentials != ANONYMOUS else _docker_login()
    # What one registry calls a module is not what another calls so.
    whose = sha256(f"{registry} {credentials.fingerprint}".encode()).hexdigest()
    folder = store_folder() / "imports" / whose
    folder.mkdir(parents=True, exist_ok=True)
    await source.modules(tree, registry, into=folder, credentials=credentials)
    return folder


async def _store(stack: AsyncExitStack) -> Store:
    store = Store(store_folder())
    await store.open()
    stack.callback(store.close)
    return store


async def _git(stack: AsyncExitStack, store: Store) -> GitSource:
    source = GitSource(store, store_folder() / "git", GitOptions(rule=_RULE))
    await source.open()
    stack.callback(source.close)
    return source


async def _oci(stack: AsyncExitStack, store: Store, reference: str) -> OciSource:
    with terminal.build_progress() as report:
        program = await find_evaluator(report)
    pool = Pool((str(program), "--network"), size=1, bounds=BOUNDS)
    stack.push_async_callback(pool.close)
    host = parse(reference).host
    plain = frozenset({host}) if host.rpartition(":")[0] in _LOOPBACK else frozenset[str]()
    return OciSource(store, Registry(pool), OciOptions(rule=_RULE, plain_http=plain))


def _docker_login() -> Credentials:
    """What `docker login` has written; programs that keep secrets elsewhere are not asked."""
    folder = Path(os.environ.get("DOCKER_CONFIG") or Path.home() / ".docker")
    try:
        content = (folder / "config.json").read_bytes()
    except OSError:
        return ANONYMOUS
    return read_secret({".dockerconfigjson": content}, name=str(folder / "config.json"))
