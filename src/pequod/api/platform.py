"""The platform family: one kind for every platform type, and the stored graph behind it."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from pequod.api.graph import (
    Adopt,
    DeletionPolicy,
    GraphMetadata,
    Inventory,
    Nodes,
    NodeStatuses,
    Text,
    Violations,
)
from pequod.api.meta import (
    NAME_PATTERN,
    Declared,
    LocalReference,
    Name,
    ObjectReference,
    Period,
    Resource,
    Spec,
    Status,
    Timestamp,
    column,
    crd,
)
from pequod.api.rollout import Step
from pequod.api.schema import ATOMIC_LIST, ATOMIC_MAP, FreeForm, Rule, check, list_map

API_VERSION = "platform.pequod.io/v1alpha1"

ACKNOWLEDGE_PRUNE = "pequod.io/acknowledge-prune"
"""Annotation of a graph, or of its source: the revision whose deletions somebody has agreed to."""

ModulePath = Annotated[
    str,
    msgspec.Meta(max_length=1024),
    check(
        Rule(
            rule="!self.startsWith('/') && !self.split('/').exists(part, part == '..')",
            message="must be a relative path inside the module, without '..'",
        )
    ),
]


class CueReference(Declared, frozen=True):
    """Where a CUE module comes from."""

    rules = (
        Rule(
            rule=f"self.type != 'configmap' || self.ref.matches('{NAME_PATTERN}')",
            message="ref of type configmap is the name of a ConfigMap in the same namespace",
            field_path=".ref",
        ),
        Rule(
            rule="self.type != 'embedded' || self.ref.matches('^[a-z][a-z0-9-]{0,62}$')",
            message="ref of type embedded is the name of a shipped module, for example webservice",
            field_path=".ref",
        ),
        Rule(
            rule="self.type != 'oci'"
            " || self.ref.matches('^(oci://)?[a-zA-Z0-9][a-zA-Z0-9.-]*(:[0-9]+)?(/[a-z0-9._-]+)+"
            "(:[A-Za-z0-9_][A-Za-z0-9._-]*)?(@sha256:[0-9a-f]{64})?$')",
            message="ref of type oci looks like registry.example.com/path/module:v1 or …@sha256:…",
            field_path=".ref",
        ),
        Rule(
            rule="self.type != 'git'"
            " || self.ref.matches('^(https?|ssh)://([^ /@-][^ /@]*@)?[^ /@-][^ @]*$')"
            " || self.ref.matches('^[a-z0-9_][a-zA-Z0-9._-]*@[^ :/-][^ :/]*:[^ ]+$')",
            message="ref of type git is an https, http or ssh URL, or user@host:path",
            field_path=".ref",
        ),
        Rule(
            rule="self.type != 'git' || !self.ref.matches('^(https?://[^/?#]*|ssh://[^/@]*:[^/]*)@')",
            message="ref must not carry credentials: put them into a Secret named by pullSecretRef",
            field_path=".ref",
        ),
        Rule(
            rule="!has(self.pullSecretRef) || self.type in ['oci', 'git']",
            message="pullSecretRef belongs to the types oci and git only",
            field_path=".pullSecretRef",
        ),
        Rule(
            rule="!has(self.path) || self.type != 'inline'",
            message="path does not belong to type inline, which is a single text",
            field_path=".path",
        ),
    )

    type: Literal["oci", "git", "configmap", "inline", "embedded"]
    """Where the module is kept."""

    ref: Annotated[str, msgspec.Meta(min_length=1, max_length=262144)]
    """By type: an OCI reference, a git URL with `?ref=…&path=…`, the name of a ConfigMap, the CUE
    text itself, or the name of a shipped module."""

    path: ModulePath | None = None
    """Path of the package inside the module."""

    pull_secret_ref: LocalReference | None = None
    """Secret with a dockerconfigjson, username and password, a bearer token, or an SSH key with its
    known_hosts."""


class PolicyOverride(Declared, frozen=True):
    """How one overridable policy of the platform applies here."""

    name: Annotated[str, msgspec.Meta(min_length=1, max_length=253)]
    """Name of the policy; only those that the platform marks overridable."""

    action: Literal["Enforce", "Warn", "Ignore"] = "Enforce"
    """Whether a violation blocks, is reported, or is dropped."""

    parameters: FreeForm | None = None
    """Values for the parameters that the policy declares."""


class Rollout(Declared, frozen=True):
    """How a new revision replaces the one before it."""

    rules = (
        Rule(
            rule="self.strategy == 'Canary' || !has(self.steps) || size(self.steps) == 0",
            message="steps belong to strategy Canary only",
            field_path=".steps",
        ),
        Rule(
            rule="self.strategy != 'Canary' || (has(self.steps) && size(self.steps) > 0)",
            message="strategy Canary needs at least one step",
            field_path=".steps",
        ),
    )

    strategy: Literal["AllAtOnce", "Canary"] = "AllAtOnce"
    """Replace everything at once, or in steps."""

    steps: Annotated[tuple[Step, ...], ATOMIC_LIST, msgspec.Meta(max_length=32)] = ()
    """The steps of a canary, in order."""

    deadline: Period = "10m"
    """How long a new revision may take to become Ready."""

    auto_rollback: bool = False
    """Return to the last Ready revision when the deadline passes."""


class TransformSpec(Spec, frozen=True):
    """The module to render, its input, and how the result is run."""

    cue_ref: CueReference
    """The CUE module that turns the input into objects."""

    input: FreeForm
    """What the module is asked for; the module's `#Input` validates it."""

    policies: Annotated[
        tuple[PolicyOverride, ...], list_map("name"), msgspec.Meta(max_length=64)
    ] = ()
    """Overrides of the platform's policies."""

    adopt: Adopt | None = None
    """Objects that exist already and are to be managed from now on."""

    deletion_policy: DeletionPolicy = "Delete"
    """Whether the applied objects are deleted with the Transform or left behind."""

    rollback_to: Annotated[int, msgspec.Meta(ge=1)] | None = None
    """Return to this revision, and stay there until the field is removed."""

    rollout: Rollout | None = None
    """How a new revision replaces the one before it."""

    service_account_name: Name | None = None
    """The account in whose name everything is read and written; it must exist."""

    cluster_ref: LocalReference | None = None
    """The Cluster that the objects are applied to; the operator's own when absent."""

    interval: Period = "10m"
    """How often a reference that can move (a branch, a tag) is resolved again."""

    suspend: bool = False
    """Leave everything as it is until this is taken back."""

    dry_run: bool = False
    """Render, check and plan; apply nothing."""


