"""What the names of a repository mean now: asked once for all who want to know."""

import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from pequod.base.flights import Flights
from pequod.sources.credentials import Credentials
from pequod.sources.errors import MissingError, RefusedError
from pequod.sources.git.access import Gate
from pequod.sources.git.address import GitReference
from pequod.sources.git.command import Call, CommandError, Git
from pequod.sources.git.mirrors import holder
from pequod.sources.git.verdicts import judge
from pequod.sources.limits import Limits

FULL = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
SHORT = re.compile(r"[0-9a-f]{7,63}")
_LINE = re.compile(r"(?P<object>[0-9a-f]{40}|[0-9a-f]{64})\t(?P<name>[^\t]+)")
_SYMBOLIC = re.compile(r"ref: (?P<target>[^\t]+)\t(?P<name>[^\t]+)")
_PEELED = "^{}"
_REMEMBERED = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Refs:
    """The refs of a repository at one moment."""

    objects: dict[str, str] = field(default_factory=dict)
    """By full name; an annotated tag has a second entry that ends with `^{}`, for its commit."""
    symbolic: dict[str, str] = field(default_factory=dict)

    def commit(self, name: str) -> str | None:
        """The commit of a full name, behind a tag object if there is one."""
        return self.objects.get(name + _PEELED) or self.objects.get(name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolved:
    """What a ref means."""

    commit: str
    kind: str
    """`branch`, `tag`, `commit`, `change`, `head` or `ref`; empty when nobody knows."""
    name: str = ""
    """The full name, if it has one."""
    ambiguous: bool = False
    """Whether there is a tag of the same name, which was not meant."""


class Polls:
    """The refs of repositories, remembered for moments."""

    def __init__(
        self, git: Git, gate: Gate, limits: Limits, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._git = git
        self._gate = gate
        self._limits = limits
        self._clock = clock
        self._answers: dict[tuple[str, str, bool], tuple[float, Refs]] = {}
        self._flights: Flights[Refs] = Flights()

    async def refs(
        self, reference: GitReference, credentials: Credentials, *, max_age: float
    ) -> Refs:
        """The refs, as they were at most `max_age` seconds ago."""
        key = (reference.url, holder(credentials), needs_everything(reference.ref))
        asked_at, known = self._answers.get(key, (float("-inf"), Refs()))
        if self._clock() - asked_at < max_age:
            return known
        return await self._flights.share(key, lambda: self._ask(reference, credentials, key))

    async def _ask(
        self, reference: GitReference, credentials: Credentials, key: tuple[str, str, bool]
    ) -> Refs:
        asked_at = self._clock()
        async with self._gate.opened(reference, credentials) as access:
            call = Call(
                arguments=_arguments(everything=key[2]),
                settings=access.settings,
                variables=access.variables,
                protocols=access.protocols,
                records=(b"\n", self._limits.refs * 2),
            )
            try:
                output = await self._git.run(call)
            except CommandError as error:
                secrets = access.secrets
                raise judge(
                    error, reference=str(reference), step="refs", secrets=secrets
                ) from error
        self._remember(key, asked_at, parse_refs(output, reference.url))
        return self._answers[key][1]

    def _remember(self, key: tuple[str, str, bool], asked_at: float, refs: Refs) -> None:
        self._answers.pop(key, None)
        self._answers[key] = (asked_at, refs)
        while len(self._answers) > _REMEMBERED:
            del self._answers[next(iter(self._answers))]


def needs_everything(ref: str) -> bool:
    """Whether branches and tags are not enough; a forge may have very many other refs."""
    return not ref or ref == "HEAD" or (ref.startswith("refs/") and not _usual(ref))


def _usual(ref: str) -> bool:
    return ref.startswith(("refs/heads/", "refs/tags/"))


def _arguments(*, everything: bool) -> tuple[str, ...]:
    which = ("--symref",) if everything else ("--heads", "--tags")
    return ("ls-remote", "--quiet", *which, "--end-of-options", "origin")


def parse_refs(output: bytes, url: str) -> Refs:
    """Read what `ls-remote` prints: a server's words, so nothing is taken for granted."""
    refs = Refs()
    for line in output.decode(errors="surrogateescape").split("\n")[:-1]:
        if found := _LINE.fullmatch(line):
            refs.objects[found["name"]] = found["object"]
        elif found := _SYMBOLIC.fullmatch(line):
            refs.symbolic[found["name"]] = found["target"]
        else:
            raise RefusedError(
                url,
                step="refs",
                problem="the server lists refs in a way that cannot be understood",
                next_step="see whether there is a git server at this address",
            )
    return refs


def resolve(refs: Refs, ref: str) -> Resolved | None:
    """What a ref means by the names alone; None when no name is like that."""
    if not ref or ref == "HEAD":
        commit = refs.commit("HEAD")
        name = refs.symbolic.get("HEAD", "")
        return Resolved(commit=commit, kind="head", name=name) if commit else None
    if ref.startswith("refs/"):
        commit = refs.commit(ref)
        return Resolved(commit=commit, kind=_kind(ref), name=ref) if commit else None
    branch, tag = refs.commit(f"refs/heads/{ref}"), refs.commit(f"refs/tags/{ref}")
    if branch is not None:
        name = f"refs/heads/{ref}"
        return Resolved(commit=branch, kind="branch", name=name, ambiguous=tag is not None)
    return Resolved(commit=tag, kind="tag", name=f"refs/tags/{ref}") if tag else None


def _kind(name: str) -> str:
    if name.startswith("refs/heads/"):
        return "branch"
    return "tag" if name.startswith("refs/tags/") else "ref"


def no_such_ref(reference: GitReference, refs: Refs) -> MissingError:
    """The error that says what there is instead."""
    names = [name.partition("/heads/")[2] for name in refs.objects if "/heads/" in name]
    shown = ", ".join(sorted(names)[:5]) or "none"
    return MissingError(
        str(reference),
        step="refs",
        problem=f"the repository has no branch, tag or commit {reference.ref or 'HEAD'!r}",
        next_step=f"use one that is there (branches: {shown})",
    )
