"""Change ids in a git repository that jj users push to, where there is no jj.

The shell around git's plumbing on a mirror that somebody else has fetched: nothing is fetched,
written or run here.
"""

import os
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path

from pequod.base.logs import one_line
from pequod.sources.errors import (
    BadReferenceError,
    MissingError,
    RefusedError,
    TooLargeError,
    UnavailableError,
)
from pequod.sources.jj import grammar
from pequod.sources.jj.commits import (
    CommitHeader,
    commit_headers,
    conflict_trees,
    conflicted_paths,
    tree_entries,
)
from pequod.sources.jj.process import Bounds, Program
from pequod.sources.jj.repository import JjRevision, ambiguous_prefix, divergent_change, some

NEWEST = 10_000
"""How many commits are looked at, the newest first."""
Ref = tuple[str, str]
"""Its whole name, and the commit that it points to."""

_OPTIONS = ("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false")
_ENVIRONMENT = {
    "HOME": "/nonexistent",
    "PATH": "/nonexistent",
    "LC_ALL": "C",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",
    # A ref could otherwise show another commit in place of the one that was asked for.
    "GIT_NO_REPLACE_OBJECTS": "1",
    # A partial mirror would otherwise fetch what it lacks.
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "none",
}


def chosen(prefix: str, commits: Iterable[CommitHeader], refs: Sequence[Ref]) -> CommitHeader:
    """The commit of a change: the one at the head of a branch, if there is one.

    What a branch has left behind by a rewrite may live on in the history of another one.
    """
    found = [one for one in commits if one.change_id and one.change_id.startswith(prefix)]
    if len({one.change_id for one in found}) > 1:
        raise ambiguous_prefix(prefix)
    heads = {commit for name, commit in refs if not name.startswith("refs/tags/")}
    candidates = [one for one in found if one.commit_id in heads] or found
    if not candidates:
        raise MissingError(
            prefix,
            step="resolve",
            problem=f"no commit with this change id is among the {NEWEST} newest ones",
            next_step="push the change with jj 0.30 or newer, or name a branch or a commit id",
        )
    if len(candidates) > 1:
        shown = (f"{one.commit_id[:12]} ({one_line(one.description, 60)})" for one in candidates)
        raise divergent_change(prefix, [*shown])
    return candidates[0]


class GitMirror:
    """A bare git repository on this machine."""

    def __init__(self, folder: Path, *, bounds: Bounds | None = None) -> None:
        self._folder = folder
        self._program = Program(
            path=Path(shutil.which("git") or "git"),
            environment=_ENVIRONMENT,
            folder=folder,
            bounds=bounds or Bounds(),
        )

    async def refs(self) -> list[Ref]:
        """Every branch and tag, and the commit that it points to, through annotated tags."""
        form = "--format=%(objectname) %(*objectname) %(refname)"
        lines = (await self._git("for-each-ref", form)).decode(errors="replace").splitlines()
        parts = (line.split(" ", 2) for line in lines)
        return [(name, peeled or commit) for commit, peeled, name in parts]

    async def resolve_change(
        self, change_id: str, *, refs: Sequence[Ref] | None = None
    ) -> JjRevision:
        """The commit that a change, or its unique beginning, has now; without conflicts.

        Only what is reachable from the refs counts; from all of them if none are given.
        """
        if not grammar.is_change_id(change_id):
            raise BadReferenceError(
                one_line(change_id, 80) or "''",
                step="read the change id",
                problem="a change id has up to 32 letters from k to z",
                next_step="copy it from `jj log`",
            )
        seen = await self.refs() if refs is None else refs
        commit = chosen(change_id, await self._newest(seen, change_id), seen)
        await self.refuse_conflicts(commit, reference=change_id)
        assert commit.change_id is not None, "it was found by that"
        return JjRevision(
            change_id=commit.change_id,
            commit_id=commit.commit_id,
            bookmarks=tuple(
                name.removeprefix("refs/heads/")
                for name, at in sorted(seen)
                if at == commit.commit_id and name.startswith("refs/heads/")
            ),
            description=commit.description,
            authored_at=commit.authored_at,
        )

    async def header(self, commit_id: str) -> CommitHeader:
        """What a commit says about itself."""
        whole = grammar.is_commit_id(commit_id)
        listing = await self._listing(commit_id, "--max-count=1") if whole else b""
        found = next(commit_headers(listing), None)
        if found is None:
            raise MissingError(
                one_line(commit_id, 80),
                step="read the commit",
                problem=f"{self._folder} does not have it",
                next_step="correct the commit id, or fetch it first",
            )
        return found

    async def refuse_conflicts(self, commit: CommitHeader, *, reference: str) -> None:
        """Raise RefusedError for a commit that jj has pushed with conflicts in it."""
        root = tree_entries(await self._git("ls-tree", "-z", commit.commit_id))
        trees = conflict_trees(root)
        if not commit.conflicted and not trees:
            return
        paths = await self._conflicted_paths(trees)
        where = f" in {some(paths)}" if paths else ""
        raise RefusedError(
            one_line(reference),
            step="resolve",
            problem=f"commit {commit.commit_id[:12]} was pushed with conflicts{where}",
            next_step="resolve them with `jj resolve` and push again",
        )

    async def _conflicted_paths(self, trees: dict[bytes, str]) -> list[str]:
        """The paths, as far as they can be found out: the commit is refused in any case."""
        try:
            return conflicted_paths(
                {
                    name: tree_entries(await self._git("ls-tree", "-r", "-z", tree))
                    for name, tree in trees.items()
                }
            )
        except (TooLargeError, UnavailableError):
            return []

    async def _newest(self, refs: Sequence[Ref], change_id: str) -> list[CommitHeader]:
        tips = {commit for _, commit in refs if grammar.is_commit_id(commit)}
        if not tips:
            return []
        listing = await self._listing("\n".join(tips), f"--max-count={NEWEST}")
        return [*commit_headers(listing, change_id=change_id)]

    async def _listing(self, tips: str, count: str) -> bytes:
        """Commits from some on, the newest first; those that are not there are passed over."""
        arguments = ("rev-list", "--header", "--ignore-missing", count, "--stdin")
        return await self._git(*arguments, stdin=f"{tips}\n".encode())

    async def _git(self, *arguments: str, stdin: bytes = b"") -> bytes:
        folder = f"--git-dir={self._folder}"
        ended = await self._program.run(
            *_OPTIONS, folder, *arguments, reference=str(self._folder), stdin=stdin
        )
        if ended.code != 0:
            raise UnavailableError(
                str(self._folder),
                step="git",
                problem=f"git {arguments[0]} failed: {ended.complaint}",
                next_step="it is tried again; remove the mirror if that does not help",
            )
        return ended.output
