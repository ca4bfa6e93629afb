"""How two versions of an object differ, field by field, for a person to read. Pure.

Whoever compares what is live with what an apply would make of it asks the API server for the
latter (a dry run): what is desired and what is live are never compared with each other, since
`1000m` is stored as `1`.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from pequod.base.logs import one_line
from pequod.graph.model import GRAPH_LABEL
from pequod.kube.objects import Object

LONGEST_VALUE = 60
HIDDEN = "(hidden)"
"""What stands for a value that is nobody's business."""
_DEEPEST = 64
_KEYS = ("name", "mountPath", "containerPort", "port", "key", "type", "ip", "id", "topologyKey")
"""By which the items of a list are told apart, in the order in which they are tried."""
_PLAIN = re.compile(r"[A-Za-z0-9_-]+")
NOT_INTENT = frozenset(
    {
        "creationTimestamp",
        "deletionGracePeriodSeconds",
        "deletionTimestamp",
        "generation",
        "managedFields",
        "resourceVersion",
        "selfLink",
        "uid",
    }
)
"""What API servers write into metadata, and nobody else says."""
_MISSING: Any = object()


@dataclass(frozen=True, slots=True)
class Difference:
    """One field that is not the same."""

    path: str
    """For example `spec.template.spec.containers[name=app].image`."""
    before: str | None
    """Its value as JSON, cut; None where there was none."""
    after: str | None

    def __str__(self) -> str:
        if self.before is None:
            return f"{self.path}: added {self.after}"
        if self.after is None:
            return f"{self.path}: removed {self.before}"
        return f"{self.path}: {self.before} -> {self.after}"


def comparable(object_: Mapping[str, Any]) -> Object:
    """What people ask for of an object: without what API servers and controllers write on it."""
    rest = {name: value for name, value in object_.items() if name != "status"}
    metadata = rest.get("metadata")
    if not isinstance(metadata, dict):
        return rest
    kept = {name: value for name, value in metadata.items() if name not in NOT_INTENT}
    labels = kept.pop("labels", None) or {}
    if others := {name: value for name, value in labels.items() if name != GRAPH_LABEL}:
        kept["labels"] = others
    if not kept.get("annotations", True):
        del kept["annotations"]
    return rest | {"metadata": kept}


def differences(
    before: Mapping[str, Any], after: Mapping[str, Any], *, hidden: bool = False
) -> tuple[Difference, ...]:
    """Every field that is not the same in both, by its path; without values if they are hidden."""
    return tuple(
        Difference(path, _shown(old, hidden=hidden), _shown(new, hidden=hidden))
        for path, old, new in _walk(before, after, "", _DEEPEST)
    )


def described(found: Sequence[Difference], *, longest: int = 400) -> str:
    """As many differences as fit, and how many more there are."""
    shown: list[str] = []
    room = longest
    for one in found:
        text = str(one)
        if shown and len(text) > room:
            break
        shown.append(text)
        room -= len(text) + 2
    more = len(found) - len(shown)
    return "; ".join(shown) + (f"; and {more} more" if more else "")


def _walk(old: Any, new: Any, path: str, left: int) -> Iterator[tuple[str, Any, Any]]:  # noqa: ANN401 -- any JSON
    if _same(old, new):
        return
    if left and isinstance(old, dict) and isinstance(new, dict):
        for name in sorted({*old, *new}):
            place = _below(path, name)
            yield from _walk(old.get(name, _MISSING), new.get(name, _MISSING), place, left - 1)
    elif left and isinstance(old, list) and isinstance(new, list):
        yield from _items(old, new, path, left)
    else:
        yield path, old, new


def _items(old: list[Any], new: list[Any], path: str, left: int) -> Iterator[tuple[str, Any, Any]]:
    """Items that have names are compared with their namesakes, wherever they stand."""
    key = next((key for key in _KEYS if _tells_apart(key, old) and _tells_apart(key, new)), None)
    if key is not None:
        was, now = {one[key]: one for one in old}, {one[key]: one for one in new}
        for name in dict.fromkeys((*was, *now)):
            place = f"{path}[{key}={name}]"
            yield from _walk(was.get(name, _MISSING), now.get(name, _MISSING), place, left - 1)
        if (first := [n for n in was if n in now]) != (then := [n for n in now if n in was]):
            yield f"{path} (order)", first, then
    elif len(old) == len(new) and all(isinstance(one, dict) for one in (*old, *new)):
        for number, (one, other) in enumerate(zip(old, new, strict=True)):
            yield from _walk(one, other, f"{path}[{number}]", left - 1)
    else:
        yield path, old, new


def _tells_apart(key: str, items: list[Any]) -> bool:
    names = [
        one[key] for one in items if isinstance(one, dict) and isinstance(one.get(key), (str, int))
    ]
    return len(names) == len(items) == len(set(names))


def _below(path: str, name: str) -> str:
    if not _PLAIN.fullmatch(name):
        return f'{path}["{name}"]'
    return f"{path}.{name}" if path else name


def _same(old: Any, new: Any) -> bool:  # noqa: ANN401 -- any JSON
    """Equality as JSON has it: true is not 1, wherever it stands."""
    if old is _MISSING or new is _MISSING or old != new:
        return old is new
    return type(old) is type(new) is str or _json(old) == _json(new)


def _json(value: Any) -> bytes:  # noqa: ANN401 -- any JSON
    return msgspec.json.encode(value, order="deterministic")


def _shown(value: Any, *, hidden: bool) -> str | None:  # noqa: ANN401 -- any JSON
    if value is _MISSING:
        return None
    return HIDDEN if hidden else one_line(_json(value).decode(), LONGEST_VALUE)
