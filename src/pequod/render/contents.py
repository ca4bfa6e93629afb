"""What Secrets and ConfigMaps hold, judged before it is stored; a value is never repeated.

The API server cannot even read such an object when its content is of the wrong type, and answers
with an error of its own that names neither the field nor what to do.
"""

import binascii
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from pequod.evaluator.errors import Problem

_QUOTE = r'must be a string: quote it, as in "8080" or "\(input.port)"'


def unreadable(node: Mapping[str, Any]) -> Iterator[Problem]:
    """The fields of a node's object that no API server would read."""
    object_ = node.get("object")
    if not isinstance(object_, Mapping) or object_.get("apiVersion") != "v1":
        return
    for part, wrong in _PARTS.get(str(object_.get("kind")), {}).items():
        path = f"nodes.{node.get('id')}.{part}"
        content = object_.get(part)
        if isinstance(content, Mapping):
            problems = ((f"{path}.{name}", wrong(value)) for name, value in content.items())
            yield from (Problem(message=text, path=place) for place, text in problems if text)
        elif content is not None:
            yield Problem(message="must be an object: write names and values", path=path)


def _no_text(value: object) -> str:
    return "" if value is None or isinstance(value, str) else _QUOTE


def _no_base64(value: object, *, plain: str) -> str:
    if value is None or (isinstance(value, str) and _is_base64(value)):
        return ""
    return f"must be base64: use {plain} for plain text"


def _is_base64(text: str) -> bool:
    """As the API server reads it: with padding, and with lines that may be broken."""
    try:
        binascii.a2b_base64(text.replace("\n", "").replace("\r", ""), strict_mode=True)
    except ValueError:
        return False
    return True


_PARTS: dict[str, dict[str, Callable[[object], str]]] = {
    "Secret": {"data": partial(_no_base64, plain="stringData"), "stringData": _no_text},
    "ConfigMap": {"data": _no_text, "binaryData": partial(_no_base64, plain="data")},
}
"""What can be wrong with each value, by kind and field."""
