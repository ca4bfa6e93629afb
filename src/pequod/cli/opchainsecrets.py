"""The Secrets of a chain, made from files: checked as the operator does, before they exist. Pure.

Whatever is wrong names the user's own files, where the operator would name Secrets.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec
import yaml

from pequod.api.meta import ObjectMeta, SecretKeyReference
from pequod.api.rollup import (
    API_VERSION,
    L1,
    L2,
    Batcher,
    ChainId,
    Components,
    L1ContractAddresses,
    OPChain,
    OPChainSpec,
    OPChainStatus,
    Proposer,
)
from pequod.controllers.rollup.accounts import NotAnAddressError, checksummed
from pequod.controllers.rollup.components.chain import Chain
from pequod.controllers.rollup.components.geth import geth
from pequod.controllers.rollup.components.node import node
from pequod.controllers.rollup.configuration import (
    GENESIS,
    JWT,
    KEY,
    KNOWN_L1,
    L1_CHAIN,
    LARGEST_PLAIN,
    PACKED_GENESIS,
    ROLLUP,
    Configuration,
    InvalidConfigurationError,
    Material,
    configuration,
    packed,
)
from pequod.controllers.rollup.findings import Document, File, Findings, document
from pequod.controllers.rollup.origins import require_name
from pequod.graph.model import InvalidGraphError, checked
from pequod.runtime.verdicts import Stalled

Role = Literal["genesis", "rollup", "jwt", "l1_chain", "l1_url", "batcher_key", "proposer_key"]
LARGEST_SECRET = 2**20
"""What the values of a Secret may take."""
TWINS = {GENESIS: PACKED_GENESIS, PACKED_GENESIS: GENESIS}
"""Keys of which a Secret has one: of both, the operator would read one only."""

_URL = "url"
_BEACON = "<beacon API of L1; without this line, batches are calldata>"
_GZIP = b"\x1f\x8b"
_ZERO = f"0x{'0' * 40}"
_UNKNOWN = {"l1": 1, "l2": 2}
"""In place of a chain id that rollup.json does not have, which is a problem of its own."""
_ANY_JWT = b"0" * 64
_TRIMMED: frozenset[Role] = frozenset({"jwt", "l1_url", "batcher_key", "proposer_key"})
_FIELDS: dict[Role, str] = {
    "genesis": "spec.l2.genesisConfigSecret",
    "rollup": "spec.l2.rollupConfigSecret",
    "jwt": "spec.l2.jwtSecret",
    "l1_chain": "spec.l1.chainConfigSecret",
    "l1_url": "spec.l1.rpcUrlSecretRef",
    "batcher_key": "spec.components.batcher.signerPrivateKeySecret",
    "proposer_key": "spec.components.proposer.signerPrivateKeySecret",
}
ROLES: tuple[Role, ...] = tuple(_FIELDS)
"""In the order in which they are told of."""

_CONTRACTS = {
    "optimismPortal": "OptimismPortalProxy",
    "systemConfig": "SystemConfigProxy",
    "l2OutputOracle": "L2OutputOracleProxy",
    "disputeGameFactory": "DisputeGameFactoryProxy",
    "l1StandardBridge": "L1StandardBridgeProxy",
    "l1CrossDomainMessenger": "L1CrossDomainMessengerProxy",
    "addressManager": "AddressManagerImpl",
}
"""What we call a contract, and what `op-deployer inspect l1` does."""


@dataclass(frozen=True, slots=True)
class Read:
    """A file of the user's."""

    path: str
    content: bytes = field(repr=False)


