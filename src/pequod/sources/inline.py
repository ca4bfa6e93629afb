"""A module that is one text, written where it is used."""

from pathlib import Path

from pequod.base.threads import finished
from pequod.sources import keeping
from pequod.sources.artifact import Artifact
from pequod.sources.credentials import ANONYMOUS, Credentials
from pequod.sources.errors import BadReferenceError, TooLargeError
from pequod.sources.limits import MEBIBYTE
from pequod.sources.store import Store

FILE = "module.cue"
_REFERENCE = "inline module"
LARGEST = MEBIBYTE
"""More than this is no object of Kubernetes either."""


class InlineSource:
    """Texts, each the only file of its tree."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def resolve(
        self,
        ref: str,
        *,
        path: str = "",
        credentials: Credentials = ANONYMOUS,
        known: Artifact | None = None,
    ) -> Artifact:
        """Keep a text; there is neither a folder in it nor anybody to show credentials to."""
        del credentials
        content = ref.encode()
        if path not in {"", "."}:
            raise _bad("it has no folders", "leave the path out")
        if not ref.strip():
            raise _bad("it is empty", "write a module")
        if len(content) > min(LARGEST, self._store.limits.file_bytes):
            raise TooLargeError(
                _REFERENCE,
                step="inline",
                problem=f"it has {len(content)} bytes and {LARGEST} are allowed",
                next_step="put it into a repository or a registry",
            )

        async def fill(folder: Path) -> None:
            await finished((folder / FILE).write_bytes, content)

        step = "correct the text"
        digest = await keeping.kept(self._store, fill, reference=_REFERENCE, next_step=step)
        if known is not None and known.digest == digest:
            return known
        return await keeping.artifact(self._store, digest, digest, reference=_REFERENCE)


def _bad(problem: str, next_step: str) -> BadReferenceError:
    return BadReferenceError(_REFERENCE, step="inline", problem=problem, next_step=next_step)
