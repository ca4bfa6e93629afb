"""The revisions of a Transform, for somebody who wants to go back."""

from pequod.api.platform import Revision, Transform
from pequod.cli import cluster
from pequod.kube.client import Client, Write
from pequod.kube.kinds import Kind

_TRANSFORMS = Kind.of(Transform)
_HAND = Write(manager="pequod-cli")


async def chosen(client: Client, namespace: str, name: str, to: int | None) -> int:
    """The revision to return to: the one that was named, or the last good one."""
    found = await client.get(_TRANSFORMS, name, namespace=namespace, type=Transform)
    known = found.status.revisions
    if to is None:
        current = found.spec.rollback_to or (known[0].revision if known else 0)
        good = [one.revision for one in known if one.revision < current and one.ready]
        if good:
            return max(good)
        problem = f"Transform {name} has no earlier revision that was Ready"
        cluster.end(problem, f"Name one with --to; there are: {_shown(known)}.", 1)
    if to not in {one.revision for one in known}:
        cluster.end(f"Transform {name} has no revision {to}", f"There are: {_shown(known)}.", 1)
    return to


async def set_rollback(client: Client, namespace: str, name: str, number: int | None) -> None:
    """Have a Transform return to a revision, or follow its spec again."""
    patch = {"spec": {"rollbackTo": number}}
    await client.patch(_TRANSFORMS, name, patch, _HAND, namespace=namespace)


def _shown(known: tuple[Revision, ...]) -> str:
    numbers = [f"{one.revision}{'' if one.ready else ' (never Ready)'}" for one in known]
    return ", ".join(numbers) or "none"
