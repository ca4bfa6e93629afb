"""A kind's CRD -> its page of `docs/reference/`."""

from collections.abc import Iterator
from typing import Any

import msgspec

from pequod.api.meta import Resource
from pequod.api.reasons import REASONS
from pequod.crd.definition import custom_resource_definition
from pequod.crd.schema import Schema


def reasons_page() -> str:
    """The reference of every reason that a condition can give."""
    rows = [f"| `{word}` | {reason.sentence} |" for word, reason in sorted(REASONS.items())]
    return "\n".join(
        [
            "# Reasons",
            "",
            "What the `reason` of a condition or an event of ours means. The message beside it",
            "names the object and says what to do next.",
            "",
            "| reason | means |",
            "|---|---|",
            *rows,
            "",
        ]
    )


def reference_page(resource: type[Resource[Any, Any]]) -> str:
    """The reference of a kind, from the very definition that the API server enforces."""
    spec = custom_resource_definition(resource)["spec"]
    names, version = spec["names"], spec["versions"][0]
    schema: Schema = version["schema"]["openAPIV3Schema"]
    short = ", ".join(f"`{name}`" for name in names.get("shortNames", ())) or "none"
    columns = ", ".join(column["name"] for column in version["additionalPrinterColumns"])
    lines = [
        f"# {names['kind']}",
        "",
        schema["description"],
        "",
        f"- `apiVersion: {spec['group']}/{version['name']}`, `kind: {names['kind']}`",
        f"- {spec['scope'].lower()}, plural `{names['plural']}`, short names: {short}, "
        f"category `{names['categories'][0]}`",
        f"- columns: {columns}",
        f"- conditions: {', '.join(f'`{name}`' for name in resource.definition.conditions)}",
    ]
    for part in ("spec", "status"):
        lines += ["", f"## {part}", "", schema["properties"][part]["description"]]
        lines += ["", "| field | type | what it is for |", "|---|---|---|"]
        lines += [_row(path, field) for path, field in _fields(schema["properties"][part], "")]
        lines += _rules(schema["properties"][part], part)
    return "\n".join([*lines, ""])


def _fields(schema: Schema, prefix: str) -> Iterator[tuple[str, Schema]]:
    required = schema.get("required", ())
    for name, field in schema.get("properties", {}).items():
        path = f"{prefix}{name}"
        yield path, field | {"required here": name in required}
        nested, suffix = _nested(field)
        yield from _fields(nested, f"{path}{suffix}.")


def _nested(schema: Schema) -> tuple[Schema, str]:
    """What a list or a map holds, and how its path says so."""
    if "items" in schema:
        return schema["items"], "[]"
    if "additionalProperties" in schema:
        return schema["additionalProperties"], ".*"
    return schema, ""


def _row(path: str, field: Schema) -> str:
    facts = []
    if field["required here"]:
        facts.append("**Required.**")
    if "default" in field and field["default"] != {}:
        facts.append(f"Default `{_json(field['default'])}`.")
    facts += _bounds(field)
    text = " ".join([field["description"], *facts]).replace("|", "\\|")
    return f"| `{path}` | {_type(field)} | {text} |"


def _type(field: Schema) -> str:
    nested, suffix = _nested(field)
    if suffix == "[]":
        return f"list of {_type(nested)}"
    if suffix == ".*":
        return f"map of {_type(nested)}"
    if "enum" in field:
        return " \\| ".join(f"`{value}`" for value in field["enum"])
    if field.get("x-kubernetes-preserve-unknown-fields"):
        return "free-form object"
    if field.get("x-kubernetes-int-or-string"):
        return "integer or string"
    return str(field.get("format") if field.get("format") == "date-time" else field["type"])


_BOUNDS = {
    "minimum": "At least {}.",
    "maximum": "At most {}.",
    "minLength": "At least {} characters.",
    "maxLength": "At most {} characters.",
    "minItems": "At least {} items.",
    "maxItems": "At most {} items.",
    "maxProperties": "At most {} entries.",
    "pattern": "Matches `{}`.",
}


def _bounds(field: Schema) -> list[str]:
    trivial = {("minLength", 1)}
    return [
        text.format(field[key])
        for key, text in _BOUNDS.items()
        if key in field and (key, field[key]) not in trivial
    ]


def _rules(schema: Schema, part: str) -> list[str]:
    found = [f"- `{path}`: {rule['message']}." for path, rule in _all_rules(schema, part)]
    return ["", "Rules that the API server enforces:", "", *found] if found else []


def _all_rules(schema: Schema, path: str) -> Iterator[tuple[str, dict[str, str]]]:
    for rule in schema.get("x-kubernetes-validations", ()):
        yield f"{path}{rule.get('fieldPath', '')}", rule
    for name, child in schema.get("properties", {}).items():
        yield from _all_rules(child, f"{path}.{name}")
    nested, suffix = _nested(schema)
    if suffix:
        yield from _all_rules(nested, f"{path}{suffix}")


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()
