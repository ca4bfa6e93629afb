"""Keys, addresses and checksums, against what the standards and well-known programs say."""

import pytest

import chains
from pequod.controllers.rollup.accounts import (
    NotAKeyError,
    NotAnAddressError,
    checksummed,
    signer,
)

ORDER = 0xFFFFFFFF_FFFFFFFF_FFFFFFFF_FFFFFFFE_BAAEDCE6_AF48A03B_BFD25E8C_D0364141
NO_KEY = "must be a private key: 64 hexadecimal digits, with or without 0x"
OUT_OF_RANGE = "is not a private key of secp256k1: it is zero or too large"
NO_ADDRESS = "must be an address: 0x and 40 hexadecimal digits"

EIP_55 = [
    "0x52908400098527886E0F7030069857D2E4169EE7",
    "0x8617E340B3D01FA5F11F306F4090FD50E238070D",
    "0xde709f2102306220921060314715629080e2fb77",
    "0x27b1fdb04752bbc536007a920d24acb045561c26",
    "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed",
    "0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359",
    "0xdbF03B407c01E7cD3CBea99509d93f8DDDC8C6FB",
    "0xD1220A0cf47c7B9Be7A2E6BA89F429762e7b9aDb",
]


@pytest.mark.parametrize("address", EIP_55)
def test_an_address_of_the_standard_has_the_checksum_of_the_standard(address: str) -> None:
    assert checksummed(address) == address
    assert checksummed(address.lower()) == address
    assert checksummed(f"0x{address[2:].upper()}") == address


@pytest.mark.parametrize("address", EIP_55[4:])
def test_one_digit_in_the_wrong_case_is_a_wrong_checksum(address: str) -> None:
    place = next(place for place in range(2, 42) if address[place].isalpha())
    wrong = address[:place] + address[place].swapcase() + address[place + 1 :]
    with pytest.raises(NotAnAddressError) as caught:
        checksummed(wrong)
    assert str(caught.value) == f"has a wrong checksum: {address} would be right"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "0x",
        EIP_55[4][2:],
        EIP_55[4][:-1],
        f"{EIP_55[4]}0",
        f"{EIP_55[4]}\n",
        f" {EIP_55[4]}",
        EIP_55[4].replace("0x", "0X"),
        f"0x{'g' * 40}",
        f"0x{'٣' * 40}",
        f"0x{'３' * 40}",
        None,
        0,
        int(EIP_55[4], 16),
        True,
        EIP_55[4].encode(),
        [EIP_55[4]],
    ],
)
def test_what_is_no_address_is_refused(text: object) -> None:
    with pytest.raises(NotAnAddressError) as caught:
        checksummed(text)
    assert str(caught.value) == NO_ADDRESS


@pytest.mark.parametrize(
    ("key", "address"),
    [
        (chains.BATCHER_KEY, chains.BATCHER),
        (chains.PROPOSER_KEY, chains.PROPOSER),
        (chains.STRANGER_KEY, chains.STRANGER),
        (f"{1:064x}", "0x7E5F4552091A69125d5DfCb7b8C2659029395Bdf"),
        (f"{2:064x}", "0x2B5AD5c4795c026514f8317c7a215E218DcCD6cF"),
        (f"{ORDER - 1:064x}", "0x80C0dbf239224071c59dD8970ab9d542E3414aB2"),
        ("46" * 32, "0x9d8A62f656a8d1615C1294fd71e9CFb3E4855A4F"),
        (
            "4c0883a69102937d6231471b5dbb6204fe5129617082792ae468d01a3f362318",
            "0x2c7536E3605D9C16a7a3D7b1898e529396a65c23",
        ),
        (
            "ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80",
            "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266",
        ),
    ],
)
def test_a_key_has_the_address_that_the_world_knows_it_by(key: str, address: str) -> None:
    for text in (key, key.upper(), f"0x{key}", f"0x{key}\n", f"  {key}\r\n"):
        found = signer(text.encode())
        assert found.address == address
        assert found.key == key
        assert key not in repr(found)


@pytest.mark.parametrize("number", [0, ORDER, ORDER + 1, 2**256 - 1])
def test_a_number_outside_of_the_curve_is_no_key(number: int) -> None:
    with pytest.raises(NotAKeyError) as caught:
        signer(f"{number:064x}".encode())
    assert str(caught.value) == OUT_OF_RANGE


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"0x",
        b"\n",
        chains.BATCHER_KEY[:-1].encode(),
        f"{chains.BATCHER_KEY}0".encode(),
        f"0x0x{chains.BATCHER_KEY[2:]}".encode(),
        f"0X{chains.BATCHER_KEY}".encode(),
        f'"{chains.BATCHER_KEY}"'.encode(),
        f"{chains.BATCHER_KEY} {chains.PROPOSER_KEY}".encode(),
        f"{chains.BATCHER_KEY[:32]}\n{chains.BATCHER_KEY[32:]}".encode(),
        f"{chains.BATCHER_KEY[:63]}g".encode(),
        f"{chains.BATCHER_KEY[:62]}_1".encode(),
        ("٣" * 64).encode(),
        ("３" * 64).encode(),
        bytes.fromhex(chains.BATCHER_KEY),
        b"\xff" * 64,
        b"test test test test test test test test test test test junk",
    ],
)
def test_what_is_no_key_is_refused_and_not_repeated(content: bytes) -> None:
    with pytest.raises(NotAKeyError) as caught:
        signer(content)
    assert str(caught.value) == NO_KEY
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