Files = Mapping[Role, Read]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """The chain that Secrets are made for."""

    chain: OPChain
    path: str = ""
    """Where its manifest is; empty when it has none."""
    places: Mapping[str, str] = field(default_factory=dict)
    """What the operator calls a place, and how the user finds it."""
    unknown: frozenset[str] = frozenset()
    """Places that stand for nothing: whatever differs from them is no problem."""
    problems: tuple[str, ...] = ()
    """What was wrong with what it was made from."""

    def secret(self, role: Role) -> tuple[str | None, str]:
        """The Secret that a file goes to, if the chain reads it, and the key in it."""
        spec, name = self.chain.spec, self.chain.metadata.name
        url = spec.l1.rpc_url_secret_ref
        found: dict[Role, tuple[str | None, str]] = {
            "genesis": (spec.l2.genesis_config_secret, GENESIS),
            "rollup": (spec.l2.rollup_config_secret, ROLLUP),
            "jwt": (spec.l2.jwt_secret or f"{name}-jwt", JWT),
            "l1_chain": (spec.l1.chain_config_secret, L1_CHAIN),
            "l1_url": (url.name, url.key) if url else (None, _URL),
            "batcher_key": (spec.components.batcher.signer_private_key_secret, KEY),
            "proposer_key": (spec.components.proposer.signer_private_key_secret, KEY),
        }
        return found[role]


@dataclass(slots=True)
class Made:
    """A Secret that is to be."""

    name: str
    data: dict[str, bytes] = field(default_factory=dict, repr=False)
    notes: list[str] = field(default_factory=list)
    """What it holds, for people."""


def from_manifest(read: Read, name: str) -> Wanted:
    """The chain of a manifest; raises InvalidConfigurationError."""
    try:
        documents = list(yaml.load_all(read.content, Loader=yaml.CSafeLoader))
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise InvalidConfigurationError([f"{read.path}: is not YAML: {error}"]) from error
    known = {_name(one): one for one in documents if _is_chain(one)}
    if name not in known:
        held = f"OPChain {', '.join(known)}, and not {name}" if known else "no OPChain"
        raise InvalidConfigurationError([f"{read.path}: holds {held} ({API_VERSION})"])
    try:
        chain = msgspec.convert({**known[name], "status": {}}, OPChain)
    except msgspec.ValidationError as error:
        raise InvalidConfigurationError([f"{read.path}: {error}"]) from error
    return Wanted(chain=chain, path=read.path)


def from_files(name: str, files: Files, contracts: Read | None) -> Wanted:
    """A chain as the files have it: what they say need not be written anywhere else."""
    rollup, path = _opened(files["rollup"]), files["rollup"].path
    ids = {one: _number(rollup, f".{one}_chain_id") for one in _UNKNOWN}
    places = {f"spec.{one}.chainId": f".{one}_chain_id of {path}" for one in ids}
    places["spec.l1.chainConfigSecret"] = "--l1-chain"
    known, problems = _contracts(contracts) if contracts else ({}, [])
    for ours in known:
        shown = f"{contracts.path}, .{_CONTRACTS[ours]}" if contracts else ""
        places[f"spec.l1.contractAddresses.{ours}"] = shown
    chain = OPChain(
        api_version=API_VERSION,
        kind="OPChain",
        metadata=ObjectMeta(name=name),
        spec=_spec(name, files, ids, msgspec.convert(known, L1ContractAddresses)),
        status=OPChainStatus(),
    )
    unknown = frozenset(f"spec.{one}.chainId" for one, found in ids.items() if found is None)
    return Wanted(chain=chain, places=places, unknown=unknown, problems=tuple(problems))


def _spec(
    name: str, files: Files, ids: Mapping[str, int | None], contracts: L1ContractAddresses
) -> OPChainSpec:
    """Everything that the files are for, and nothing else."""
    url = SecretKeyReference(f"{name}-l1-url", _URL) if "l1_url" in files else None
    batcher, proposer = Batcher(enabled=False), Proposer(enabled=False)
    if "batcher_key" in files:
        batcher = Batcher(signer_private_key_secret=f"{name}-batcher-key")
    if "proposer_key" in files:
        proposer = Proposer(signer_private_key_secret=f"{name}-proposer-key")
    return OPChainSpec(
        l1=L1(
            chain_id=ids["l1"] or _UNKNOWN["l1"],
            rpc_url=None if url else "<JSON-RPC endpoint of L1>",
            rpc_url_secret_ref=url,
            chain_config_secret=f"{name}-l1" if "l1_chain" in files else None,
            contract_addresses=contracts,
        ),
        l2=L2(
            chain_id=ids["l2"] or _UNKNOWN["l2"],
            genesis_config_secret=f"{name}-genesis",
            rollup_config_secret=f"{name}-rollup",
            jwt_secret=f"{name}-jwt" if "jwt" in files else None,
        ),
        components=Components(batcher=batcher, proposer=proposer),
    )


