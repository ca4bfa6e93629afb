"""What an apply would change, asked of the API server without changing anything.

Dry runs in the tenant's name: the API server defaults, validates and merges as it would, and stores
nothing.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from pequod.graph import ownership
from pequod.graph.desired import Desired, UnusableObjectError
from pequod.graph.differences import HIDDEN, Difference, comparable, described, differences
from pequod.graph.members import Member
from pequod.graph.model import GRAPH_LABEL, LAST_APPLIED, MANAGED_BY
from pequod.graph.problems import explained
from pequod.kube.client import Client, Write
from pequod.kube.errors import KubeError
from pequod.kube.objects import Object

SAME = "no difference"
_REHEARSED = Write(dry_run=True, force=True)
_NOT_PATCHED = frozenset({"apiVersion", "kind", "metadata", "status"})
_LAST_APPLIED = ("f:metadata", "f:annotations", f"f:{LAST_APPLIED}")


async def differing(client: Client, member: Member, live: Object) -> tuple[str, bool]:
    """How a live object differs from what a node asks for, in words, and whether that is known.

    Raises KubeError when it may be known soon.
    """
    labels = member.node.object["metadata"].get("labels") or {}
    try:
        wanted = await member.body()
        found = await mirrored(client, wanted, live, own=labels, hidden=member.sensitive)
    except (KubeError, UnusableObjectError) as error:
        problem = explained(error, member.ref, sensitive=member.sensitive)
        if problem.transient and isinstance(error, KubeError):
            raise
        return f"how it differs is not known: {problem.message}", False
    return (f"differs: {_compared(found)}" if found else SAME), True


def _compared(found: Sequence[Difference]) -> str:
    return described([_Compared(one.path, one.before, one.after) for one in found])


class _Compared(Difference):
    """A difference as those read it who want the object to be otherwise."""

    __slots__ = ()

    def __str__(self) -> str:
        if HIDDEN in {self.before, self.after}:
            return f"{self.path} (values are not shown)"
        live = "nothing" if self.before is None else self.before
        wanted = "nothing" if self.after is None else self.after
        return f"{self.path} wanted {wanted}, live {live}"


async def mirrored(
    client: Client, wanted: Desired, live: Object, *, own: Mapping[str, Any], hidden: bool
) -> tuple[Difference, ...]:
    """How a live object differs from what a node asks for, without the labels that we would add."""
    labels = {
        name: value
        for name, value in wanted.body["metadata"].get("labels", {}).items()
        if name != GRAPH_LABEL and (name != MANAGED_BY or name in own)
    }
    metadata = wanted.body["metadata"] | {"labels": labels}
    if not labels:
        del metadata["labels"]
    plain = Desired(wanted.ref, wanted.kind, wanted.body | {"metadata": metadata})
    answer = await rehearsed(client, plain, live)
    return differences(comparable(live), comparable(answer), hidden=hidden)


async def adopted(
    client: Client, wanted: Desired, live: Object, *, hidden: bool
) -> tuple[Difference, ...]:
    """What would change if an object were taken over, with what would be removed from it."""
    answer = await rehearsed(client, wanted, live)
    after = ownership.entries(answer["metadata"])
    # Where nobody is known to manage it, the API server says who it takes for the manager.
    before = ownership.entries(live["metadata"]) or after
    keep_replicas = ownership.leaves_replicas(wanted)
    gone, kept = ownership.let_go(before, after, keep_replicas=keep_replicas)
    rest = ownership.removed(answer, gone | {_LAST_APPLIED}, kept - {_LAST_APPLIED})
    if operations := _operations(live, rest):
        ref = wanted.ref
        rest = await client.json_patch(
            wanted.kind,
            ref.name,
            operations,
            Write(dry_run=True),
            namespace=ref.namespace or None,
        )
    found = differences(_without_memory(live), _without_memory(rest), hidden=hidden)
    # Labels of other tools come and go; what the object does matters more.
    return tuple(sorted(found, key=lambda one: one.path.startswith("metadata")))


def _without_memory(object_: Object) -> Object:
    """An object without kubectl's copy of it, which goes in any case."""
    kept = comparable(object_)
    annotations = kept["metadata"].get("annotations") or {}
    others = {name: value for name, value in annotations.items() if name != LAST_APPLIED}
    metadata = {name: value for name, value in kept["metadata"].items() if name != "annotations"}
    return kept | {"metadata": metadata | ({"annotations": others} if others else {})}


async def rehearsed(client: Client, wanted: Desired, live: Object) -> Object:
    """The object as an apply by force would leave it."""
    body = wanted.with_precondition(live["metadata"]["uid"])
    return await client.apply(wanted.kind, body, _REHEARSED)


def _operations(live: Object, after: Object) -> list[Object]:
    """The JSON patch that turns what people ask for of one object into that of the other."""
    operations = [*_changes(live, after, "", skip=_NOT_PATCHED)]
    before, now = live["metadata"], after["metadata"]
    parts = ("labels", "annotations")
    operations += _changes(
        {part: before[part] for part in parts if before.get(part)},
        {part: now[part] for part in parts if now.get(part)},
        "/metadata",
    )
    return operations


def _changes(
    before: Object, after: Object, place: str, *, skip: frozenset[str] = frozenset()
) -> list[Object]:
    changes: list[Object] = []
    for name in sorted({*before, *after} - skip):
        path = f"{place}/{escaped(name)}"
        if name not in after:
            changes.append({"op": "remove", "path": path})
        elif name not in before or before[name] != after[name]:
            changes.append({"op": "add", "path": path, "value": after[name]})
    return changes


def escaped(name: str) -> str:
    """A name as a step of a JSON pointer."""
    return name.replace("~", "~0").replace("/", "~1")
