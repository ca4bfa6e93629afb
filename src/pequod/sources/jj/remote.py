"""Change ids in a git repository that jj users push to, where there is no jj.

Read from a mirror by the plumbing of `sources.git`: nothing is fetched or written here.
"""

from collections.abc import Iterable, Sequence

from pequod.base.logs import one_line
from pequod.sources.errors import MissingError, RefusedError
from pequod.sources.git.command import CommandError
from pequod.sources.git.mirror import Mirror
from pequod.sources.git.verdicts import BrokenError
from pequod.sources.jj import grammar
from pequod.sources.jj.commits import (
    CommitHeader,
    commit_headers,
    conflict_trees,
    conflicted_paths,
    tree_entries,
)
from pequod.sources.jj.repository import ambiguous_prefix, divergent_change, some

NEWEST = 10_000
"""How many commits are looked at, the newest first."""
Ref = tuple[str, str]
"""Its whole name, and the commit that it points to."""

_MOST_INPUTS = 32
"""Of a conflict: each is listed by a process of its own, only in order to name paths."""
_MOST_FILES = 50_000
_LIST = ("rev-list", "--header", "--ignore-missing")


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


async def candidates(mirror: Mirror, prefix: str) -> tuple[CommitHeader, ...]:
    """The newest commits of branches and tags whose change ids begin so."""
    assert grammar.is_change_id(prefix), prefix
    listing = await mirror.read(*_LIST, f"--max-count={NEWEST}", "--branches", "--tags")
    return tuple(commit_headers(listing, change_id=prefix))


async def header(mirror: Mirror, commit_id: str) -> CommitHeader:
    """What a commit says about itself."""
    whole = grammar.is_commit_id(commit_id)
    asked = f"{commit_id}\n".encode()
    listing = await mirror.read(*_LIST, "--max-count=1", "--stdin", stdin=asked) if whole else b""
    found = next(commit_headers(listing), None)
    if found is None:
        raise MissingError(
            one_line(commit_id, 80),
            step="read the commit",
            problem="the repository does not have it",
            next_step="correct the commit id",
        )
    return found


async def refuse_conflicts(mirror: Mirror, commit: CommitHeader, *, reference: str) -> None:
    """Raise RefusedError for a commit that jj has pushed with conflicts in it."""
    root = tree_entries(await mirror.read("ls-tree", "-z", "--end-of-options", commit.commit_id))
    trees = conflict_trees(root)
    if not commit.conflicted and not trees:
        return
    paths = await _conflicted_paths(mirror, trees)
    where = f" in {some(paths)}" if paths else ""
    raise RefusedError(
        one_line(reference),
        step="resolve",
        problem=f"commit {commit.commit_id[:12]} was pushed with conflicts{where}",
        next_step="resolve them with `jj resolve` and push again",
    )


async def _conflicted_paths(mirror: Mirror, trees: dict[bytes, str]) -> list[str]:
    """The paths, as far as they can be found out: the commit is refused in any case."""
    if len(trees) > _MOST_INPUTS:
        return []
    try:
        return conflicted_paths(
            {name: tree_entries(await _files(mirror, tree)) for name, tree in trees.items()}
        )
    except (CommandError, BrokenError):
        return []


async def _files(mirror: Mirror, tree: str) -> bytes:
    listing = ("ls-tree", "-r", "-z", "--end-of-options", tree)
    return await mirror.read(*listing, records=(b"\0", _MOST_FILES))
