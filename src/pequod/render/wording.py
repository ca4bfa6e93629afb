"""What the decoder has against a graph, for somebody who has never seen Python."""

import re
from typing import get_args

import msgspec

from pequod.api.graph import ApplyPolicy, NodeId, ReadyWhen
from pequod.api.meta import Period

_KINDS = {
    "array": "a list",
    "object": "an object",
    "str": "a text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "null": "null",
}
_OTHER_KIND = re.compile(r"Expected `([a-z| ]+)`, got `(\w+)`")
_TOO_LONG = re.compile(r"Expected `(\w+)` of length <= (\d+)")
_LACKING = re.compile(r"Object missing required field `(\w+)`")
_NO_CHOICE = re.compile(r"Invalid enum value (.*)")


def in_words(message: str, path: str) -> str:
    """The sentence for a message of the decoder; the message itself where there is none."""
    for pattern, words in _PATTERNS.items():
        if message.endswith(f"matching regex {pattern!r}"):
            return words
    if found := _OTHER_KIND.fullmatch(message):
        wanted = " or ".join(_kind(one) for one in found[1].split(" | "))
        return f"is {_kind(found[2])}, but must be {wanted}"
    if found := _TOO_LONG.fullmatch(message):
        parts = "characters" if found[1] == "str" else "items"
        return f"is too long: at most {found[2]} {parts} are allowed"
    if found := _LACKING.fullmatch(message):
        return f"lacks {found[1]}: add it"
    if (found := _NO_CHOICE.fullmatch(message)) and (choices := _choices(path)):
        return f"is {found[1]}, but must be one of {', '.join(choices)}"
    return message


def _kind(name: str) -> str:
    return _KINDS.get(name, name)


def _choices(path: str) -> tuple[str, ...]:
    """The values that a field of a node may have, by the name at the end of its path."""
    name = path.rpartition(".")[2]
    for kind in (ApplyPolicy, ReadyWhen):
        for field in msgspec.structs.fields(kind):
            if field.encode_name == name:
                return tuple(_texts(field.type))
    return ()


def _texts(choice: object) -> list[str]:
    """Of `Literal["a", "b"] | None` the texts."""
    if isinstance(choice, str):
        return [choice]
    return [text for one in get_args(choice) for text in _texts(one)]


def _pattern(kind: object) -> str:
    return str(next(one.pattern for one in get_args(kind) if hasattr(one, "pattern")))


_PATTERNS = {
    _pattern(NodeId): "is no id: it must begin with a letter or an underscore, and hold only "
    "letters, digits, underscores and hyphens",
    _pattern(Period): "is no duration: write for example 90s, 5m or 1h30m",
}
"""What the patterns of a graph's fields ask for."""
