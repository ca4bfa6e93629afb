"""API types -> structural schemas: the subset of OpenAPI v3 that a CRD may hold.

A type that a structural schema cannot say, or that would come out wrong or undocumented, is refused
with the path of the field and a way out: better a failed `make generate` than a CRD that accepts
what the operator cannot decode.
"""

from collections.abc import Callable
from typing import Any, TypeAlias

import msgspec
from msgspec import inspect as types

from pequod.api.schema import Rule
from pequod.crd.docstrings import attribute_docstrings, class_docstring

Schema: TypeAlias = dict[str, Any]


class UnsupportedTypeError(TypeError):
    """A type that has no place in a structural schema."""

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(f"{path}: {problem}")


def structural_schema(cls: type, path: str) -> Schema:
    """The schema of a struct, with everything that it refers to put in place."""
    return _struct(_checked(types.type_info(cls), types.StructType, path), path, within=())


def _checked(info: types.Type, kind: type[Any], path: str) -> Any:  # noqa: ANN401 -- narrowed by the caller's `kind`
    if not isinstance(info, kind):
        raise UnsupportedTypeError(path, f"expected {kind.__name__}, found {type(info).__name__}")
    return info


Within: TypeAlias = tuple[type, ...]


def _schema_of(info: types.Type, path: str, within: Within) -> Schema:
    if isinstance(info, types.Metadata):
        return _merged(_schema_of(info.type, path, within), info.extra_json_schema or {})
    emit = _EMITTERS.get(type(info))
    if emit is None:
        raise UnsupportedTypeError(
            path, f"a structural schema cannot say {type(info).__name__}; {_HINT}"
        )
    return emit(info, path, within)


_HINT = (
    "use str, int, bool, a Literal, a datetime, a struct, a tuple of one type, dict[str, …], "
    "FreeForm, or several optional fields with a one_of rule instead of a union"
)


def _merged(schema: Schema, extra: Schema) -> Schema:
    """Later metadata wins, except that rules add up."""
    merged = schema | extra
    for key in ("x-kubernetes-validations",):
        if key in schema and key in extra:
            merged[key] = schema[key] + extra[key]
    return merged


def _struct(info: types.StructType, path: str, within: Within) -> Schema:
    cls = info.cls
    if cls in within:
        raise UnsupportedTypeError(
            path, f"{cls.__name__} contains itself; a CRD has no $ref: use FreeForm for that part"
        )
    if info.tag is not None or info.array_like:
        raise UnsupportedTypeError(path, "tagged and array-like structs are no Kubernetes objects")
    docs = attribute_docstrings(cls)
    schema: Schema = {"description": class_docstring(cls), "type": "object"}
    required = sorted(field.encode_name for field in info.fields if field.required)
    if required:
        schema["required"] = required
    schema["properties"] = {
        field.encode_name: _field(field, docs, f"{path}.{field.encode_name}", (*within, cls))
        for field in info.fields
    }
    struct_rules: tuple[Rule, ...] = getattr(cls, "rules", ())
    if struct_rules:
        schema["x-kubernetes-validations"] = [msgspec.to_builtins(rule) for rule in struct_rules]
    return schema


def _field(field: types.Field, docs: dict[str, str], path: str, within: Within) -> Schema:
    if not docs.get(field.name):
        raise UnsupportedTypeError(path, "has no docstring: a field without prose helps nobody")
    schema = _schema_of(_without_none(field, path), path, within)
    schema = {"description": docs[field.name]} | {
        key: value for key, value in schema.items() if key != "description"
    }
    default = _default(field)
    if default is not None:
        schema["default"] = default
    return schema


def _without_none(field: types.Field, path: str) -> types.Type:
    """Optional means that the field may be absent; nothing of ours is nullable."""
    if not isinstance(field.type, types.UnionType):
        return field.type
    members = [member for member in field.type.types if not isinstance(member, types.NoneType)]
    if len(members) != 1:
        raise UnsupportedTypeError(path, f"is a union of several types; {_HINT}")
    if field.required:
        raise UnsupportedTypeError(path, "is nullable and required: give it the default None")
    return members[0]


