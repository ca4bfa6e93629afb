"""Which git is good enough."""

import re

from pequod.base.logs import one_line
from pequod.sources.errors import UnavailableError
from pequod.sources.git.command import Call, CommandError, Git

_OLDEST = (2, 39)
"""Older ones do not know every setting that keeps us safe, and would ignore it in silence."""


async def check_version(git: Git) -> str:
    """Say which git there is; raises when it is missing or too old."""
    try:
        output = await git.run(Call(arguments=("version",)))
    except CommandError as error:
        raise _unusable(f"it cannot be started ({one_line(error.complaint, 200)})") from error
    found = re.search(rb"(\d+)\.(\d+)", output)
    if found is None or (int(found[1]), int(found[2])) < _OLDEST:
        raise _unusable(f"{'.'.join(map(str, _OLDEST))} or newer is needed")
    return output.decode(errors="replace").strip()


def _unusable(problem: str) -> UnavailableError:
    return UnavailableError(
        "git", step="start", problem=problem, next_step="install git, util-linux and coreutils"
    )
