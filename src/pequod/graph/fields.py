"""Which fields of an object are ours, and what they hold.

The API server says which by our entry in `metadata.managedFields` (FieldsV1). Only these are ever
compared, and only with themselves at another time: what others add or default does not concern us.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from pequod.kube.client import FIELD_MANAGER
from pequod.kube.objects import MISFITS

Fields = Mapping[str, Any]
"""A tree in the form of FieldsV1: `f:name`, `k:{…}`, `v:…`, `i:0`, and `.` for the item itself."""

BEFORE_FIRST_APPLY = "before-first-apply"
"""Whom the API server takes for the manager of fields that it has no record of."""
_MISSING = object()


def our_fields(metadata: Mapping[str, Any], manager: str = FIELD_MANAGER) -> list[Fields]:
    """The trees of what we applied; none when we own nothing of the object."""
    entries = metadata.get("managedFields")
    if not isinstance(entries, list):
        return []
    return [
        entry["fieldsV1"]
        for entry in entries
        if isinstance(entry, dict)
        and entry.get("manager") == manager
        and entry.get("operation") == "Apply"
        and not entry.get("subresource")
        and isinstance(entry.get("fieldsV1"), dict)
    ]


def managers(metadata: Mapping[str, Any]) -> tuple[str, ...]:
    """Everybody who manages fields of an object, ourselves included."""
    entries = metadata.get("managedFields")
    listed = entries if isinstance(entries, list) else []
    found = [entry.get("manager") for entry in listed if isinstance(entry, dict)]
    return tuple(dict.fromkeys(str(name) for name in found if name))


def previous_managers(metadata: Mapping[str, Any]) -> tuple[str, ...]:
    """Who managed an object before us; controllers and ourselves only when it was nobody else.

    Controllers write to sub-resources: the status, the scale.
    """
    entries = metadata.get("managedFields")
    listed = entries if isinstance(entries, list) else []
    plain = [one for one in listed if isinstance(one, dict) and not one.get("subresource")]
    known = managers({"managedFields": plain})
    others = tuple(name for name in known if name != FIELD_MANAGER)
    return others or known or managers(metadata) or (BEFORE_FIRST_APPLY,)


def owns(fields: list[Fields], *path: str) -> bool:
    """Whether a field is among ours."""
    for tree in fields:
        node: Any = tree
        for name in path:
            node = node.get(f"f:{name}") if isinstance(node, dict) else None
        if node is not None:
            return True
    return False


def projected(object_: Mapping[str, Any], fields: Fields) -> list[Any]:
    """The values of our fields, in an order that does not depend on anything but their paths.

    A field of ours that is gone is told apart from one that is null.
    """
    return [[path, value] for path, value in _walk(object_, fields, "")]


def item_at(value: Any, step: str) -> Any:  # noqa: ANN401 -- any JSON
    """What one step leads to; None when there is nothing."""
    found = _at(value, step)
    return None if found is _MISSING else found


def _walk(value: Any, fields: Fields, path: str) -> Iterator[tuple[str, Any]]:  # noqa: ANN401 -- any JSON
    for step in sorted(fields):
        below = fields[step]
        where = f"{path}/{step}"
        if step == ".":
            # An empty map or list may be ours as such; what it holds has steps of its own.
            yield where, _shape(value)
            continue
        found = _at(value, step)
        if found is _MISSING:
            yield where, []
        elif isinstance(below, dict) and below:
            yield from _walk(found, below, where)
        else:
            yield where, [found]


def _shape(value: Any) -> str:  # noqa: ANN401 -- any JSON
    return type(value).__name__


def _at(value: Any, step: str) -> Any:  # noqa: ANN401 -- any JSON
    kind, _, rest = step.partition(":")
    if kind == "f":
        return value.get(rest, _MISSING) if isinstance(value, dict) else _MISSING
    if not isinstance(value, list):
        return _MISSING
    try:
        wanted = msgspec.json.decode(rest)
    except MISFITS:
        return _MISSING
    return _item(value, kind, wanted)


def _item(items: list[Any], kind: str, wanted: Any) -> Any:  # noqa: ANN401 -- any JSON
    if kind == "k" and isinstance(wanted, dict):
        return next((item for item in items if _has(item, wanted)), _MISSING)
    if kind == "v":
        return wanted if wanted in items else _MISSING
    if kind == "i" and isinstance(wanted, int) and 0 <= wanted < len(items):
        return items[wanted]
    return _MISSING


def _has(item: Any, keys: Mapping[str, Any]) -> bool:  # noqa: ANN401 -- any JSON
    return isinstance(item, dict) and all(
        item.get(name, _MISSING) == value for name, value in keys.items()
    )
