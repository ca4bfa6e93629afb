"""What a person writes to name an artifact: `oci://host[:port]/repository[:tag][@sha256:…]`.

No registry is guessed: the host needs a dot or a port, or is localhost.
"""

import re
from dataclasses import dataclass

from pequod.base.logs import one_line
from pequod.sources.errors import BadReferenceError

SCHEME = "oci://"
_LABEL = r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?"
_HOST = re.compile(
    rf"(?P<name>{_LABEL}(?:\.{_LABEL})*|\[[0-9a-f:.]+\])(?::(?P<port>[0-9]{{1,5}}))?"
)
_PART = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_REPOSITORY = re.compile(rf"{_PART}(?:/{_PART})*")
_TAG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,127}")
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_DOCKER_HUB = "registry-1.docker.io"
_ALIASES = frozenset({"docker.io", "index.docker.io", _DOCKER_HUB})
_LONGEST = 1024
_LONGEST_REPOSITORY = 255


@dataclass(frozen=True, slots=True, kw_only=True)
class OciReference:
    """A repository of a registry, and a tag or a digest in it; made by `parse`."""

    host: str
    """With the port, if it is not the usual one."""
    repository: str
    tag: str = ""
    """`latest` when neither a tag nor a digest was given."""
    digest: str = ""
    """What is meant for good; the tag is only its name then."""

    @property
    def location(self) -> str:
        """Where the repository is, for a client."""
        return f"{self.host}/{self.repository}"

    def at(self, digest: str) -> str:
        """What has this digest, for a client."""
        return f"{self.location}@{digest}"

    def __str__(self) -> str:
        tag = f":{self.tag}" if self.tag else ""
        return f"{SCHEME}{self.location}{tag}" + (f"@{self.digest}" if self.digest else "")


def parse(text: str) -> OciReference:
    """Read a reference; raises BadReferenceError."""
    if len(text) > _LONGEST:
        raise _bad(text, f"it is longer than {_LONGEST} characters")
    rest = text.removeprefix(SCHEME)
    if "://" in rest:
        raise _bad(text, f"only {SCHEME} is a registry's scheme")
    host, slash, path = rest.partition("/")
    if "@" in host:
        raise _bad("oci://…", "it has a user or a password", "put them into a Secret")
    if not slash:
        raise _bad(text, "there is no repository after the host")
    host = host_of(text, host)
    path, at, digest = path.partition("@")
    repository, colon, tag = path.partition(":")
    if host == _DOCKER_HUB and "/" not in repository:
        repository = f"library/{repository}"
    _check(text, repository, tag if colon else None, digest if at else None)
    return OciReference(
        host=host,
        repository=repository,
        tag=tag if colon or at else "latest",
        digest=digest,
    )


def host_of(text: str, written: str) -> str:
    """The host of a registry, as it is spoken to; `text` is the whole, for messages."""
    written = written.lower()
    found = _HOST.fullmatch(written)
    if found is None:
        raise _bad(text, f"{one_line(written, 100)!r} is not a host")
    name, port = found["name"], found["port"]
    if port is not None and not 0 < int(port) < 2**16:
        raise _bad(text, f"{port} is not a port")
    if "." not in name and name != "localhost" and port is None and not name.startswith("["):
        raise _bad(
            text,
            f"{name} is not the full name of a registry, and none is guessed",
            f"write docker.io/{name}/… or whichever registry is meant",
        )
    return _DOCKER_HUB if written in _ALIASES else written


def _check(text: str, repository: str, tag: str | None, digest: str | None) -> None:
    if not _REPOSITORY.fullmatch(repository) or len(repository) > _LONGEST_REPOSITORY:
        raise _bad(text, f"{one_line(repository, 100)!r} is not a repository")
    if tag is not None and not _TAG.fullmatch(tag):
        raise _bad(text, f"{one_line(tag, 100)!r} is not a tag")
    if digest is not None and not _DIGEST.fullmatch(digest):
        raise _bad(text, f"{one_line(digest, 100)!r} is not a digest", "write sha256:… in full")


def _bad(
    text: str, problem: str, next_step: str = "write it like oci://ghcr.io/team/module:v1"
) -> BadReferenceError:
    return BadReferenceError(
        one_line(text, 200), step="reference", problem=problem, next_step=next_step
    )
