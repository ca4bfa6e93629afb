"""Archives: nothing that they say changes anything but their folder, and packing loses nothing."""

import gzip
import tempfile
from collections.abc import Callable
from contextlib import suppress
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from doubles.archives import files_of, member, tar, tar_of, zip_of
from pequod.kube import addresses
from pequod.kube.addresses import AddressRule
from pequod.sources.archive import extract
from pequod.sources.limits import Limits
from pequod.sources.networks import refused_networks
from pequod.sources.packing import pack, pack_module
from pequod.sources.tree import TreeError

LIMITS = Limits(tree_bytes=2**16, file_bytes=2**15, files=50, depth=8, path_bytes=200)
SEGMENTS = st.text(st.sampled_from("ab.-ü "), min_size=1, max_size=6).filter(
    lambda text: text not in {".", ".."}
)
PATHS = st.lists(SEGMENTS, min_size=1, max_size=4).map("/".join)
WILD = st.text(st.sampled_from("a./\\:C\0\n~ "), min_size=1, max_size=12)
KINDS = st.sampled_from([bytes([one]) for one in b"01234567SLKxgV\0"])
CONTENT = st.binary(max_size=300)


def _surroundings(top: Path) -> dict[str, bytes | None]:
    """Everything outside of the folder that an archive is unpacked into."""
    return {
        str(path.relative_to(top)): path.read_bytes() if path.is_file() else None
        for path in sorted(top.rglob("*"))
        if path.relative_to(top).parts[:2] != ("work", "tree")
    }


def _only_the_folder_changes(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as name:
        top = Path(name)
        folder = top / "work" / "tree"
        folder.mkdir(parents=True)
        (top / "precious").write_text("precious")
        (top / "work" / "archive").write_bytes(content)
        before = _surroundings(top)
        with suppress(TreeError):
            extract(top / "work" / "archive", folder, LIMITS)
        assert _surroundings(top) == before
        found = list(folder.rglob("*"))
        assert len(found) <= LIMITS.files + 1
        assert sum(one.stat().st_size for one in found if one.is_file()) <= 2**17
        assert all(one.is_file() or one.is_dir() for one in found)
        assert not any(one.is_symlink() for one in found)


@given(st.binary(max_size=4096), st.sampled_from([b"", b"\x1f\x8b\x08", b"PK\x03\x04"]))
def test_whatever_the_bytes_are_nothing_else_changes(content: bytes, magic: bytes) -> None:
    _only_the_folder_changes(magic + content)


@given(
    entries=st.lists(st.tuples(WILD | PATHS, CONTENT, KINDS, WILD), max_size=6),
    compressed=st.booleans(),
)
def test_case_82_whatever_the_entries_are_nothing_else_changes(
    entries: list[tuple[str, bytes, bytes, str]], *, compressed: bool
) -> None:
    members = [
        member(name, content, type=kind, linkname=link) for name, content, kind, link in entries
    ]
    whole = tar(*members)
    _only_the_folder_changes(gzip.compress(whole) if compressed else whole)


@given(
    st.dictionaries(PATHS, CONTENT, max_size=5),
    st.lists(st.tuples(st.integers(0, 4000), st.integers(0, 255)), max_size=5),
    st.sampled_from([tar_of, zip_of]),
)
def test_whatever_is_damaged_nothing_else_changes(
    files: dict[str, bytes],
    damage: list[tuple[int, int]],
    make: Callable[[dict[str, bytes]], bytes],
) -> None:
    content = bytearray(make(files))
    for place, value in damage:
        content[place % len(content)] = value
    _only_the_folder_changes(bytes(content))


def _written(top: Path, files: dict[str, bytes]) -> Path:
    folder = top / "folder"
    folder.mkdir()
    for name, content in files.items():
        place = folder / name
        assume(not any(folder / one in place.parents for one in files))
        assume(not place.is_dir())
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)
    return folder


@given(st.dictionaries(PATHS, CONTENT, max_size=8))
@settings(deadline=None)
@pytest.mark.parametrize("form", ["tar", "zip"])
def test_what_is_packed_and_unpacked_is_the_same(form: str, files: dict[str, bytes]) -> None:
    with tempfile.TemporaryDirectory() as name:
        top = Path(name)
        files = files | ({"cue.mod/module.cue": b"module: x"} if form == "zip" else {})
        folder = _written(top, files)
        (pack if form == "tar" else pack_module)(folder, top / "archive")
        (top / "out").mkdir()
        extract(top / "archive", top / "out", Limits())
        assert files_of(top / "out") == files


ADDRESSES = (
    st.integers(0, 2**32 - 1).map(IPv4Address)
    | st.integers(0, 2**128 - 1).map(IPv6Address)
    | st.sampled_from([one[0] for one in (*addresses.METADATA, addresses.THIS_HOST)])
    | st.sampled_from(
        [
            ip_address(text)
            for text in (
                *("127.0.0.1", "::1", "::", "0.0.0.0", "10.0.0.1", "169.254.169.254"),
                *("255.255.255.255", "224.0.0.1", "ff02::1", "fe80::1", "fc00::1", "2606::1"),
                *("64:ff9b::7f00:1", "64:ff9b::808:808", "2002:7f00:1::", "2002:808:808::1"),
                *("64:ff9b::a9fe:a9fe", "fd00:ec2::254", "fd20:ce::254", "100.100.100.200"),
            )
        ]
    )
    | st.integers(0, 2**32 - 1).map(lambda low: IPv6Address(0x64FF9B << 96 | low))
    | st.integers(0, 2**96 - 1).map(lambda low: IPv6Address(0x2002 << 112 | low << 16))
)


@given(address=ADDRESSES, local=st.booleans())
def test_case_81_the_list_of_networks_says_what_the_rule_says(
    *, address: IPv4Address | IPv6Address, local: bool
) -> None:
    rule = AddressRule(allow_local=local)
    assume(address.version == 4 or (address.teredo is None and address.ipv4_mapped is None))
    networks = [ip_network(one) for one in refused_networks(rule)]
    listed = any(address in one for one in networks if one.version == address.version)
    assert listed == (rule.refuse(address) is not None)


def test_case_81_no_address_inside_of_a_teredo_address_is_reached() -> None:
    networks = [ip_network(one) for one in refused_networks(AddressRule())]
    assert any(ip_address("2001::80ff:fffe") in one for one in networks)
