"""What is kept of a live object of a graph: under a KiB, and enough to decide everything.

The object itself is looked at once, when it arrives: its health, the digest of our fields, what
holds its deletion up. Then it is dropped.
"""

import sys
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from pequod.base.durations import seconds
from pequod.base.logs import one_line
from pequod.graph.digests import Digests
from pequod.graph.fields import our_fields, owns
from pequod.graph.kstatus import Health, health
from pequod.graph.model import GRAPH_LABEL

PRUNE = "pequod.io/prune"
GRACE = "pequod.io/prune-grace-period"
_LONGEST_GRACE = 24 * 3600.0
_LONGEST_MESSAGE = 200
_MOST_CONDITIONS = 64

_decoder = msgspec.json.Decoder(dict[str, Any])


class ChildMetadata(msgspec.Struct, frozen=True, gc=False):
    """Which object it is, and whose."""

    name: str
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    graph: str = ""
    """UID of the graph that its label names."""


class ChildCondition(msgspec.Struct, frozen=True, gc=False):
    """One of its conditions."""

    type: str
    status: str
    said: str = ""
    """Reason and message."""
    current: bool = True
    """Whether it speaks of the newest generation, as far as it says."""


class Child(msgspec.Struct, frozen=True, gc=False):
    """A live object, as far as the engine cares."""

    metadata: ChildMetadata
    owned: str
    """Digest of our fields; empty when nothing of it is ours."""
    health: Health
    conditions: tuple[ChildCondition, ...] = ()
    deleting: bool = False
    finalizers: tuple[str, ...] = ()
    protected: bool = False
    """Whether it asks not to be pruned."""
    grace: float = 0.0
    """Seconds for which it asks to stay after nobody wants it any more."""
    owns_replicas: bool = False
    """Whether how many replicas it has is ours to say."""
    observed: bool = True
    """Whether its controller has seen its newest generation, as far as that can be known."""
    has_pods: bool = True
    """Whether pods of its may run; False only where its controller says that there are none."""

    def differs(self, other: "Child") -> bool:
        """Whether there is anything to be decided anew."""
        return (
            self.metadata.uid != other.metadata.uid
            or self.metadata.graph != other.metadata.graph
            or self.owned != other.owned
            or self.health != other.health
            or self.conditions != other.conditions
            or self.deleting != other.deleting
            or self.finalizers != other.finalizers
            or self.protected != other.protected
            or self.grace != other.grace
        )


def reader(digests: Digests) -> Callable[[bytes | msgspec.Raw], Child]:
    """What makes a child of the bytes of an object."""

    def read(raw: bytes | msgspec.Raw) -> Child:
        return child(_decoder.decode(raw), digests)

    return read


def child(object_: Mapping[str, Any], digests: Digests) -> Child:
    """What is kept of an object; raises msgspec.ValidationError when it is none."""
    metadata = object_.get("metadata")
    if not isinstance(metadata, dict) or not isinstance(metadata.get("name"), str):
        raise msgspec.ValidationError("the object has no metadata with a name")
    labels, annotations = _strings(metadata, "labels"), _strings(metadata, "annotations")
    return Child(
        metadata=ChildMetadata(
            name=metadata["name"],
            namespace=sys.intern(str(metadata.get("namespace") or "")),
            uid=str(metadata.get("uid") or ""),
            resource_version=str(metadata.get("resourceVersion") or ""),
            graph=sys.intern(str(labels.get(GRAPH_LABEL) or "")),
        ),
        owned=digests.owned(object_),
        health=health(object_),
        conditions=_conditions(object_, metadata),
        deleting=bool(metadata.get("deletionTimestamp")),
        finalizers=_finalizers(metadata),
        protected=annotations.get(PRUNE) == "disabled",
        grace=_grace(annotations.get(GRACE)),
        owns_replicas=owns(our_fields(metadata), "spec", "replicas"),
        observed=_observed(object_, metadata),
        has_pods=_has_pods(object_, metadata),
    )


def _strings(metadata: Mapping[str, Any], part: str) -> Mapping[str, Any]:
    """Labels or annotations; what stands in the place of a string is anybody's guess."""
    pairs = metadata.get(part)
    return pairs if isinstance(pairs, dict) else {}


def _finalizers(metadata: Mapping[str, Any]) -> tuple[str, ...]:
    names = metadata.get("finalizers")
    return tuple(str(name) for name in names) if isinstance(names, list) else ()


def _grace(text: object) -> float:
    try:
        return min(seconds(str(text)), _LONGEST_GRACE) if text else 0.0
    except ValueError:
        # Whoever asked for a grace that cannot be read did not ask for none.
        return _LONGEST_GRACE


def _observed(object_: Mapping[str, Any], metadata: Mapping[str, Any]) -> bool:
    status = object_.get("status")
    seen = status.get("observedGeneration") if isinstance(status, dict) else None
    generation = metadata.get("generation")
    if not isinstance(seen, int) or not isinstance(generation, int):
        return True
    return seen >= generation


def _has_pods(object_: Mapping[str, Any], metadata: Mapping[str, Any]) -> bool:
    """Only a workload that was scaled to nothing, and whose controller has done that, has none."""
    spec, status = object_.get("spec"), object_.get("status")
    return not (
        isinstance(spec, dict)
        and spec.get("replicas") == 0
        and isinstance(status, dict)
        and status.get("observedGeneration") == metadata.get("generation")
        and not status.get("replicas")
        and not status.get("terminatingReplicas")
    )


def _conditions(
    object_: Mapping[str, Any], metadata: Mapping[str, Any]
) -> tuple[ChildCondition, ...]:
    status = object_.get("status")
    entries = status.get("conditions") if isinstance(status, dict) else None
    if not isinstance(entries, list):
        return ()
    generation = metadata.get("generation")
    return tuple(
        ChildCondition(
            type=sys.intern(str(one.get("type"))),
            status=sys.intern(str(one.get("status"))),
            said=one_line(
                ": ".join(str(one[part]) for part in ("reason", "message") if one.get(part)),
                _LONGEST_MESSAGE,
            ),
            current=one.get("observedGeneration") in (None, generation),
        )
        for one in entries[:_MOST_CONDITIONS]
        if isinstance(one, dict)
    )
