"""The rollup family: OP Stack L2 services; the contracts on L1 are deployed elsewhere."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from pequod.api.graph import DeletionPolicy, Text
from pequod.api.meta import (
    Declared,
    Name,
    Observed,
    Period,
    Resource,
    SecretKeyReference,
    Spec,
    Status,
    Timestamp,
    column,
    crd,
)
from pequod.api.schema import ATOMIC_LIST, Immutable, Quantity, Rule, one_of

API_VERSION = "rollup.oplabs.io/v1alpha1"

_REGISTRY = "us-docker.pkg.dev/oplabs-tools-artifacts/images"
GETH_IMAGE = f"{_REGISTRY}/op-geth:v1.101702.2"
NODE_IMAGE = f"{_REGISTRY}/nexus/op-node:v1.19.4"
BATCHER_IMAGE = f"{_REGISTRY}/nexus/op-batcher:v1.16.12"
PROPOSER_IMAGE = f"{_REGISTRY}/op-proposer:v1.10.2"

ContractAddress = Annotated[
    str, msgspec.Meta(pattern=r"^0x[0-9a-fA-F]{40}$", min_length=42, max_length=42)
]
"""An address on L1 with its checksum (EIP-55); the controller checks that."""

ChainId = Annotated[int, msgspec.Meta(ge=1, le=4_503_599_627_370_476)]
"""A chain id; larger ones break wallets (EIP-2294)."""

Url = Annotated[
    str, msgspec.Meta(pattern=r"^https?://[^\s/?#@]+([/?#][^\s]*)?$", min_length=8, max_length=2048)
]
"""Where something is served. What carries a key or a password belongs into a Secret."""

Image = Annotated[
    str, msgspec.Meta(pattern=r"^[a-zA-Z0-9][a-zA-Z0-9._/:@-]*$", min_length=1, max_length=1024)
]
Arguments = Annotated[
    tuple[Annotated[str, msgspec.Meta(pattern=r"^--?[a-zA-Z]", max_length=1024)], ...],
    ATOMIC_LIST,
    msgspec.Meta(max_length=64),
]
Ether = Annotated[str, msgspec.Meta(max_length=64)]


class L1ContractAddresses(Declared, frozen=True):
    """Contracts and accounts on L1, each with its checksum."""

    optimism_portal: ContractAddress | None = None
    """OptimismPortal: deposits and withdrawals."""

    system_config: ContractAddress | None = None
    """SystemConfig: compared with `l1_system_config_address` of the rollup configuration."""

    l2_output_oracle: ContractAddress | None = None
    """L2OutputOracle: where the proposer of a chain without fault proofs submits to."""

    dispute_game_factory: ContractAddress | None = None
    """DisputeGameFactory: where the proposer of a chain with fault proofs submits to."""

    l1_standard_bridge: ContractAddress | None = None
    """L1StandardBridge."""

    l1_cross_domain_messenger: ContractAddress | None = None
    """L1CrossDomainMessenger."""

    address_manager: ContractAddress | None = None
    """AddressManager."""

    batcher: ContractAddress | None = None
    """The account that batches are accepted from; without it, the one of the rollup
    configuration. To be set when SystemConfig names another batcher than at genesis."""

    proposer: ContractAddress | None = None
    """The account that proposals are accepted from."""


class L1(Declared, frozen=True):
    """The chain that the rollup settles on."""

    rules = (one_of("rpcUrl", "rpcUrlSecretRef", what="l1"),)

    chain_id: ChainId
    """Chain id of L1: 1 for mainnet, 11155111 for Sepolia."""

    rpc_url: Url | None = None
    """JSON-RPC endpoint of L1."""

    rpc_url_secret_ref: SecretKeyReference | None = None
    """Secret key with the JSON-RPC endpoint of L1, for a URL that carries a key."""

    beacon_url: Url | None = None
    """Beacon API of L1, needed to read blobs; op-node ignores the beacon without it."""

    chain_config_secret: Name | None = None
    """Secret with the chain configuration of L1 (key `chain.json`), for one that op-node does not
    know."""

    contract_addresses: L1ContractAddresses = L1ContractAddresses()
    """Contracts and accounts on L1."""


class L2(Declared, frozen=True):
    """The rollup itself."""

    chain_id: Immutable[ChainId]
    """Chain id of the rollup."""

    genesis_config_secret: Name
    """Secret with `genesis.json`, or with `genesis.json.gz` when that is too large for a Secret."""

    rollup_config_secret: Name
    """Secret with `rollup.json`."""

    network_name: Annotated[str, msgspec.Meta(max_length=63)] | None = None
    """What people call the rollup."""

    jwt_secret: Name | None = None
    """Secret with `jwt`, 32 bytes in hexadecimal digits, for the engine API. One is made, once,
    when none is named."""


class Resources(Declared, frozen=True):
    """What a container asks for, and what it may use at most."""

    requests: Annotated[dict[str, Quantity], msgspec.Meta(max_length=16)] = {}
    """What is set aside for the container."""

    limits: Annotated[dict[str, Quantity], msgspec.Meta(max_length=16)] = {}
    """What the container may use at most."""


class Storage(Declared, frozen=True):
    """The volume of the chain's data."""

    size: Annotated[
        str, msgspec.Meta(pattern=r"^[0-9]+(\.[0-9]+)?(Ki|Mi|Gi|Ti|Pi|k|M|G|T|P)?$", max_length=32)
    ] = "100Gi"
    """How large the volume is; it can grow where the storage class allows it."""

    storage_class: Name | None = None
    """Storage class of the volume; the cluster's default when absent."""


