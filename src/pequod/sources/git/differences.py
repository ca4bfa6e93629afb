"""Which files differ between two commits, by their trees alone."""

import os

from pequod.sources.errors import BadReferenceError, TooLargeError
from pequod.sources.git.address import GitReference
from pequod.sources.git.command import TooMuchError
from pequod.sources.git.mirror import Mirror
from pequod.sources.git.refs import FULL
from pequod.sources.limits import Limits


def check_commits(reference: GitReference, *commits: str) -> None:
    """Refuse what is not a full commit id."""
    for commit in commits:
        if not FULL.fullmatch(commit):
            raise BadReferenceError(
                str(reference),
                step="difference",
                problem=f"{commit[:80]!r} is not a full commit id",
                next_step="give commits as they were resolved",
            )


async def differences(
    mirror: Mirror, reference: GitReference, between: tuple[str, str], limits: Limits
) -> list[str]:
    """The paths, relative to the root of the repository, below the reference's path if any."""
    below = (reference.path,) if reference.path else ()
    try:
        output = await mirror.read(
            *("diff-tree", "-r", "-z", "--name-only", "--no-renames", "--no-commit-id"),
            *("--end-of-options", *between, "--", *below),
            records=(b"\0", limits.files),
        )
    except TooMuchError:
        raise TooLargeError(
            str(reference),
            step="difference",
            problem=f"more than {limits.files} files differ",
            next_step="take it for a change of everything",
        ) from None
    return [os.fsdecode(name) for name in output.split(b"\0")[:-1]]
