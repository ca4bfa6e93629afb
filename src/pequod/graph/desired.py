"""What is sent for a node: its object, with what is ours added and what is not taken off.

Never compared with what is live: `1000m` is stored as `1`. Its digest is compared with the digest
of what was sent before.
"""

from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from pequod.api import reasons
from pequod.graph.model import GRAPH_LABEL, LAST_APPLIED, MANAGED_BY, Ref
from pequod.kube.kinds import Kind
from pequod.kube.objects import MISFITS, Object

CREATE_ONLY = "1"
"""A resource version that no object has: with it, an apply creates or conflicts, even by force."""

_OURS = "pequod"
_KEPT_METADATA = ("name", "labels", "annotations")


class UnusableObjectError(Exception):
    """A node whose object cannot be sent as it is."""

    reason = reasons.INVALID


@dataclass(frozen=True, slots=True)
class Desired:
    """What one node asks for."""

    ref: Ref
    kind: Kind
    body: Object

    def with_precondition(self, uid: str, version: str = "") -> Object:
        """The body for that object and no other, or, without a UID, for none that exists."""
        condition = {"uid": uid} if uid else {"resourceVersion": CREATE_ONLY}
        if uid and version:
            condition["resourceVersion"] = version
        return self.body | {"metadata": self.body["metadata"] | condition}


def reference(object_: Mapping[str, Any], kind: Kind, namespace: str) -> Ref:
    """Which object a node is about; without a namespace of its own it is in that of its graph."""
    metadata = object_["metadata"]
    named = metadata.get("namespace")
    if not kind.namespaced:
        if named:
            raise UnusableObjectError(
                f"{kind.kind} is cluster-scoped: remove metadata.namespace from {metadata['name']}"
            )
        return Ref(kind.group, kind.kind, "", metadata["name"])
    return Ref(kind.group, kind.kind, named or namespace, metadata["name"])


def desired(
    object_: Mapping[str, Any], kind: Kind, *, namespace: str, graph: str, adopts: bool = False
) -> Desired:
    """What is sent for an object of a graph; who manages one that it adopts, is said there."""
    ref = reference(object_, kind, namespace)
    metadata = {
        name: value
        for name, value in object_["metadata"].items()
        if name in _KEPT_METADATA and value
    }
    labels = metadata.get("labels", {})
    ours = {} if adopts else {MANAGED_BY: _OURS}
    metadata["labels"] = ours | labels | {GRAPH_LABEL: graph}
    annotations = metadata.pop("annotations", {})
    # An empty map would be ours as a whole, with whatever others put into it.
    if kept := {name: value for name, value in annotations.items() if name != LAST_APPLIED}:
        metadata["annotations"] = kept
    if ref.namespace:
        metadata["namespace"] = ref.namespace
    body = {name: value for name, value in object_.items() if name != "status"}
    return Desired(ref, kind, _folded(body | {"metadata": metadata}))


def _folded(body: Object) -> Object:
    """A Secret whose `stringData` has become `data`: the API server never shows it again."""
    plain = body.get("stringData")
    if body.get("kind") != "Secret" or body.get("apiVersion") != "v1" or not plain:
        return body
    data = body.get("data") or {}
    if not isinstance(plain, dict) or not isinstance(data, dict):
        raise UnusableObjectError("data and stringData of a Secret must be maps")
    for name, text in plain.items():
        if not isinstance(text, str):
            raise UnusableObjectError(f"stringData.{name} of a Secret must be a string")
    folded = {name: value for name, value in body.items() if name != "stringData"}
    encoded = {name: b64encode(text.encode()).decode() for name, text in plain.items()}
    return folded | {"data": {**data, **encoded}}


def with_sensitive(object_: Mapping[str, Any], secret: bytes, *, where: str) -> Object:
    """An object with its sensitive part: it may add to the object, and replace nothing of it.

    Policies have judged the object as the graph has it.
    """
    try:
        part = msgspec.json.decode(secret, type=dict[str, Any])
    except MISFITS as error:
        raise UnusableObjectError(f"{where} does not hold a JSON object") from error
    for reserved in ("apiVersion", "kind", "metadata", "status"):
        if reserved in part:
            raise UnusableObjectError(f"{where} must not hold {reserved}: that stays in the graph")
    return _joined(dict(object_), part, where, "")


def _joined(object_: Object, part: Mapping[str, Any], where: str, path: str) -> Object:
    joined = dict(object_)
    for name, value in part.items():
        place = f"{path}.{name}"
        known = joined.get(name)
        if name not in joined:
            joined[name] = value
        elif isinstance(known, dict) and isinstance(value, dict):
            joined[name] = _joined(known, value, where, place)
        elif known != value:
            raise UnusableObjectError(
                f"{where} would replace {place} of the object; it may only add to it"
            )
    return joined


def split_secret(object_: Mapping[str, Any]) -> tuple[Object, bytes | None]:
    """A rendered object without what must stay secret, and that part, to be kept in a Secret."""
    if object_.get("apiVersion") != "v1" or object_.get("kind") != "Secret":
        return dict(object_), None
    part = {name: object_[name] for name in ("data", "stringData") if object_.get(name)}
    if not part:
        return dict(object_), None
    rest = {name: value for name, value in object_.items() if name not in ("data", "stringData")}
    annotations = rest["metadata"].get("annotations") or {}
    if LAST_APPLIED in annotations:
        kept = {name: value for name, value in annotations.items() if name != LAST_APPLIED}
        rest["metadata"] = rest["metadata"] | {"annotations": kept}
    return rest, msgspec.json.encode(part, order="deterministic")
