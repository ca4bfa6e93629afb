"""Archives of somebody else: what is taken, what is refused, and when reading ends."""

import gzip
import io
import stat
import struct
import tarfile
import time
import zipfile
from pathlib import Path
from typing import Literal

import pytest

from doubles.archives import files_of, member, tar, tar_of, targz_of, zip_bomb, zip_of
from pequod.sources import tree
from pequod.sources.archive import extract, lay_over
from pequod.sources.limits import MEBIBYTE, Limits
from pequod.sources.packing import pack, pack_module
from pequod.sources.tree import TreeError, TreeTooLargeError
from pequod.sources.unpacking import Unpacking, WithoutTop

FILES = {"a.cue": b"a: 1\n", "deep/er/b.cue": b"b: 2\n", "empty": b"", "ümlaut ✓": b"x" * 70_000}


def unpacked(content: bytes, into: Path, limits: Limits | None = None) -> dict[str, bytes]:
    folder = into / "tree"
    folder.mkdir()
    archive = into / "archive"
    archive.write_bytes(content)
    extract(archive, folder, limits or Limits())
    return files_of(folder)


@pytest.mark.parametrize("make", [tar_of, targz_of, zip_of])
def test_files_come_out_as_they_went_in(make: object, tmp_path: Path) -> None:
    assert callable(make)
    assert unpacked(make(FILES), tmp_path) == FILES


