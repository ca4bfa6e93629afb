"""What only the history of a repository can say, such as which commit a short id means."""

from functools import partial

from pequod.sources.credentials import Credentials
from pequod.sources.errors import BadReferenceError, MissingError
from pequod.sources.git.address import GitReference
from pequod.sources.git.mirror import COMMITS, Mirror, Way
from pequod.sources.git.mirrors import holder
from pequod.sources.git.repositories import Repositories, Result, Task

_REMEMBERED = 4096


class Histories:
    """The commits of repositories; an answer that was given stays."""

    def __init__(self, repositories: Repositories) -> None:
        self._repositories = repositories
        self._known: dict[tuple[str, str, str], str] = {}

    async def commit(self, reference: GitReference, credentials: Credentials) -> str:
        """The full id of a commit."""
        key = (reference.url, holder(credentials), reference.ref)
        if key not in self._known:
            task = partial(_only_commit, reference=reference)
            self._remember(key, await self.search(reference, credentials, task))
        return self._known[key]

    async def search(
        self,
        reference: GitReference,
        credentials: Credentials,
        task: Task[Result],
    ) -> Result:
        """Ask something of all commits that branches and tags lead to now."""

        async def work(mirror: Mirror, way: Way) -> Result:
            await mirror.bring_history(way)
            return await task(mirror)

        return await self._repositories.work(reference, credentials, work, leave_out=COMMITS)

    def _remember(self, key: tuple[str, str, str], commit: str) -> None:
        self._known[key] = commit
        while len(self._known) > _REMEMBERED:
            del self._known[next(iter(self._known))]


async def _only_commit(mirror: Mirror, reference: GitReference) -> str:
    objects = await mirror.read("rev-parse", f"--disambiguate={reference.ref}")
    kinds = await mirror.read("cat-file", "--batch-check", stdin=objects)
    lines = (line.split(" ") for line in kinds.decode().splitlines())
    commits = [line[0] for line in lines if line[1] == "commit"]
    if len(commits) == 1:
        return commits[0]
    if not commits:
        raise MissingError(
            str(reference),
            step="refs",
            problem=f"the repository has no branch, tag or commit {reference.ref!r}",
            next_step="write a branch, a tag or a full commit id",
        )
    raise BadReferenceError(
        str(reference),
        step="refs",
        problem=f"{reference.ref} may be {len(commits)} commits ({', '.join(commits[:3])})",
        next_step="write more of the commit id",
    )
