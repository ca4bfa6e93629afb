"""The graph: what a renderer yields, a policy judges, a ResourceGraph stores and the engine runs.

These values are shared by layers that never see a family's kinds.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from pequod.api.meta import (
    Declared,
    LabelSelector,
    Name,
    ObjectName,
    Observed,
    Period,
    SecretKeyReference,
    Timestamp,
)
from pequod.api.schema import ATOMIC_LIST, ATOMIC_MAP, SET_LIST, FreeForm, Rule

MAX_NODES = 1000
"""The most nodes that one graph may hold."""

NodeId = Annotated[
    str, msgspec.Meta(pattern=r"^[A-Za-z_][A-Za-z0-9_-]*$", min_length=1, max_length=63)
]
"""Names a node inside its graph."""

DeletionPolicy = Literal["Delete", "Orphan"]
"""What becomes of applied objects when what asked for them is gone."""

Text = Annotated[str, msgspec.Meta(max_length=4096)]
"""A sentence or two; longer ones are cut before they are written."""


class Violation(Declared, frozen=True):
    """One finding of a policy or of a module."""

    path: Text
    """Where in the input or in the rendered objects, for example `input.replicas`."""

    message: Text
    """What is wrong and what to do about it."""

    severity: Literal["Error", "Warning", "Info"] = "Error"
    """`Error` blocks; `Warning` and `Info` are reported."""


class AdoptedResource(Declared, frozen=True):
    """One object that exists already and is to join the graph."""

    api_version: Annotated[str, msgspec.Meta(min_length=1, max_length=317)]
    """Group and version of the object, for example `apps/v1`."""

    kind: Annotated[str, msgspec.Meta(min_length=1, max_length=63)]
    """Kind of the object."""

    name: ObjectName
    """Name of the object."""

    namespace: Name | None = None
    """Namespace of the object; that of the adopting object when absent."""

    node_id: NodeId | None = None
    """The node that the object becomes; found by kind and name when absent."""


class Adopt(Declared, frozen=True):
    """Which objects that exist already join the graph, and on what terms."""

    rules = (
        Rule(
            rule="self.mode != 'Explicit' || (has(self.resources) && size(self.resources) > 0)",
            message="mode Explicit needs resources: name at least one object to adopt",
            field_path=".resources",
        ),
        Rule(
            rule="self.mode != 'LabelSelector' || has(self.labelSelector)",
            message="mode LabelSelector needs labelSelector: say which objects to adopt",
            field_path=".labelSelector",
        ),
        Rule(
            rule="!(has(self.resources) && size(self.resources) > 0 && has(self.labelSelector))",
            message="set resources (mode Explicit) or labelSelector (mode LabelSelector), not both",
        ),
        Rule(
            rule="!has(self.labelSelector)"
            " || (has(self.labelSelector.matchLabels) && size(self.labelSelector.matchLabels) > 0)"
            " || (has(self.labelSelector.matchExpressions)"
            " && size(self.labelSelector.matchExpressions) > 0)",
            message="an empty labelSelector would adopt everything: name at least one label",
            field_path=".labelSelector",
        ),
    )

    mode: Literal["Explicit", "LabelSelector"] = "Explicit"
    """How objects are chosen: listed in `resources`, or matched by `labelSelector`."""

    strategy: Literal["TakeOwnership", "Mirror"] = "TakeOwnership"
    """`TakeOwnership` manages the objects from then on; `Mirror` only reports how they differ."""

    resources: Annotated[
        tuple[AdoptedResource, ...], ATOMIC_LIST, msgspec.Meta(max_length=MAX_NODES)
    ] = ()
    """The objects to adopt in mode `Explicit`."""

    label_selector: LabelSelector | None = None
    """The objects to adopt in mode `LabelSelector`; those that are no node are reported only."""

    dry_run: bool = False
    """Report what would be adopted and change nothing."""


class ApplyPolicy(Declared, frozen=True):
    """How one object is written, defended and removed."""

    mode: Literal["Apply", "Create", "Adopt", "Observe"] = "Apply"
    """`Apply` keeps the object in step; `Create` makes it once and leaves it alone; `Adopt` takes
    an existing object over; `Observe` only reads it, as a dependency that others provide."""

    conflict_policy: Literal["Error", "Force"] = "Error"
    """What to do about a field that another manager owns: stop and name both, or take it."""

    deletion_policy: DeletionPolicy | None = None
    """`Delete` or `Orphan` for this object; that of the graph when absent."""

    recreate: Literal["Never", "OnImmutable"] = "Never"
    """Whether the object may be deleted and made again when an immutable field must change."""


class ReadyWhen(Declared, frozen=True):
    """One predicate that must hold before the dependents of a node may start."""

    rules = (
        Rule(
            rule="(self.type == 'ConditionMatch') == has(self.conditionType)",
            message="conditionType belongs to type ConditionMatch, which needs it",
            field_path=".conditionType",
        ),
        Rule(
            rule="!has(self.conditionStatus) || self.type == 'ConditionMatch'",
            message="conditionStatus belongs to type ConditionMatch only",
            field_path=".conditionStatus",
        ),
        Rule(
            rule="(self.type == 'CEL') == has(self.expression)",
            message="expression belongs to type CEL, which needs it",
            field_path=".expression",
        ),
        Rule(
            rule="(self.type == 'HTTP') == has(self.url)",
            message="url belongs to type HTTP, which needs it",
            field_path=".url",
        ),
        Rule(
            rule="!has(self.expectStatus) || self.type == 'HTTP'",
            message="expectStatus belongs to type HTTP only",
            field_path=".expectStatus",
        ),
    )

    type: Literal[
        "Current",
        "ConditionMatch",
        "DeploymentAvailable",
        "Exists",
        "JobComplete",
        "CEL",
        "HTTP",
    ] = "Current"
    """The kind of predicate. `Current` asks what `kstatus` would."""

    condition_type: Annotated[str, msgspec.Meta(min_length=1, max_length=316)] | None = None
    """`ConditionMatch`: the condition to look at."""

    condition_status: Literal["True", "False", "Unknown"] | None = None
    """`ConditionMatch`: the status that it must have; `True` when absent."""

    expression: Annotated[str, msgspec.Meta(min_length=1, max_length=4096)] | None = None
    """`CEL`: an expression over the live object `self` that yields true when it is ready."""

    url: Annotated[str, msgspec.Meta(pattern=r"^https?://[^\s]+$", max_length=2048)] | None = None
    """`HTTP`: the address to ask."""

    expect_status: Annotated[int, msgspec.Meta(ge=100, le=599)] | None = None
    """`HTTP`: the status code of a ready answer; 200 when absent."""

    timeout: Period = "10m"
    """How long the predicate may take before the node counts as failed."""


class SensitivePart(Declared, frozen=True):
    """Where the part of an object is kept that must not be readable in the graph."""

    secret_ref: SecretKeyReference
    """The Secret and its key: a JSON object that is merged over `object` when it is applied."""


class Node(Declared, frozen=True):
    """One object of a graph, and its place in it."""

    id: NodeId
    """Name of the node; unique in its graph, and what `dependsOn` and `${nodes.<id>…}` refer to."""

    object: Annotated[
        FreeForm,
        msgspec.Meta(
            extra_json_schema={
                "required": ["apiVersion", "kind", "metadata"],
                "properties": {
                    "apiVersion": {
                        "type": "string",
                        "minLength": 1,
                        "description": "Group and version of the object.",
                    },
                    "kind": {
                        "type": "string",
                        "minLength": 1,
                        "description": "Kind of the object.",
                    },
                    "metadata": {
                        "type": "object",
                        "description": "Metadata of the object; it needs a name.",
                        "required": ["name"],
                        "properties": {
                            "name": {
                                "type": "string",
                                "minLength": 1,
                                "description": "Name of the object.",
                            }
                        },
                        "x-kubernetes-preserve-unknown-fields": True,
                    },
                },
            }
        ),
    ]
    """The object as it is applied. A string in it may hold `${nodes.<id>.status.field}`."""

    object_from: SensitivePart | None = None
    """The sensitive part of the object, kept in a Secret."""

    apply_policy: ApplyPolicy = ApplyPolicy()
    """How the object is written, defended and removed."""

    depends_on: Annotated[tuple[NodeId, ...], SET_LIST, msgspec.Meta(max_length=MAX_NODES)] = ()
    """Nodes that must be ready before this one is applied, besides those that it mentions in
    `${nodes.<id>…}`."""

    ready_when: Annotated[tuple[ReadyWhen, ...], ATOMIC_LIST, msgspec.Meta(max_length=16)] = ()
    """Predicates that must all hold for the node to be ready; `Current` when empty."""


class GraphMetadata(Declared, frozen=True):
    """Where a graph comes from."""

    name: Annotated[str, msgspec.Meta(max_length=253)] | None = None
    """What the module calls the graph."""

    version: Annotated[str, msgspec.Meta(max_length=253)] | None = None
    """Version of the module that rendered it."""

    platform_ref: Annotated[str, msgspec.Meta(max_length=2048)] | None = None
    """The module that rendered it, with its digest."""

    render_hash: Annotated[str, msgspec.Meta(max_length=128)] | None = None
    """Digest of the rendered graph: equal hashes are equal graphs."""

    rendered_at: Timestamp | None = None
    """When it was rendered, returned to, or resumed."""


class Graph(Declared, frozen=True):
    """What a module renders to, before anybody has judged or stored it."""

    nodes: tuple[Node, ...]
    """The objects, and how they depend on each other."""

    metadata: GraphMetadata = GraphMetadata()
    """What the graph says about itself."""


class NodeDigests(Declared, frozen=True):
    """What lets a later pass know, without a request, that nothing has changed."""

    desired: Annotated[str, msgspec.Meta(max_length=128)] | None = None
    """Keyed digest of what was asked for."""

    owned: Annotated[str, msgspec.Meta(max_length=128)] | None = None
    """Keyed digest of our own fields as the API server answered them."""


class NodeStatus(Observed):
    """How far one node has come."""

    phase: Literal["Pending", "Applied", "Ready", "Error", "Adopted"] = "Pending"
    """Where the node stands."""

    last_error: Text | None = None
    """Why the node failed, and what to do next."""

    ready_details: Text | None = None
    """What the node is waiting for, or how a mirrored object differs."""

    digests: NodeDigests | None = None
    """Digests of the last apply."""

    previous_managers: Annotated[
        tuple[Annotated[str, msgspec.Meta(max_length=128)], ...],
        ATOMIC_LIST,
        msgspec.Meta(max_length=16),
    ] = ()
    """Field managers that an adopted object had before."""

    last_transition_time: Timestamp | None = None
    """When the phase last changed."""


class InventoryEntry(Declared, frozen=True):
    """One object that was intended or applied: the only licence to delete it later."""

    id: Annotated[str, msgspec.Meta(max_length=700)]
    """`<namespace>_<name>_<group>_<kind>`."""

    version: Annotated[str, msgspec.Meta(max_length=63)]
    """API version that the object was applied with."""

    node: NodeId | None = None
    """The node that asked for it."""

    uid: Annotated[str, msgspec.Meta(max_length=64)] | None = None
    """UID of the object; absent until it was applied."""

    level: Annotated[int, msgspec.Meta(ge=0)] | None = None
    """How many nodes stand before it, one after the other: what is deeper is deleted earlier."""

    deletion_policy: DeletionPolicy | None = None
    """What its node asked for; that of the graph when absent."""


Nodes = Annotated[tuple[Node, ...], ATOMIC_LIST, msgspec.Meta(max_length=MAX_NODES)]
NodeStatuses = Annotated[dict[str, NodeStatus], ATOMIC_MAP]
Inventory = Annotated[tuple[InventoryEntry, ...], ATOMIC_LIST]
Violations = Annotated[tuple[Violation, ...], ATOMIC_LIST, msgspec.Meta(max_length=256)]