@pytest.mark.parametrize("form", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_long_names_are_read_in_each_dialect(form: Literal[0, 1, 2], tmp_path: Path) -> None:
    name = "/".join(["folder" * 5] * 5) + "/file"
    assert unpacked(tar(member(name, b"x"), form=form), tmp_path) == {name: b"x"}


def test_a_leading_dot_and_repeated_folders_are_harmless(tmp_path: Path) -> None:
    root, folder = member("./", type=tarfile.DIRTYPE), member("./a/", type=tarfile.DIRTYPE)
    content = tar(root, folder, folder, member("./a/b", b"1"))
    assert unpacked(content, tmp_path) == {"a/b": b"1"}


def test_several_gzip_members_are_one_file(tmp_path: Path) -> None:
    whole = tar_of(FILES)
    content = gzip.compress(whole[:700]) + gzip.compress(whole[700:])
    assert unpacked(content, tmp_path) == FILES


HOSTILE = [
    "../out",
    "a/../../out",
    "/etc/out",
    "a//b",
    "./../out",
    "a/./b",
    "..",
    "C:/out",
    "c:out",
    "a\\..\\out",
    "new\nline",
    "bell\x07",
    "override\u202eeuc.x",
    "x" * 256,
]


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("kind", ["tar", "zip"])
def test_case_82_a_name_that_leads_astray_is_refused(name: str, kind: str, tmp_path: Path) -> None:
    content = tar_of({name: b"x"}) if kind == "tar" else zip_of({name: b"x"})
    with pytest.raises(TreeError, match=r"name|part"):
        unpacked(content, tmp_path)
    assert sorted(one.name for one in tmp_path.iterdir()) == ["archive", "tree"]
    assert files_of(tmp_path / "tree") == {}


def test_case_82_a_name_with_a_nul_or_no_text_is_refused(tmp_path: Path) -> None:
    record = b"path=a\0b\n"
    text = f"{len(record) + 3} ".encode() + record
    nul = tar(member("pax", text, type=b"x"), member("a", b"1"))
    with pytest.raises(TreeError, match="cannot be seen"):
        unpacked(nul, tmp_path)
    (tmp_path / "tree").rmdir()
    latin = tar(member("b\udce4r", b"1"), form=tarfile.GNU_FORMAT)
    with pytest.raises(TreeError, match="not UTF-8"):
        unpacked(latin, tmp_path)


@pytest.mark.parametrize(
    ("kind", "what"),
    [
        (tarfile.SYMTYPE, "symbolic link"),
        (tarfile.LNKTYPE, "hard link"),
        (tarfile.CHRTYPE, "device"),
        (tarfile.BLKTYPE, "device"),
        (tarfile.FIFOTYPE, "fifo"),
        (tarfile.GNUTYPE_SPARSE, "holes"),
        (tarfile.CONTTYPE, "kind"),
        (b"V", "kind"),
    ],
)
def test_case_82_anything_but_files_and_folders_is_refused(
    kind: bytes, what: str, tmp_path: Path
) -> None:
    content = tar(member("a", type=kind, linkname="/etc/passwd"))
    with pytest.raises(TreeError, match=what):
        unpacked(content, tmp_path)


def test_case_82_a_sparse_file_in_disguise_is_refused(tmp_path: Path) -> None:
    record = b"GNU.sparse.major=1\n"
    text = f"{len(record) + 3} ".encode() + record
    with pytest.raises(TreeError, match="holes"):
        unpacked(tar(member("pax", text, type=b"x"), member("a", b"1")), tmp_path)


@pytest.mark.parametrize("mode", [stat.S_IFLNK, stat.S_IFCHR, stat.S_IFIFO])
def test_case_82_a_link_or_device_in_a_zip_is_refused(mode: int, tmp_path: Path) -> None:
    header = zipfile.ZipInfo("a")
    header.create_system, header.external_attr = 3, (mode | 0o777) << 16
    with pytest.raises(TreeError, match="link or a device"):
        unpacked(zip_of([(header, b"/etc/passwd")]), tmp_path)


def test_case_82_setuid_is_ignored(tmp_path: Path) -> None:
    unpacked(tar(member("a", b"1", mode=0o6777)), tmp_path)
    assert stat.S_IMODE((tmp_path / "tree" / "a").stat().st_mode) & 0o7111 == 0


@pytest.mark.parametrize("kind", ["tar", "zip"])
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_case_82_a_name_twice_is_refused(kind: str, tmp_path: Path) -> None:
    twice = [("a", b"1"), ("a", b"2")]
    content = tar(*(member(*one) for one in twice)) if kind == "tar" else zip_of(twice)
    with pytest.raises(TreeError, match="a is there twice"):
        unpacked(content, tmp_path)


@pytest.mark.parametrize("names", [("a", "a/b"), ("a/b", "a")])
@pytest.mark.parametrize("make", [tar_of, zip_of])
def test_case_82_a_file_is_no_folder(names: tuple[str, str], make: object, tmp_path: Path) -> None:
    assert callable(make)
    with pytest.raises(TreeError, match="a is both a file and a folder"):
        unpacked(make(dict.fromkeys(names, b"1")), tmp_path)


def test_the_same_name_in_two_archives_is_refused(tmp_path: Path) -> None:
    unpacking = Unpacking(tmp_path / "tree", Limits())
    (tmp_path / "tree").mkdir()
    for number, files in enumerate(({"a": b"1", "b": b""}, {"a": b"1"})):
        archive = tmp_path / str(number)
        archive.write_bytes(tar_of(files))
        if number:
            with pytest.raises(TreeError, match="a is there twice"):
                lay_over(archive, unpacking)
        else:
            lay_over(archive, unpacking)


@pytest.mark.parametrize(
    ("limits", "files", "what"),
    [
        (Limits(files=3), {str(one): b"" for one in range(4)}, "more than 3 files"),
        (Limits(files=3), {"a/b/c/d": b""}, "more than 3 files"),
        (Limits(file_bytes=9), {"a": b"x" * 10}, "a is larger than 9 bytes"),
        (Limits(tree_bytes=19), {"a": b"x" * 10, "b": b"x" * 10}, "over 19 bytes"),
        (Limits(depth=3), {"a/b/c/d": b""}, "deeper than 3 folders"),
        (Limits(path_bytes=9), {"a" * 10: b""}, "longer than 9 bytes"),
    ],
)
@pytest.mark.parametrize("make", [targz_of, zip_of])
def test_limits_hold_while_reading(
    limits: Limits, files: dict[str, bytes], what: str, make: object, tmp_path: Path
) -> None:
    assert callable(make)
    with pytest.raises(TreeTooLargeError, match=what):
        unpacked(make(files), tmp_path, limits)


def test_case_82_a_gzip_bomb_ends_early(tmp_path: Path) -> None:
    big = b"\0" * (60 * MEBIBYTE)
    content = gzip.compress(tar(member("a", big), member("b", big)))
    assert len(content) < MEBIBYTE
    with pytest.raises(TreeTooLargeError, match="as only bombs do"):
        unpacked(content, tmp_path)
    assert sum(map(len, files_of(tmp_path / "tree").values())) < 40 * MEBIBYTE


def test_case_82_a_gzip_bomb_of_nothing_after_the_end_ends_early(tmp_path: Path) -> None:
    content = gzip.compress(tar(member("a", b"1"), end=b"\0" * (100 * MEBIBYTE)))
    with pytest.raises(TreeTooLargeError, match="as only bombs do"):
        unpacked(content, tmp_path)


def test_case_82_a_bomb_in_a_header_is_never_in_memory(tmp_path: Path) -> None:
    header = tarfile.TarInfo("pax")
    header.type, header.size = b"x", 8 * 2**30
    with pytest.raises(TreeTooLargeError, match="a header has more than"):
        unpacked(gzip.compress(header.tobuf(tarfile.GNU_FORMAT) + b"\0" * 10_000), tmp_path)


def test_case_82_a_zip_bomb_of_overlapping_files_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TreeError, match="shares its bytes"):
        unpacked(zip_bomb(1000, 10 * MEBIBYTE), tmp_path)


