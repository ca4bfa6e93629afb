"""A kind -> its CustomResourceDefinition."""

from typing import Any, get_args

import msgspec

from pequod.api.meta import CATEGORY, Resource
from pequod.crd.docstrings import class_docstring
from pequod.crd.schema import Schema, refuse_ambiguity, structural_schema

NEVER_OBSERVED = {"observedGeneration": -1}
"""Until a controller has looked, an object must not pass for "current": kstatus and `kubectl wait`
compare this with the generation."""


def custom_resource_definition(resource: type[Resource[Any, Any]]) -> dict[str, Any]:
    """The CRD of a kind, ready to be applied."""
    definition = resource.definition
    names: dict[str, Any] = {
        "kind": definition.kind,
        "listKind": f"{definition.kind}List",
        "plural": definition.plural,
        "singular": definition.kind.lower(),
        "categories": [CATEGORY],
    }
    if definition.short_names:
        names["shortNames"] = [*definition.short_names]
    version = {
        "name": definition.version,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": _root_schema(resource)},
        "subresources": {"status": {}},
        "additionalPrinterColumns": [msgspec.to_builtins(column) for column in definition.columns],
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": definition.name,
            "labels": {"app.kubernetes.io/part-of": "pequod"},
        },
        "spec": {
            "group": definition.group,
            "names": names,
            "scope": definition.scope,
            "versions": [version],
        },
    }


def _root_schema(resource: type[Resource[Any, Any]]) -> Schema:
    spec, status = _type_arguments(resource)
    kind = resource.__name__
    properties = {
        "apiVersion": {
            "description": f"Always `{resource.definition.api_version}`.",
            "type": "string",
        },
        "kind": {"description": f"Always `{kind}`.", "type": "string"},
        "metadata": {"type": "object"},
        "spec": structural_schema(spec, f"{kind}.spec"),
        "status": structural_schema(status, f"{kind}.status") | {"default": NEVER_OBSERVED},
    }
    for name in ("spec", "status"):
        refuse_ambiguity(properties[name], f"{kind}.{name}")
    return {
        "description": class_docstring(resource),
        "type": "object",
        "required": ["spec"],
        "properties": properties,
    }


def _type_arguments(resource: type[Resource[Any, Any]]) -> tuple[type, type]:
    (base,) = resource.__orig_bases__  # type: ignore[attr-defined]
    spec, status = get_args(base)
    return spec, status
