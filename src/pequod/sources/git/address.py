"""What a person writes to name a repository, a revision and a folder; no process ever sees more.

    https://host/team/repository.git?ref=main&path=deploy
    ssh://git@host/team/repository.git?ref=v1.2
    git@host:team/repository.git

Everything that git would take for an option, a helper or another transport is refused here.
"""

import re
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import unquote

from pequod.base.logs import one_line
from pequod.sources.errors import BadReferenceError
from pequod.sources.git.names import ref_problem, tree_path_problem
from pequod.sources.git.remote import Remote, remote_of

_LONGEST = {"url": 2048, "ref": 255}
_LONGEST_PATH = 1024
_SECRETS = re.compile(r"//[^/]*@")
_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")


class Wanted(Protocol):
    """A revision of some repository, and a folder in that; as a text, it is for people."""

    @property
    def ref(self) -> str:
        """What the revision was called."""

    @property
    def path(self) -> str:
        """The folder, relative to the root of the repository; empty for all of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GitReference:
    """A repository, a revision of it, and a folder in that; always a valid one."""

    url: str
    """Without query and credentials: `https://…`, `ssh://…` or `user@host:path`."""
    ref: str = ""
    """A branch, tag, full ref name or commit; the repository's own choice when empty."""
    path: str = ""
    """The folder that is wanted, relative to the root of the repository; empty for all of it."""
    allow_http: bool = False
    """Whether the connection may be open to everybody, as in development."""

    def __post_init__(self) -> None:
        """Refuse what may not be named; so no other code has to ask."""
        for field, longest in _LONGEST.items():
            _check_text(field, getattr(self, field), longest)
        remote = remote_of(self.url, allow_http=self.allow_http)
        if isinstance(remote, str):
            raise _bad("url", self.url, remote)
        object.__setattr__(self, "url", remote.url)
        problem = ref_problem(self.ref) if self.ref else None
        if problem is not None:
            raise _bad("ref", self.ref, problem, "write a branch, a tag or a full commit id")
        object.__setattr__(self, "path", folder_of(self.path))

    @property
    def remote(self) -> Remote:
        """The parts of the address."""
        remote = remote_of(self.url, allow_http=self.allow_http)
        assert isinstance(remote, Remote), remote
        return remote

    def __str__(self) -> str:
        wanted = {"ref": self.ref, "path": self.path}
        query = "&".join(f"{name}={value}" for name, value in wanted.items() if value)
        return f"{self.url}?{query}" if query else self.url


def parse(text: str, *, allow_http: bool = False) -> GitReference:
    """Read a reference that is one text, with `ref` and `path` as its query."""
    if "#" in text:
        raise _bad("reference", text, "a fragment (#) means nothing here", "write ?ref= instead")
    url, _, query = text.removeprefix("git+").partition("?")
    fields = _query(text, query) if query else {}
    return GitReference(url=url, **fields, allow_http=allow_http)


def folder_of(path: str) -> str:
    """The folder that a person wrote, in its only spelling; raises when it may not be named."""
    _check_text("path", path, _LONGEST_PATH)
    folder = _relative(path)
    problem = tree_path_problem(folder) if folder else None
    if problem is not None:
        raise _bad("path", folder, problem, "write a folder like deploy/base")
    return folder


def _query(text: str, query: str) -> dict[str, str]:
    fields: dict[str, str] = {}
    for part in query.split("&"):
        name, _, value = part.partition("=")
        if name not in {"ref", "path"}:
            raise _bad("query", text, f"{_shown(name)} is not a field", "use only ref and path")
        if name in fields:
            raise _bad("query", text, f"{name} is there twice", f"give {name} once")
        fields[name] = _decoded(name, value)
    return fields


def _decoded(field: str, value: str) -> str:
    if _ESCAPE.search(value):
        raise _bad(field, value, "a % is not followed by two digits", "write %25 for a percent")
    try:
        return unquote(value, errors="strict")
    except UnicodeDecodeError:
        raise _bad(field, value, "it is not UTF-8 when decoded", "encode it as UTF-8") from None


def _check_text(field: str, value: str, longest: int) -> None:
    if len(value.encode(errors="surrogatepass")) > longest:
        raise _bad(field, value, f"it is longer than {longest} bytes", "shorten it")
    if not value.isprintable():
        raise _bad(field, value, "it has control characters", "write it without them")


def _relative(path: str) -> str:
    """The same folder without what people add: `./deploy/` is `deploy`, `.` is everything."""
    path = path.removeprefix("./")
    path = path.removesuffix("/") if len(path) > 1 else path
    return "" if path == "." else path


def _bad(
    field: str,
    value: str,
    problem: str,
    next_step: str = "write https://host/repository.git or ssh://git@host/repository.git",
) -> BadReferenceError:
    return BadReferenceError(
        f"{field} {_shown(value)!r}", step="reference", problem=problem, next_step=next_step
    )


def _shown(value: str) -> str:
    """A value as it may be repeated: without what may be a password."""
    return one_line(_SECRETS.sub("//***@", value), 120)
