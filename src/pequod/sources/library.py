"""Every kind of source behind one resolver, and the folder that their trees are kept in."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from pequod.evaluator.pool import Pool
from pequod.evaluator.registry import BOUNDS, Registry
from pequod.kube.addresses import AddressRule
from pequod.sources.embedded import EmbeddedSource
from pequod.sources.git.source import GitOptions, GitSource
from pequod.sources.inline import InlineSource
from pequod.sources.oci.source import OciOptions, OciSource
from pequod.sources.resolver import Resolver
from pequod.sources.store import Store

_AT_ONCE = 2
"""Workers that speak to registries."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LibraryOptions:
    """What those who run the platform decide about sources."""

    root: Path
    """Where trees, mirrors and what is known of references are kept."""
    modules: Path
    """The modules that are shipped with the product."""
    version: str
    """Of the product."""
    rule: AddressRule = field(default_factory=AddressRule)
    """Which addresses tenants may have connected to."""
    plain_http: frozenset[str] = frozenset()
    """Registries that are spoken to without TLS."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Library:
    """Where trees come from, and where they are kept."""

    store: Store
    resolver: Resolver
    inline: InlineSource


@asynccontextmanager
async def opened(options: LibraryOptions, evaluator: Path) -> AsyncIterator[Library]:
    """A library, for as long as the block lasts."""
    async with AsyncExitStack() as stack:
        store = Store(options.root)
        await store.open()
        stack.callback(store.close)
        git = GitSource(store, options.root / "git", GitOptions(rule=options.rule))
        await git.open()
        stack.callback(git.close)
        pool = Pool((str(evaluator), "--network"), size=_AT_ONCE, bounds=BOUNDS)
        stack.push_async_callback(pool.close)
        oci = OciOptions(rule=options.rule, plain_http=options.plain_http)
        resolver = Resolver(
            store,
            {
                "git": git,
                "oci": OciSource(store, Registry(pool), oci),
                "embedded": EmbeddedSource(store, options.modules, version=options.version),
            },
            records=options.root / "references",
        )
        yield Library(store=store, resolver=resolver, inline=InlineSource(store))
