"""What the files of a chain must say, each by itself, with the spec, and together. Pure."""

from pequod.api.rollup import OPChainSpec
from pequod.controllers.rollup.findings import Document
from pequod.controllers.rollup.forks import check_forks

_FEES = ("eip1559Elasticity", "eip1559Denominator")
_CANYON_FEES = "eip1559DenominatorCanyon"
_BLOCKS = (
    *("homestead", "eip150", "eip155", "eip158", "byzantium", "constantinople", "petersburg"),
    *("istanbul", "berlin", "london"),
)
"""Forks of Ethereum that geth does not start without."""


def check_genesis(spec: OPChainSpec, genesis: Document) -> None:
    """The genesis of L2, as op-geth reads it."""
    if genesis.mapping(".config") is not None:
        _same_chain(genesis, ".config.chainId", "spec.l2.chainId", spec.l2.chain_id)
        for name in _BLOCKS:
            genesis.number(f".config.{name}Block")
        genesis.number(".config.bedrockBlock")
        if genesis.find(".config.blobSchedule") is not None:
            genesis.wrong(
                ".config.blobSchedule", "must not be set: a rollup has no blobs of its own"
            )
        _check_fees(genesis, ".config.optimism", canyon=genesis.find(".config.canyonTime"))
    genesis.mapping(".alloc")
    genesis.number(".timestamp", least=1, text=True)
    genesis.number(".gasLimit", least=1, text=True)
    genesis.number(".number", required=False, text=True)
    if genesis.number(".difficulty", text=True):
        genesis.wrong(".difficulty", "must be 0: a rollup is not mined")


def check_rollup(spec: OPChainSpec, rollup: Document) -> None:
    """The rollup configuration, as op-node reads it."""
    _same_chain(rollup, ".l2_chain_id", "spec.l2.chainId", spec.l2.chain_id)
    _same_chain(rollup, ".l1_chain_id", "spec.l1.chainId", spec.l1.chain_id)
    if spec.l1.chain_id == spec.l2.chain_id:
        rollup.wrong(".l2_chain_id", "must differ from l1_chain_id: L1 and L2 are two chains")
    for name in ("block_time", "max_sequencer_drift", "channel_timeout"):
        rollup.number(f".{name}", least=1)
    rollup.number(".seq_window_size", least=2)
    _check_origin(rollup)
    known = spec.l1.contract_addresses
    rollup.address(".batch_inbox_address")
    _same_contract(rollup, ".deposit_contract_address", "optimismPortal", known.optimism_portal)
    _same_contract(rollup, ".l1_system_config_address", "systemConfig", known.system_config)
    _check_fees(rollup, ".chain_op_config", canyon=rollup.find(".canyon_time"))


def check_together(genesis: Document | None, rollup: Document | None) -> None:
    """What both files say must be the same."""
    check_forks(genesis, rollup)
    if genesis is None or rollup is None:
        return
    _same_number(rollup, ".genesis.l2_time", genesis, ".timestamp")
    _same_number(rollup, ".genesis.l2.number", genesis, ".number", absent=0)
    for name in (*_FEES, _CANYON_FEES):
        here, there = f".chain_op_config.{name}", f".config.optimism.{name}"
        if rollup.find(here) is not None and genesis.find(there) is not None:
            _same_number(rollup, here, genesis, there)


def _check_origin(rollup: Document) -> None:
    if rollup.mapping(".genesis") is None:
        return
    for chain in ("l1", "l2"):
        rollup.hash(f".genesis.{chain}.hash")
        rollup.number(f".genesis.{chain}.number")
    if (same := rollup.hash(".genesis.l1.hash")) and same == rollup.hash(".genesis.l2.hash"):
        rollup.wrong(
            ".genesis.l2.hash", "is the hash of L1's block as well: L2 has a block of its own"
        )
    rollup.number(".genesis.l2_time", least=1)
    if rollup.mapping(".genesis.system_config") is not None:
        rollup.address(".genesis.system_config.batcherAddr")
        rollup.number(".genesis.system_config.gasLimit", least=1)
        rollup.hash(".genesis.system_config.scalar")
        for name in ("overhead", "operatorFeeParams"):
            rollup.word(f".genesis.system_config.{name}")


def _check_fees(document: Document, path: str, *, canyon: object) -> None:
    if document.mapping(path) is None:
        return
    for name in (*_FEES, *([_CANYON_FEES] if canyon is not None else [])):
        document.number(f"{path}.{name}", least=1)


def _same_chain(document: Document, path: str, place: str, wanted: int) -> None:
    found = document.number(path, least=1)
    if found is not None and found != wanted:
        document.wrong(path, f"is {found}, but {place} is {wanted}")


def _same_contract(rollup: Document, path: str, name: str, wanted: str | None) -> None:
    found = rollup.address(path)
    if found is not None and wanted is not None and found.lower() != wanted.lower():
        rollup.wrong(path, f"is {found}, but spec.l1.contractAddresses.{name} is {wanted}")


def _same_number(
    here: Document, path: str, there: Document, other: str, *, absent: int | None = None
) -> None:
    """Compare two numbers; what is no number is a finding already."""
    ours, theirs = here.number(path, required=False), there.number(other, required=False, text=True)
    if theirs is None and not there.is_wrong(other):
        theirs = absent
    if ours is not None and theirs is not None and ours != theirs:
        here.wrong(path, f"is {ours}, but {other} of {there.file} is {theirs}")
