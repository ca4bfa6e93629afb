"""Whose fields become ours when an object is adopted. Pure, on `metadata.managedFields`.

Server-side apply removes a field only when nobody else manages it. The tool that managed an object
before would hold its fields for ever; so they are made ours in its stead, and the apply that
follows takes away what the node does not name. Controllers that go on working on the object keep
what is theirs.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

from pequod.graph.desired import Desired
from pequod.graph.fields import BEFORE_FIRST_APPLY, Fields, item_at, owns
from pequod.kube.client import FIELD_MANAGER
from pequod.kube.objects import Object

Entry = Mapping[str, Any]
Path = tuple[str, ...]
"""The steps to a field, as FieldsV1 has them."""

HANDOVER = "pequod-handover"
"""Keeps a field that we let go of until its next owner takes it."""

_TOOLS = frozenset(
    {
        BEFORE_FIRST_APPLY,
        "argocd-application-controller",
        "argocd-controller",
        "fleetagent",
        "flux",
        "flux-client-side-apply",
        "HashiCorp",
        "helm",
        "Helm",
        "helm-controller",
        "kapp",
        "kapp-server-side-apply",
        "kro.run/applyset",
        "kustomize-controller",
        "tanka",
        "Terraform",
        "timoni",
    }
)
_FAMILIES = ("kubectl", "pulumi-kubernetes")
"""Names of these tools go on: `kubectl-client-side-apply`, `pulumi-kubernetes-7f`."""
_NO_TOOL = "kubectl-rollout"
"""It only marks a restart; taking its mark away would restart the pods once more."""
_NOT_FOR_NODES = (
    ("f:status",),
    ("f:metadata", "f:finalizers"),
    ("f:metadata", "f:ownerReferences"),
)
"""What a node cannot name, and an apply of one must not take away."""
_SCALED = frozenset({"Deployment", "StatefulSet", "ReplicaSet"})
_REPLICAS: Path = ("f:spec", "f:replicas")


def is_tool(name: str) -> bool:
    """Whether a manager applies what people write, so that we can do so in its stead."""
    return name in _TOOLS or (name.startswith(_FAMILIES) and name != _NO_TOOL)


def entries(metadata: Mapping[str, Any]) -> list[Entry]:
    """What an object says about who manages it."""
    found = metadata.get("managedFields")
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def leaves_replicas(wanted: Desired) -> bool:
    """Whether a node leaves it to others how many replicas there are."""
    spec = wanted.body.get("spec")
    named = isinstance(spec, dict) and "replicas" in spec
    return wanted.kind.group == "apps" and wanted.kind.kind in _SCALED and not named


def is_replaced(entry: Entry) -> bool:
    """Whether what an entry holds becomes ours; what was written to a sub-resource does not."""
    return is_tool(str(entry.get("manager", ""))) and not entry.get("subresource")


def taken_over(
    known: Sequence[Entry], api_version: str, *, keep_replicas: bool = False
) -> list[Entry] | None:
    """The entries of an object with those of tools made ours; None when there are none of these.

    The number of replicas that nobody names any more is kept until somebody sets it: the API
    server would reset it to one.
    """
    replaced = [entry for entry in known if is_replaced(entry)]
    if not replaced:
        return None
    ours: Fields = {}
    for entry in (*(one for one in known if _is_ours(one)), *replaced):
        ours = united(ours, _fields(entry))
    for path in _NOT_FOR_NODES:
        ours = _without(ours, path)
    rest = [entry for entry in known if not is_replaced(entry) and not _is_ours(entry)]
    if keep_replicas and owns([ours], "spec", "replicas"):
        ours = _without(ours, _REPLICAS)
        rest = [entry for entry in rest if entry.get("manager") != HANDOVER]
        rest.append(_applied(HANDOVER, api_version, {"f:spec": {"f:replicas": {}}}))
    return [*rest, _applied(FIELD_MANAGER, api_version, ours)]


def _is_ours(entry: Entry) -> bool:
    return (
        entry.get("manager") == FIELD_MANAGER
        and entry.get("operation") == "Apply"
        and not entry.get("subresource")
    )


def _applied(manager: str, api_version: str, fields: Fields) -> Object:
    return {
        "manager": manager,
        "operation": "Apply",
        "apiVersion": api_version,
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
    }


def _fields(entry: Entry) -> Fields:
    fields = entry.get("fieldsV1")
    return fields if isinstance(fields, dict) else {}


def united(one: Fields, other: Fields) -> dict[str, Any]:
    """Every field of both."""
    joined = dict(one)
    for step, below in other.items():
        joined[step] = _united(joined[step], below) if step in joined else below
    return joined


def _united(one: Fields, other: Fields) -> Fields:
    """A field as a whole, and fields of it: both are said by a dot."""
    if bool(one) is not bool(other):
        return {".": {}, **one, **other}
    return united(one, other)


def _without(fields: Fields, path: Path) -> dict[str, Any]:
    step, *rest = path
    if step not in fields:
        return dict(fields)
    if rest and (below := _without(fields[step], tuple(rest))):
        return {**fields, step: below}
    return {name: below for name, below in fields.items() if name != step}


def paths(fields: Fields, above: Path = ()) -> Iterator[Path]:
    """Every field of a tree, by the steps to it."""
    for step, below in fields.items():
        if step == ".":
            yield above
        elif below:
            yield from paths(below, (*above, step))
        else:
            yield (*above, step)


def let_go(
    before: Iterable[Entry], applied: Iterable[Entry], *, keep_replicas: bool = False
) -> tuple[set[Path], set[Path]]:
    """The fields of tools that nobody would manage after an apply; those that somebody would.

    From the entries before, and from those that a dry run of the apply has answered.
    """
    tools: set[Path] = set()
    for entry in before:
        if is_replaced(entry):
            tools.update(paths(_fields(entry)))
    kept: set[Path] = set()
    for entry in applied:
        if not is_replaced(entry):
            kept.update(paths(_fields(entry)))
    if keep_replicas:
        kept.add(_REPLICAS)
    tools = {path for path in tools if not any(path[: len(no)] == no for no in _NOT_FOR_NODES)}
    return tools - kept, kept


def removed(object_: Object, gone: AbstractSet[Path], kept: AbstractSet[Path]) -> Object:
    """An object without fields that nobody manages any more; what others hold in them stays."""
    held = {path[:length] for path in kept for length in range(1, len(path) + 1)}
    rest: Object = _copied(object_)
    # An item goes as a whole, before the key by which it is found.
    for path in sorted(gone - held, key=lambda path: (len(path), path)):
        _remove(rest, path)
    return rest


def _copied(value: Any) -> Any:  # noqa: ANN401 -- any JSON
    if isinstance(value, dict):
        return {name: _copied(one) for name, one in value.items()}
    return [_copied(one) for one in value] if isinstance(value, list) else value


def _remove(object_: Object, path: Path) -> None:
    place: Any = object_
    for step in path[:-1]:
        place = item_at(place, step)
    found = item_at(place, path[-1])
    if isinstance(place, dict):
        place.pop(path[-1].partition(":")[2], None)
    elif isinstance(place, list) and found in place:
        place.remove(found)
