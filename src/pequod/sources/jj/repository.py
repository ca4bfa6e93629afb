"""One local Jujutsu repository, read: what a revision means, what changed, what was done to it.

A name wins over an id: a bookmark `kayak` is the bookmark, although it could begin a change id,
and a tag wins over a bookmark, as in jj and git. Only a whole commit id is never taken for a name.
A change id means the commit that the change has now; a commit id means that commit for ever, also
after it was rewritten.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TypeVar

import msgspec

from pequod.base.logs import one_line
from pequod.sources.errors import BadReferenceError, MissingError, RefusedError
from pequod.sources.jj import grammar
from pequod.sources.jj.command import AmbiguousPrefixError, Jj, repository_folder

T = TypeVar("T")

_SHOWN = 10
_SHORT = 12
_FIELDS = {
    "change_id": "json(change_id)",
    "commit_id": "json(commit_id)",
    "description": "json(description.first_line())",
    "authored_at": "json(author.timestamp())",
    "divergent": "json(divergent)",
    "hidden": "json(hidden)",
    "root": "json(root)",
    "tags": "json(local_tags)",
    "bookmarks": "json(local_bookmarks)",
    "remote_bookmarks": "json(remote_bookmarks)",
    "conflicted": "json(conflict)",
    "conflicts": '"[" ++ if(conflict, conflicted_files.map(|f| json(f.path())).join(",")) ++ "]"',
}
_OPERATION_FIELDS = {
    "id": "json(id)",
    "time": "json(time.end())",
    "user": "json(user)",
    "description": "json(description)",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class JjRevision:
    """A commit, and the change that it is the state of."""

    change_id: str
    """32 letters from k to z; stays when the change is rewritten."""
    commit_id: str
    bookmarks: tuple[str, ...]
    """Those that point here: `name`, or `name@remote` where only the remote's does."""
    description: str
    """The first line."""
    authored_at: datetime
    conflicted: bool = False
    divergent: bool = False
    """Whether the change has other visible commits as well."""
    hidden: bool = False
    """Whether the commit was rewritten or abandoned."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JjOperation:
    """One thing that was done to a repository."""

    id: str
    time: datetime
    user: str
    description: str


class Ref(msgspec.Struct, frozen=True):
    """A tag or a bookmark, as jj writes it."""

    name: str
    target: tuple[str | None, ...]
    """Commits that it points to, in turns added and removed ones; one that is sound has one."""
    remote: str = ""


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """A commit, as our template writes it."""

    change_id: str
    commit_id: str
    description: str
    authored_at: datetime
    divergent: bool
    hidden: bool
    root: bool
    tags: tuple[Ref, ...]
    bookmarks: tuple[Ref, ...]
    remote_bookmarks: tuple[Ref, ...]
    conflicted: bool
    conflicts: tuple[str, ...]

    def shown(self) -> str:
        """How people are told about it."""
        return f"{self.commit_id[:_SHORT]} ({one_line(self.description, 60) or 'no description'})"


def _template(fields: dict[str, str]) -> str:
    """A template for one line of JSON."""
    pairs = ' ++ "," ++ '.join(f"'\"{name}\":' ++ {value}" for name, value in fields.items())
    return f'--template="{{" ++ {pairs} ++ "}}\\n"'


class JjRepository:
    """The repository of a workspace, in a folder that the operator's owner chose.

    Never in one that was fetched: a `.jj` can point to any other repository on this machine.
    """

    def __init__(self, jj: Jj, root: Path) -> None:
        self._jj = jj
        self._root = root

    async def resolve(self, revision: str) -> JjRevision:
        """The commit that a revision means; RefusedError when it has conflicts."""
        row = await self._row(revision)
        if row.conflicted:
            raise RefusedError(
                one_line(revision),
                step="resolve",
                problem=f"commit {row.shown()} has conflicts in {some(row.conflicts)}",
                next_step=f"resolve them with `jj resolve --revision {row.change_id[:_SHORT]}`",
            )
        return _revision(row)

    async def find(self, revision: str) -> JjRevision:
        """The same, with conflicts or without: for those who only show it."""
        return _revision(await self._row(revision))

    async def changed_files(self, before: str, after: str) -> list[str]:
        """The paths in which two commits differ, both ends of a rename, sorted."""
        sides = [
            f"--{option}={grammar.commit_revset(_commit_id(commit))}"
            for option, commit in (("from", before), ("to", after))
        ]
        template = '--template=json(source.path()) ++ "\\n" ++ json(target.path()) ++ "\\n"'
        output = await self._jj.run(self._root, "diff", *sides, template)
        return sorted(set(self._decoded(output, str)))

    async def operations(self, limit: int) -> list[JjOperation]:
        """What was done last, the newest first."""
        arguments = ("--no-graph", f"--limit={limit:d}", _template(_OPERATION_FIELDS))
        output = await self._jj.run(self._root, "operation", "log", *arguments)
        return self._decoded(output, JjOperation)

    async def git_dir(self) -> Path:
        """The git repository that holds the content; RefusedError when it is somebody else's."""
        output = await self._jj.run(self._root, "git", "root")
        folder = Path(output.decode(errors="surrogateescape").removesuffix("\n"))
        owner = repository_folder((self._root / ".jj").resolve(strict=True)).parents[1]
        if not folder.is_relative_to(owner):
            raise RefusedError(
                str(self._root),
                step="find the git repository",
                problem=f"its content is in {one_line(str(folder))}, outside of the repository",
                next_step="use a repository that was made with `jj git init` or `jj git clone`",
            )
        return folder

    async def _row(self, revision: str) -> Row:
        row = await self._answer(revision)
        if row is None:
            raise MissingError(
                one_line(revision),
                step="resolve",
                problem=f"{self._root} has no such bookmark, tag, visible change or commit",
                next_step="correct it, undo its removal, or run `jj git import` if git made it",
            )
        if row.root:
            raise RefusedError(
                one_line(revision),
                step="resolve",
                problem="it is the root of all repositories, in which there is nothing",
                next_step="name another revision",
            )
        return row

    async def _answer(self, revision: str) -> Row | None:
        if grammar.is_commit_id(revision):
            return next(iter(await self._rows(grammar.commit_revset(revision))), None)
        name = grammar.parse_name(revision)
        row = named(revision, name, await self._rows(name.revset()))
        if row is None and grammar.is_change_id(revision):
            return await self._change(revision)
        return row

    async def _change(self, prefix: str) -> Row | None:
        try:
            rows = await self._rows(grammar.change_revset(prefix))
        except AmbiguousPrefixError:
            raise ambiguous_prefix(prefix) from None
        if len(rows) > 1:
            raise divergent_change(prefix, [row.shown() for row in rows])
        return rows[0] if rows else None

    async def _rows(self, revset: str) -> list[Row]:
        arguments = ("--no-graph", f"--revisions={revset}", _template(_FIELDS))
        output = await self._jj.run(self._root, "log", *arguments)
        return self._decoded(output, Row)

    def _decoded(self, output: bytes, kind: type[T]) -> list[T]:
        """What our templates make jj write: one JSON value a line."""
        try:
            lines = output.removesuffix(b"\n").split(b"\n") if output else []
            return [msgspec.json.decode(line, type=kind) for line in lines]
        except msgspec.DecodeError as error:
            raise RefusedError(
                str(self._root),
                step="jj",
                problem=f"an answer of jj that cannot be understood: {error}",
                next_step="use a version of jj that Pequod is tested with, 0.45",
            ) from error


