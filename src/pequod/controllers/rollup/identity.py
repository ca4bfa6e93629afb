"""What makes a chain that chain: the same word for the same chain, however it is written. Pure."""

import hashlib
from collections.abc import Mapping
from typing import Any

import msgspec

from pequod.controllers.rollup.findings import Document

_DIGITS = 32
_SCHEME = "1"
"""Which words can be compared: those that were made in the same way."""
_NUMBERS = ("timestamp", "gasLimit", "difficulty", "number", "nonce", "gasUsed", "baseFeePerGas")
_DERIVATION = (
    *("genesis", "block_time", "max_sequencer_drift", "seq_window_size", "channel_timeout"),
    *("l1_chain_id", "l2_chain_id", "batch_inbox_address", "deposit_contract_address"),
    "l1_system_config_address",
)


def identity(genesis: Document, rollup: Document) -> str:
    """A word for where a chain begins and how it is derived.

    Forks are added while a chain lives, so the rest of `config` is not part of it.
    """
    begins = {name: value for name, value in genesis.root.items() if name != "config"}
    numbers = {
        name: found
        for name in _NUMBERS
        if (found := genesis.number(f".{name}", required=False, text=True)) is not None
    }
    whole = {
        "genesis": begins | numbers,
        "fees": genesis.find(".config.optimism"),
        "rollup": {name: rollup.find(f".{name}") for name in _DERIVATION},
    }
    return f"{_SCHEME}-{word_for(whole)}"


def word_for(document: Mapping[str, Any]) -> str:
    """A word for what a document says, however it is written."""
    text = msgspec.json.encode(_normal(document), order="sorted")
    return hashlib.sha256(text).hexdigest()[:_DIGITS]


def is_another(known: str, wanted: str) -> bool:
    """Whether two words are known to be of two chains: those of another scheme tell nothing."""
    return known.partition("-")[0] == _SCHEME and known != wanted


def _normal(value: object) -> Any:  # noqa: ANN401 -- JSON
    """JSON without what only spelling decides: case and `0x`, and fields that are null."""
    if isinstance(value, str):
        return value.lower()
    if isinstance(value, Mapping):
        return {
            name.lower().removeprefix("0x"): _normal(found)
            for name, found in value.items()
            if found is not None
        }
    if isinstance(value, list):
        return [_normal(one) for one in value]
    return value