def test_case_82_a_zip_bomb_ends_early(tmp_path: Path) -> None:
    content = zip_of({str(one): b"\0" * (30 * MEBIBYTE) for one in range(4)})
    with pytest.raises(TreeTooLargeError, match="as only bombs do"):
        unpacked(content, tmp_path)


def test_case_82_a_zip_that_lies_about_a_size_is_refused(tmp_path: Path) -> None:
    content = bytearray(zip_of({"a": b"x" * 1000}))
    place = content.index(b"PK\x01\x02")
    content[place + 24 : place + 28] = struct.pack("<I", 10)
    with pytest.raises(TreeError, match="not what its header says"):
        unpacked(bytes(content), tmp_path)


def test_case_82_seventy_thousand_entries_are_too_many(tmp_path: Path) -> None:
    begun = time.monotonic()
    header = tarfile.TarInfo("./")
    header.type = tarfile.DIRTYPE
    many = header.tobuf(tarfile.USTAR_FORMAT) * 70_000
    with pytest.raises(TreeTooLargeError, match="more than 50000 files"):
        unpacked(gzip.compress(many, 1), tmp_path)
    (tmp_path / "tree").rmdir()
    with pytest.raises(TreeTooLargeError, match="too many"):
        unpacked(zip_of({f"{one}": b"" for one in range(66_000)}), tmp_path)
    assert time.monotonic() - begun < 20


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"", "breaks off"),
        (b"no archive at all", "breaks off"),
        (b"x" * 2000, "number|checksum"),
        (tar_of(FILES)[:-1500], "breaks off"),
        (targz_of(FILES)[:-20], "gzip"),
        (zip_of(FILES)[:-10], "zip"),
        (tar_of(FILES) + b"more" * 128, "after the end"),
        (zip_of(FILES) + b"more", "after its end"),
        (b"PK\x03\x04 and nothing else", "no directory"),
    ],
)
def test_what_is_broken_is_refused(content: bytes, what: str, tmp_path: Path) -> None:
    with pytest.raises(TreeError, match=what):
        unpacked(content, tmp_path)


def test_damage_to_a_file_in_a_zip_is_noticed(tmp_path: Path) -> None:
    header = zipfile.ZipInfo("a")
    content = bytearray(zip_of([(header, b"x" * 1000)]))
    place = content.index(b"xxxx")
    content[place] = ord("y")
    with pytest.raises(TreeError, match="not what its header says"):
        unpacked(bytes(content), tmp_path)


