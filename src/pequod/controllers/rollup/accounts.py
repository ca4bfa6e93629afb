"""Accounts of Ethereum: keys, addresses and their checksums. Pure."""

import re
from dataclasses import dataclass, field

from Crypto.Hash import keccak
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

_ADDRESS = re.compile(r"0x[0-9a-fA-F]{40}")
_KEY = re.compile(r"(0x)?[0-9a-fA-F]{64}")
_ORDER = 0xFFFFFFFF_FFFFFFFF_FFFFFFFF_FFFFFFFE_BAAEDCE6_AF48A03B_BFD25E8C_D0364141
"""How many keys secp256k1 has, plus one."""
_HIGH = 8


class NotAnAddressError(ValueError):
    """A text that is no address, or one with a wrong checksum."""


class NotAKeyError(ValueError):
    """A text that is no private key; it is never part of the message."""


@dataclass(frozen=True, slots=True)
class Signer:
    """An account that signs transactions."""

    address: str
    key: str = field(repr=False)
    """64 hexadecimal digits."""


def signer(text: bytes) -> Signer:
    """The account of a private key in hexadecimal digits; raises NotAKeyError."""
    digits = text.strip().decode("ascii", "replace")
    if not _KEY.fullmatch(digits):
        raise NotAKeyError("must be a private key: 64 hexadecimal digits, with or without 0x")
    digits = digits.removeprefix("0x").lower()
    number = int(digits, 16)
    if not 0 < number < _ORDER:
        raise NotAKeyError("is not a private key of secp256k1: it is zero or too large")
    public = ec.derive_private_key(number, ec.SECP256K1()).public_key()
    point = public.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)[1:]
    return Signer(address=_with_checksum(_keccak(point)[-20:].hex()), key=digits)


def checksummed(text: object) -> str:
    """An address with its checksum (EIP-55); raises NotAnAddressError.

    Digits in one case only have no checksum, and any others must have the right one.
    """
    if not isinstance(text, str) or not _ADDRESS.fullmatch(text):
        raise NotAnAddressError("must be an address: 0x and 40 hexadecimal digits")
    digits = text[2:]
    right = _with_checksum(digits.lower())
    if digits not in {digits.lower(), digits.upper()} and text != right:
        raise NotAnAddressError(f"has a wrong checksum: {right} would be right")
    return right


def _with_checksum(digits: str) -> str:
    marks = _keccak(digits.encode()).hex()
    cased = (
        digit.upper() if int(mark, 16) >= _HIGH else digit
        for digit, mark in zip(digits, marks, strict=False)
    )
    return f"0x{''.join(cased)}"


def _keccak(data: bytes) -> bytes:
    return keccak.new(digest_bits=256, data=data).digest()