class Geth(Declared, frozen=True):
    """op-geth: executes blocks, keeps the state, serves users."""

    enabled: bool = True
    """Whether it runs."""

    image: Image = GETH_IMAGE
    """The image it runs from."""

    resources: Resources = Resources()
    """What it asks for, and what it may use at most."""

    storage: Storage = Storage()
    """The volume of its data."""

    extra_args: Arguments = ()
    """Arguments after those that are always there."""

    metrics_enabled: bool = False
    """Serve metrics on port 6060."""


class Node(Declared, frozen=True):
    """op-node: derives the chain from L1, and makes its blocks."""

    enabled: bool = True
    """Whether it runs."""

    image: Image = NODE_IMAGE
    """The image it runs from."""

    resources: Resources = Resources()
    """What it asks for, and what it may use at most."""

    extra_args: Arguments = ()
    """Arguments after those that are always there."""

    metrics_enabled: bool = False
    """Serve metrics on port 7300."""


def _key_rule(component: str) -> Rule:
    return Rule(
        rule="!self.enabled || has(self.signerPrivateKeySecret)",
        message=f"the {component} needs signerPrivateKeySecret, a Secret with its key in `key`; or "
        "set enabled to false",
        field_path=".signerPrivateKeySecret",
    )


class Batcher(Declared, frozen=True):
    """op-batcher: writes the chain's transactions to L1."""

    rules = (_key_rule("batcher"),)

    enabled: bool = True
    """Whether it runs."""

    image: Image = BATCHER_IMAGE
    """The image it runs from."""

    signer_private_key_secret: Name | None = None
    """Secret with the private key (key `key`) of the account that pays for batches."""

    resources: Resources = Resources()
    """What it asks for, and what it may use at most."""

    extra_args: Arguments = ()
    """Arguments after those that are always there."""

    metrics_enabled: bool = False
    """Serve metrics on port 7300."""


class Proposer(Declared, frozen=True):
    """op-proposer: writes the chain's state to L1, so that withdrawals can be proved."""

    rules = (_key_rule("proposer"),)

    enabled: bool = True
    """Whether it runs."""

    image: Image = PROPOSER_IMAGE
    """The image it runs from."""

    signer_private_key_secret: Name | None = None
    """Secret with the private key (key `key`) of the account that pays for proposals."""

    resources: Resources = Resources()
    """What it asks for, and what it may use at most."""

    extra_args: Arguments = ()
    """Arguments after those that are always there."""

    metrics_enabled: bool = False
    """Serve metrics on port 7300."""


class Components(Declared, frozen=True):
    """The programs of the chain."""

    batcher: Batcher
    """op-batcher: writes the chain's transactions to L1."""

    proposer: Proposer
    """op-proposer: writes the chain's state to L1."""

    geth: Geth = Geth()
    """op-geth: executes blocks, keeps the state, serves users."""

    node: Node = Node()
    """op-node: derives the chain from L1, and makes its blocks."""


class Health(Declared, frozen=True):
    """When a chain that runs counts as troubled."""

    stall_window: Period = "10m"
    """How long the safe head may stand still while the unsafe head moves."""

    funds_hours: Annotated[int, msgspec.Meta(ge=1, le=8760)] = 24
    """For how many hours a signer's balance must last."""