def secrets_of(wanted: Wanted, files: Files) -> list[Made]:
    """The Secrets of a chain; raises InvalidConfigurationError with all that is wrong."""
    known, problems = _configuration(wanted, files)
    problems = [*wanted.problems, *_naming(wanted, files), *problems]
    made: dict[str, Made] = {}
    for role, read in files.items():
        name, key = wanted.secret(role)
        if name is None:
            continue
        key, content = _stored(role, key, read.content)
        secret = made.setdefault(name, Made(name))
        if key in secret.data:
            problems.append(f"{read.path}: another file goes to {key} of Secret {name} as well")
        secret.data[key] = content
        secret.notes.append(_note(role, key, content, known))
        if sum(map(len, secret.data.values())) > LARGEST_SECRET:
            problems.append(f"{read.path}: is too large for a Secret, which holds 1 MiB")
    if problems:
        raise InvalidConfigurationError(problems)
    return [*made.values()]


def awaited(wanted: Wanted, files: Files) -> list[str]:
    """Secrets that the chain reads, and that no file was given for."""
    spec = wanted.chain.spec
    unused: set[Role] = {
        *(("jwt",) if spec.l2.jwt_secret is None else ()),
        *(("batcher_key",) if not spec.components.batcher.enabled else ()),
        *(("proposer_key",) if not spec.components.proposer.enabled else ()),
    }
    names = [wanted.secret(role)[0] for role in ROLES if role not in {*files, *unused}]
    return [name for name in names if name is not None]


def manifest(wanted: Wanted, files: Files) -> dict[str, Any]:
    """An OPChain for the Secrets; what no file says stands in `<>`."""
    made: dict[str, Any] = msgspec.to_builtins(wanted.chain.spec)
    rollup = _opened(files["rollup"])
    found = {
        "optimismPortal": rollup.address(".deposit_contract_address") if rollup else None,
        "systemConfig": rollup.address(".l1_system_config_address") if rollup else None,
        **made["l1"].pop("contractAddresses", {}),
    }
    if wanted.chain.spec.components.proposer.enabled and not _receivers(found):
        found["disputeGameFactory"] = "<DisputeGameFactoryProxy of op-deployer>"
    known = {key: value for key, value in found.items() if value}
    beacon = {"beaconUrl": _BEACON} if wanted.chain.spec.l1.chain_id in KNOWN_L1 else {}
    made["l1"] = made["l1"] | beacon | {"contractAddresses": known}
    metadata = msgspec.to_builtins(wanted.chain.metadata)
    return {"apiVersion": API_VERSION, "kind": "OPChain", "metadata": metadata, "spec": made}


def _configuration(wanted: Wanted, files: Files) -> tuple[Configuration | None, list[str]]:
    """What the operator makes of the files, or what it has against them."""
    kept = {role: _file(wanted, role, read) for role, read in files.items()}
    chain = wanted.chain
    try:
        known = configuration(chain.spec, Material(**_stand_ins(wanted, files), **kept))
    except InvalidConfigurationError as error:
        shown = {str(kept[role]): files[role].path for role in files}
        return None, [
            _shown(one, wanted, shown)
            for one in error.problems
            if not any(place in one for place in wanted.unknown)
        ]
    whole = Chain(chain.metadata.name, chain.metadata.namespace or "", chain.spec, known)
    nodes = [one for one in (*geth(whole), *node(whole)) if one.object["kind"] == "ConfigMap"]
    try:
        checked(nodes)
    except InvalidGraphError as error:
        return known, [f"{files['genesis'].path}: cannot be run: {one}" for one in error.problems]
    return known, []


def _stand_ins(wanted: Wanted, files: Files) -> dict[Role, File]:
    """What is in Secrets that no file was given for: nothing can be said against it."""
    made: dict[Role, File] = {"jwt": File("", JWT, _ANY_JWT)}
    l1 = wanted.chain.spec.l1
    if l1.chain_config_secret is not None:
        text = msgspec.json.encode({"chainId": l1.chain_id, "blobSchedule": {}})
        made["l1_chain"] = File("", L1_CHAIN, text)
    return {role: file for role, file in made.items() if role not in files}


