"""The modules that are shipped with the product."""

import asyncio
import re
from pathlib import Path

from pequod.base.logs import one_line
from pequod.base.threads import finished
from pequod.sources import keeping, tree
from pequod.sources.artifact import Artifact
from pequod.sources.credentials import ANONYMOUS, Credentials
from pequod.sources.errors import BadReferenceError, MissingError
from pequod.sources.store import Store
from pequod.sources.unpacking import Unpacking

_NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")


class EmbeddedSource:
    """A folder with one folder for each module, and the version of the product."""

    def __init__(self, store: Store, folder: Path, *, version: str) -> None:
        self._store = store
        self._folder = folder
        self._version = version
        self._digests: dict[str, str] = {}

    def names(self) -> list[str]:
        """The modules that there are."""
        if not self._folder.is_dir():
            return []
        return sorted(
            one.name for one in self._folder.iterdir() if one.is_dir() and _NAME.fullmatch(one.name)
        )

    async def resolve(
        self,
        ref: str,
        *,
        path: str = "",
        credentials: Credentials = ANONYMOUS,
        known: Artifact | None = None,
    ) -> Artifact:
        """The tree of a module, by its name; nobody needs credentials for it."""
        del credentials
        await asyncio.to_thread(self._check, ref, path)
        digest = self._digests.get(ref)
        if digest is None or await self._store.find(digest) is None:
            digest = await self._add(ref)
        self._digests[ref] = digest
        revision = f"{self._version}@{digest}"
        if known is not None and (known.digest, known.revision) == (digest, revision):
            return known
        return await keeping.artifact(self._store, digest, revision, reference=ref)

    def _check(self, name: str, path: str) -> None:
        if path not in {"", "."}:
            raise BadReferenceError(
                one_line(name, 100),
                step="embedded",
                problem="a folder of a shipped module cannot be used alone",
                next_step="leave the path out",
            )
        if not _NAME.fullmatch(name):
            raise BadReferenceError(
                one_line(name, 100),
                step="embedded",
                problem="it is not the name of a module",
                next_step="write small letters, digits and dashes",
            )
        if name not in self.names():
            raise MissingError(
                name,
                step="embedded",
                problem="there is no such module in this product",
                next_step=f"write one of: {', '.join(self.names()) or 'none is shipped'}",
            )

    async def _add(self, name: str) -> str:
        async def fill(folder: Path) -> None:
            await finished(self._copy, self._folder / name, folder)

        return await keeping.kept(
            self._store, fill, reference=name, next_step="install the product again"
        )

    def _copy(self, module: Path, folder: Path) -> None:
        unpacking = Unpacking(folder, self._store.limits)
        for entry in tree.entries(module):
            if entry.kind == "file":
                unpacking.add_file(entry.path, ((module / entry.path).read_bytes(),))
            elif entry.kind == "link":
                raise tree.TreeError(f"{entry.path} is a link")