class ResolvedCueReference(Declared, frozen=True):
    """The exact content that a reference stood for."""

    digest: Annotated[str, msgspec.Meta(max_length=128)]
    """Digest of the module's content."""

    fetched_at: Timestamp
    """When that content was fetched."""


class Revision(Declared, frozen=True):
    """One rendered graph that can be returned to."""

    revision: Annotated[int, msgspec.Meta(ge=1)]
    """Number of the revision; it only grows."""

    render_hash: Annotated[str, msgspec.Meta(max_length=128)]
    """Digest of the rendered graph."""

    created_at: Timestamp
    """When it was rendered."""

    digest: Annotated[str, msgspec.Meta(max_length=128)] | None = None
    """Digest of the module that it was rendered from."""

    ready: bool = False
    """Whether it was Ready once."""

    failed: bool = False
    """Whether it was given up because it did not become Ready in time."""


class PlannedChange(Declared, frozen=True):
    """What would happen to one object."""

    action: Literal["Create", "Update", "Delete", "Adopt", "Recreate"]
    """The change."""

    object: ObjectReference
    """The object that it happens to."""

    message: Text | None = None
    """What changes, or why."""


class Plan(Declared, frozen=True):
    """What an execution would do; nothing of it has been done."""

    render_hash: Annotated[str, msgspec.Meta(max_length=128)]
    """Digest of the graph that was planned."""

    planned_at: Timestamp
    """When the plan was made."""

    changes: Annotated[tuple[PlannedChange, ...], ATOMIC_LIST, msgspec.Meta(max_length=1000)] = ()
    """The changes, in the order they would be made."""