def _default(field: types.Field) -> object:
    """What the API server fills in. An empty list or map is an absent one, by convention."""
    if field.default_factory is not msgspec.NODEFAULT:
        value = field.default_factory()
        return {} if isinstance(value, msgspec.Struct) else (msgspec.to_builtins(value) or None)
    if field.default is msgspec.NODEFAULT or field.default is None or field.default == ():
        return None
    default: object = msgspec.to_builtins(field.default)
    return default


def _string(info: types.StrType, _path: str, _within: Within) -> Schema:
    return {"type": "string"} | _present(
        minLength=info.min_length, maxLength=info.max_length, pattern=info.pattern
    )


def _integer(info: types.IntType, path: str, _within: Within) -> Schema:
    if (info.gt, info.lt, info.multiple_of) != (None, None, None):
        raise UnsupportedTypeError(path, "say bounds with ge and le, and multiples with a rule")
    return {"type": "integer", "format": "int64"} | _present(minimum=info.ge, maximum=info.le)


def _boolean(_info: types.BoolType, _path: str, _within: Within) -> Schema:
    return {"type": "boolean"}


def _moment(_info: types.DateTimeType, _path: str, _within: Within) -> Schema:
    return {"type": "string", "format": "date-time"}


def _literal(info: types.LiteralType, path: str, _within: Within) -> Schema:
    if not all(isinstance(value, str) for value in info.values):
        raise UnsupportedTypeError(path, "an enum holds strings only")
    return {"type": "string", "enum": list(info.values)}


def _int_or_string(info: types.UnionType, path: str, within: Within) -> Schema:
    members = {type(member): _schema_of(member, path, within) for member in info.types}
    if members.keys() != {types.IntType, types.StrType}:
        raise UnsupportedTypeError(path, f"is a union of several types; {_HINT}")
    text = {key: value for key, value in members[types.StrType].items() if key != "type"}
    variants = {"anyOf": [{"type": "integer"}, {"type": "string"}]}
    return variants | {"x-kubernetes-int-or-string": True} | text


def _list(info: types.VarTupleType | types.ListType, path: str, within: Within) -> Schema:
    return {"type": "array", "items": _schema_of(info.item_type, f"{path}[]", within)} | _present(
        minItems=info.min_length, maxItems=info.max_length
    )


def _map(info: types.DictType, path: str, within: Within) -> Schema:
    if not isinstance(info.key_type, types.StrType):
        raise UnsupportedTypeError(path, "keys of a JSON object are strings")
    if _string(info.key_type, path, within) != {"type": "string"}:
        raise UnsupportedTypeError(path, "a schema cannot bound the keys of a map: use a rule")
    size = _present(minProperties=info.min_length, maxProperties=info.max_length)
    if isinstance(info.value_type, types.AnyType):
        return {"type": "object"} | size
    values = _schema_of(info.value_type, f"{path}.*", within)
    return {"type": "object", "additionalProperties": values} | size


def _present(**keywords: object) -> Schema:
    return {name: value for name, value in keywords.items() if value is not None}


_EMITTERS: dict[type, Callable[[Any, str, Within], Schema]] = {
    types.StructType: _struct,
    types.StrType: _string,
    types.IntType: _integer,
    types.BoolType: _boolean,
    types.DateTimeType: _moment,
    types.LiteralType: _literal,
    types.VarTupleType: _list,
    types.ListType: _list,
    types.DictType: _map,
    types.UnionType: _int_or_string,
}


def refuse_ambiguity(schema: Schema, path: str) -> None:
    """Refuse a list without merge semantics, and an object that is free-form by accident."""
    kind = schema.get("type")
    if kind == "array" and "x-kubernetes-list-type" not in schema:
        raise UnsupportedTypeError(
            path, "a list says how it merges: ATOMIC_LIST, SET_LIST, list_map"
        )
    free_form = schema.get("x-kubernetes-preserve-unknown-fields", False)
    shaped = "properties" in schema or "additionalProperties" in schema
    if kind == "object" and not shaped and not free_form:
        raise UnsupportedTypeError(path, "dict[str, Any] loses every field: say FreeForm")
    for name, child in schema.get("properties", {}).items():
        refuse_ambiguity(child, f"{path}.{name}")
    for child_key in ("items", "additionalProperties"):
        if child_key in schema:
            refuse_ambiguity(schema[child_key], f"{path}[]")