class OPChainSpec(Spec, frozen=True):
    """A rollup, the chain that it settles on, and how its programs run."""

    rules = (
        Rule(
            rule="!self.components.proposer.enabled"
            " || has(self.l1.contractAddresses.l2OutputOracle)"
            " != has(self.l1.contractAddresses.disputeGameFactory)",
            message="the proposer needs one of l1.contractAddresses.l2OutputOracle and "
            "disputeGameFactory; or set components.proposer.enabled to false",
            field_path=".l1.contractAddresses",
        ),
    )

    l1: L1
    """The chain that the rollup settles on."""

    l2: L2
    """The rollup itself."""

    components: Components
    """The programs of the chain."""

    health: Health = Health()
    """When a chain that runs counts as troubled."""

    deletion_policy: DeletionPolicy = "Delete"
    """Whether the volume of the chain's data is deleted with the OPChain, or left behind."""

    suspend: bool = False
    """Leave everything as it is until this is taken back."""


class GethStatus(Observed):
    """What is known of op-geth."""

    ready: bool = False
    """Whether it serves."""

    sync_height: Annotated[int, msgspec.Meta(ge=0)] | None = None
    """Number of its newest block."""

    message: Text | None = None
    """What is wrong with it, or what it does."""


class NodeStatus(Observed):
    """What is known of op-node."""

    ready: bool = False
    """Whether it serves, and makes progress."""

    safe_height: Annotated[int, msgspec.Meta(ge=0)] | None = None
    """Newest block that L1 has all data of."""

    unsafe_height: Annotated[int, msgspec.Meta(ge=0)] | None = None
    """Newest block of the sequencer."""

    finalized_height: Annotated[int, msgspec.Meta(ge=0)] | None = None
    """Newest block that only L1 itself could take back."""

    message: Text | None = None
    """What is wrong with it, or what it does."""


class BatcherStatus(Observed):
    """What is known of op-batcher."""

    ready: bool = False
    """Whether it serves, and the safe head moves."""

    last_batch_submission: Timestamp | None = None
    """When its account was last seen to have sent a transaction."""

    balance: Ether | None = None
    """What its account holds on L1, in ether."""

    message: Text | None = None
    """What is wrong with it, or what it does."""


class ProposerStatus(Observed):
    """What is known of op-proposer."""

    ready: bool = False
    """Whether it serves."""

    last_proposal: Timestamp | None = None
    """When its account was last seen to have sent a transaction."""

    balance: Ether | None = None
    """What its account holds on L1, in ether."""

    message: Text | None = None
    """What is wrong with it, or what it does."""


class ComponentStatus(Observed):
    """What is known of each program."""

    geth: GethStatus | None = None
    """op-geth; absent while it is not enabled."""

    node: NodeStatus | None = None
    """op-node; absent while it is not enabled."""

    batcher: BatcherStatus | None = None
    """op-batcher; absent while it is not enabled."""

    proposer: ProposerStatus | None = None
    """op-proposer; absent while it is not enabled."""


Phase = Literal["Pending", "ConfigLoading", "Deploying", "Running", "Upgrading", "Error"]


class OPChainStatus(Status):
    """How the chain is doing."""

    phase: Phase = "Pending"
    """Where the chain stands, in one word; `Running` only while it makes blocks."""

    l1_contract_addresses: L1ContractAddresses | None = None
    """The contracts and accounts on L1 that the programs were told of."""

    component_status: ComponentStatus = msgspec.field(default_factory=ComponentStatus)
    """What is known of each program."""


@crd(
    API_VERSION,
    plural="opchains",
    columns=(
        column("Phase", ".status.phase"),
        column("ChainID", ".spec.l2.chainId", type="integer"),
        column("Unsafe", ".status.componentStatus.node.unsafeHeight", type="integer", wide=True),
        column("Safe", ".status.componentStatus.node.safeHeight", type="integer", wide=True),
    ),
    conditions=(
        "ConfigurationValid",
        "GethReady",
        "NodeReady",
        "BatcherReady",
        "ProposerReady",
        "L2ServicesReady",
    ),
)
class OPChain(Resource[OPChainSpec, OPChainStatus]):
    """An OP Stack rollup: its services, run from configuration Secrets."""