class TransformStatus(Status):
    """How far the Transform has come."""

    phase: Literal["Pending", "Fetching", "Rendering", "Executing", "Ready", "Failed"] = "Pending"
    """Where the Transform stands, in one word."""

    resource_graph_ref: ObjectReference | None = None
    """The ResourceGraph that holds what was rendered."""

    resolved_cue_ref: ResolvedCueReference | None = None
    """What the module reference stood for when it was last resolved."""

    violations: Violations = ()
    """What policies and the module found."""

    revisions: Annotated[tuple[Revision, ...], ATOMIC_LIST, msgspec.Meta(max_length=10)] = ()
    """The revisions that `rollbackTo` can return to, newest first."""

    plan: Annotated[Plan, ATOMIC_MAP] | None = None
    """What an execution would do, while `dryRun` is set."""


@crd(
    API_VERSION,
    plural="transforms",
    short=("tf",),
    columns=(
        column("Phase", ".status.phase"),
        column("Module", ".spec.cueRef.type", wide=True),
        column("Suspended", ".spec.suspend", type="boolean", wide=True),
    ),
    conditions=("Fetched", "Validated", "Rendered", "Executed"),
)
class Transform(Resource[TransformSpec, TransformStatus]):
    """A platform type in use: a CUE module, its input, and the objects that come of it."""


SourceReference = Annotated[
    ObjectReference,
    check(
        Rule(
            rule="self.apiVersion.split('/')[0] == oldSelf.apiVersion.split('/')[0]"
            " && self.kind == oldSelf.kind && self.name == oldSelf.name"
            " && has(self.__namespace__) == has(oldSelf.__namespace__)"
            " && (!has(self.__namespace__) || self.__namespace__ == oldSelf.__namespace__)",
            message="cannot point to another object: make another graph",
        )
    ),
]
"""The source of a graph. Its UID may change: a restored backup gives every object a new one."""


class ResourceGraphSpec(Spec, frozen=True):
    """What is to exist, in which order, and in whose name."""

    rules = (
        Rule(
            rule="has(self.sourceRef) || !has(oldSelf.sourceRef)",
            message="sourceRef cannot be removed: delete the graph instead",
            field_path=".sourceRef",
        ),
        Rule(
            rule="has(self.clusterRef) == has(oldSelf.clusterRef)"
            " && (!has(self.clusterRef) || self.clusterRef == oldSelf.clusterRef)",
            message="clusterRef is immutable: the inventory belongs to the cluster it was made in",
            field_path=".clusterRef",
        ),
        Rule(
            rule="self.allowEmpty || size(self.nodes) > 0",
            message="nodes is empty, which would delete everything: set allowEmpty if it is meant",
            field_path=".nodes",
        ),
    )

    nodes: Nodes
    """The objects, each with its place in the order."""

    source_ref: SourceReference | None = None
    """The object that the graph was made for; absent on a graph made by hand."""

    metadata: GraphMetadata = GraphMetadata()
    """Where the graph comes from."""

    violations: Violations = ()
    """What policies and the module found and let pass."""

    adopt: Adopt | None = None
    """Objects that exist already and are to be managed from now on."""

    deletion_policy: DeletionPolicy = "Delete"
    """Whether the applied objects are deleted with the graph or left behind."""

    allow_empty: bool = False
    """Accept a graph without nodes, which deletes everything that it had applied."""

    service_account_name: Name | None = None
    """The account in whose name everything is read and written; it must exist."""

    cluster_ref: LocalReference | None = None
    """The Cluster that the objects are applied to; the operator's own when absent."""

    suspend: bool = False
    """Leave everything as it is until this is taken back."""


class ResourceGraphStatus(Status):
    """How far the execution has come, and what it has made."""

    phase: Literal["Pending", "Executing", "Ready", "Failed"] = "Pending"
    """Where the graph stands, in one word."""

    node_status: NodeStatuses = {}
    """State of each node, by its id."""

    inventory: Inventory = ()
    """Everything that was intended or applied and not yet removed."""

    cluster: Annotated[str, msgspec.Meta(max_length=64)] | None = None
    """Identity of the cluster that the inventory belongs to; absent for the operator's own."""


@crd(
    API_VERSION,
    plural="resourcegraphs",
    short=("rg",),
    columns=(
        column("Phase", ".status.phase"),
        column("Source", ".spec.sourceRef.name", wide=True),
        column("Suspended", ".spec.suspend", type="boolean", wide=True),
    ),
    conditions=("Adopted", "Applied", "Healthy", "Pruned"),
)
class ResourceGraph(Resource[ResourceGraphSpec, ResourceGraphStatus]):
    """Rendered intent, stored before the first write, and its execution."""