def test_an_encrypted_file_is_refused(tmp_path: Path) -> None:
    content = bytearray(zip_of({"a": b"1"}))
    content[content.index(b"PK\x01\x02") + 8] |= 1
    with pytest.raises(TreeError, match="encrypted"):
        unpacked(bytes(content), tmp_path)


def test_the_folder_of_a_chart_is_taken_away(tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    archive = tmp_path / "archive"
    archive.write_bytes(targz_of({"web/Chart.yaml": b"name: web", "web/templates/a.yaml": b""}))
    lay_over(archive, WithoutTop(Unpacking(tmp_path / "tree", Limits())))
    assert set(files_of(tmp_path / "tree")) == {"Chart.yaml", "templates/a.yaml"}


@pytest.mark.parametrize(
    "files", [{"web/a": b"", "other/b": b""}, {"a": b""}, {"web/../../a": b""}]
)
def test_a_chart_with_several_folders_is_refused(files: dict[str, bytes], tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    archive = tmp_path / "archive"
    archive.write_bytes(tar_of(files))
    with pytest.raises(TreeError, match=r"same folder|parts"):
        lay_over(archive, WithoutTop(Unpacking(tmp_path / "tree", Limits())))


def _module(folder: Path) -> Path:
    for name in ("cue.mod/module.cue", "a.cue", "deep/b.cue", ".git/config"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)
    return folder


def test_packing_the_same_files_yields_the_same_bytes(tmp_path: Path) -> None:
    first, second = _module(tmp_path / "1"), _module(tmp_path / "2")
    (second / "a.cue").chmod(0o755)
    for number, folder in enumerate((first, second)):
        pack(folder, tmp_path / f"{number}.tgz")
        pack_module(folder, tmp_path / f"{number}.zip")
    assert (tmp_path / "0.tgz").read_bytes() == (tmp_path / "1.tgz").read_bytes()
    assert (tmp_path / "0.zip").read_bytes() == (tmp_path / "1.zip").read_bytes()


def test_packing_leaves_out_what_a_version_control_keeps(tmp_path: Path) -> None:
    folder = _module(tmp_path / "1")
    pack(folder, tmp_path / "a.tgz", prefix="web")
    found = unpacked((tmp_path / "a.tgz").read_bytes(), tmp_path)
    assert set(found) == {"web/cue.mod/module.cue", "web/a.cue", "web/deep/b.cue"}


def test_a_cue_module_is_packed_without_the_modules_below_it(tmp_path: Path) -> None:
    folder = _module(tmp_path / "1")
    for name in ("other/cue.mod/module.cue", "other/c.cue", "cue.mod/local-module.cue"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("")
    pack_module(folder, tmp_path / "a.zip")
    with zipfile.ZipFile(io.BytesIO((tmp_path / "a.zip").read_bytes())) as archive:
        assert archive.namelist() == ["a.cue", "cue.mod/module.cue", "deep/b.cue"]


def test_a_folder_without_a_module_file_is_no_cue_module(tmp_path: Path) -> None:
    with pytest.raises(TreeError, match=r"there is no cue\.mod/module\.cue"):
        pack_module(tmp_path, tmp_path / "a.zip")


def test_a_link_is_not_packed(tmp_path: Path) -> None:
    folder = _module(tmp_path / "1")
    (folder / "link").symlink_to("a.cue")
    with pytest.raises(TreeError, match="link is a link"):
        pack(folder, tmp_path / "a.tgz")


def test_what_is_packed_has_the_digest_of_its_folder(tmp_path: Path) -> None:
    folder = tmp_path / "1"
    for name, content in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    pack(folder, tmp_path / "a.tgz")
    unpacked((tmp_path / "a.tgz").read_bytes(), tmp_path)
    assert tree.digest(tmp_path / "tree") == tree.digest(folder)
