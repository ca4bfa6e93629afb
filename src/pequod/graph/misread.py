"""What an API server says of an object that it cannot even read, without its values.

It answers with the types of its own program: `.data.port: expected string, got
&value.valueUnstructured{Value:1}`. Whoever wrote the object wants to know what to write instead.
"""

import re

_OF_A_FIELD = re.compile(
    r"(?:^|\s)\.(?P<path>\S.*?): (?:expected (?P<kind>[\w ()]+), got |field not declared)"
)
_KINDS = {
    "string": "must be a string: quote it",
    "numeric (int or float)": "must be a number, without quotes",
    "boolean": "must be true or false, without quotes",
    "list": "must be a list",
    "map": "must be an object",
}
_NO_BASE64 = "illegal base64 data"
_MOST = 5


def misread(said: str, *, sensitive: bool) -> str:
    """The fields that are of another type, and of which; nothing where that is not what it says."""
    if _NO_BASE64 in said:
        return (
            "each value of data of a Secret, or binaryData of a ConfigMap, must be base64: use "
            "stringData, or data, for plain text"
        )
    found = [*_OF_A_FIELD.finditer(said)]
    if sensitive:
        # Behind the first field follows its value; and items of lists are named by values.
        found = [one for one in found[:1] if re.fullmatch(r"[\w.-]+", one["path"])]
    more = f"; and {len(found) - _MOST} more" if len(found) > _MOST else ""
    return "; ".join(f"{one['path']} {_wrong(one['kind'])}" for one in found[:_MOST]) + more


def _wrong(kind: str | None) -> str:
    if kind is None:
        return "is not known: correct its name, or remove it"
    return _KINDS.get(kind, f"must be of the type {kind}")