def named(revision: str, name: grammar.Name, rows: Sequence[Row]) -> Row | None:
    """The commit that a name points to: as a tag, else as a bookmark, else as a remote's."""
    for hits in (
        [(row, ref) for row in rows for ref in row.tags if ref.name == name.tag],
        [(row, ref) for row in rows for ref in row.bookmarks if ref.name == name.bookmark],
        [
            (row, ref)
            for row in rows
            for ref in row.remote_bookmarks
            if (ref.name, ref.remote) == (name.remote_bookmark, name.remote)
        ],
    ):
        if hits:
            row, ref = hits[0]
            if len(ref.target) > 1:
                raise _conflicted_name(revision, [row.shown() for row, _ in hits])
            return row
    return None


def _conflicted_name(revision: str, commits: Sequence[str]) -> RefusedError:
    return RefusedError(
        one_line(revision),
        step="resolve",
        problem=f"it was moved to different places at the same time: {some(commits)}",
        next_step="choose one with `jj bookmark set NAME --revision COMMIT`",
    )


def divergent_change(change_id: str, commits: Sequence[str]) -> RefusedError:
    """A change that has become several."""
    return RefusedError(
        change_id,
        step="resolve",
        problem=f"the change is divergent, it has {len(commits)} commits: {some(commits)}",
        next_step="abandon all but one with `jj abandon COMMIT`, or name a whole commit id",
    )


def ambiguous_prefix(prefix: str) -> BadReferenceError:
    """The beginning of several change ids."""
    return BadReferenceError(
        prefix,
        step="resolve",
        problem="more than one change id begins so",
        next_step="write more letters of it",
    )


def some(texts: Sequence[str]) -> str:
    """The first of many, and how many more there are."""
    shown = ", ".join(one_line(text, 200) for text in texts[:_SHOWN])
    more = len(texts) - _SHOWN
    return f"{shown} and {more} more" if more > 0 else shown


def _revision(row: Row) -> JjRevision:
    local = [ref.name for ref in row.bookmarks]
    remote = [
        f"{ref.name}@{ref.remote}"
        for ref in row.remote_bookmarks
        if ref.remote != "git" and ref.name not in local
    ]
    return JjRevision(
        change_id=row.change_id,
        commit_id=row.commit_id,
        bookmarks=(*sorted(local), *sorted(remote)),
        description=row.description,
        authored_at=row.authored_at,
        conflicted=row.conflicted,
        divergent=row.divergent,
        hidden=row.hidden,
    )


def _commit_id(text: str) -> str:
    if not grammar.is_commit_id(text):
        raise BadReferenceError(
            one_line(text, 80) or "''",
            step="compare",
            problem="it is not a whole commit id",
            next_step="resolve it first",
        )
    return text