def _file(wanted: Wanted, role: Role, read: Read) -> File:
    name, key = wanted.secret(role)
    if role == "genesis" and read.content.startswith(_GZIP):
        key = PACKED_GENESIS
    return File(name or "", key, read.content)


def _naming(wanted: Wanted, files: Files) -> Iterator[str]:
    """What is wrong before anybody looks into a file."""
    try:
        require_name(wanted.chain)
    except Stalled as problem:
        yield problem.message
    for role, read in files.items():
        if wanted.secret(role)[0] is None:
            yield f"{read.path}: nothing would read it: the OPChain has no {_FIELDS[role]}"
    spec = wanted.chain.spec
    for place, number in (("l1_chain_id", spec.l1.chain_id), ("l2_chain_id", spec.l2.chain_id)):
        try:
            msgspec.convert(number, ChainId)
        except msgspec.ValidationError as error:
            yield f"{files['rollup'].path}, .{place}: is too large: {error}"


def _shown(problem: str, wanted: Wanted, paths: Mapping[str, str]) -> str:
    """A problem in the user's words; paths come last, so that nothing of them is replaced."""
    if wanted.path and problem.startswith("spec."):
        return f"{wanted.path}, {problem}"
    for place, shown in (*wanted.places.items(), *paths.items()):
        problem = problem.replace(place, shown)
    return problem


def _stored(role: Role, key: str, content: bytes) -> tuple[str, bytes]:
    if role in _TRIMMED:
        return key, content.strip()
    if role != "genesis":
        return key, content
    if content.startswith(_GZIP):
        return PACKED_GENESIS, content
    # What the operator keeps packed; kubectl, too, keeps a copy of what it applies, up to 256 KiB.
    if len(content) > LARGEST_PLAIN:
        return PACKED_GENESIS, packed(content)
    return key, content


def _note(role: Role, key: str, content: bytes, known: Configuration | None) -> str:
    signers = {"batcher_key": known.batcher, "proposer_key": known.proposer} if known else {}
    signer = signers.get(role)
    if signer is not None:
        return f"{key} of {signer.address}"
    return f"{key}, {-(-len(content) // 1024)} KiB" if role == "genesis" else key


def _opened(read: Read) -> Document | None:
    """A file as a document; what is wrong with it is found elsewhere."""
    return document(File("", "", read.content), Findings())


def _number(rollup: Document | None, path: str) -> int | None:
    return rollup.number(path, least=1) if rollup else None


def _contracts(read: Read) -> tuple[dict[str, str], list[str]]:
    """What op-deployer says of the contracts, in any of its versions; zero is none."""
    findings = Findings()
    found = document(File("", "", read.content), findings)
    if found is None:
        return {}, [one.replace(str(File("", "", b"")), read.path) for one in findings.problems]
    nested = found.find(".opChainDeployment")
    flat = {**found.root, **(nested if isinstance(nested, dict) else {})}
    made: dict[str, str] = {}
    problems: list[str] = []
    for ours, theirs in _CONTRACTS.items():
        value = flat.get(theirs, flat.get(_old(theirs)))
        if value is None or value == _ZERO:
            continue
        try:
            made[ours] = checksummed(value)
        except NotAnAddressError as error:
            problems.append(f"{read.path}, .{theirs}: {error}")
    if not made and not problems:
        problems.append(f"{read.path}: names no contract: give what `op-deployer inspect l1` says")
    if "disputeGameFactory" in made:
        made.pop("l2OutputOracle", None)
    return made, problems


def _old(contract: str) -> str:
    """What op-deployer called a contract before its names had capital letters."""
    plain = contract.removesuffix("Impl")
    return f"{plain[0].lower()}{plain[1:]}Address"


def _receivers(contracts: Mapping[str, Any]) -> bool:
    return bool(contracts.get("disputeGameFactory") or contracts.get("l2OutputOracle"))


def _is_chain(found: object) -> bool:
    if not isinstance(found, dict) or not isinstance(found.get("metadata"), dict):
        return False
    return (found.get("apiVersion"), found.get("kind")) == (API_VERSION, "OPChain")


def _name(found: dict[str, Any]) -> str:
    return str(found["metadata"].get("name"))
