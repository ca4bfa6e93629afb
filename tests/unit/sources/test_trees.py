"""What a tree may consist of, and its digest."""

import os
import shutil
import stat
from pathlib import Path

import pytest

from pequod.sources import tree
from pequod.sources.limits import Limits


def write(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def test_the_digest_is_of_names_and_contents_only(tmp_path: Path) -> None:
    first = write(tmp_path / "1", {"a": "1", "b/c": "2"})
    second = write(tmp_path / "2", {"b/c": "2", "a": "1"})
    (second / "a").chmod(0o755)
    (second / "empty").mkdir()
    os.utime(second / "a", (0, 0))
    assert tree.digest(first) == tree.digest(second)


@pytest.mark.parametrize(
    "files",
    [
        {"a": "2", "b/c": "2"},
        {"a": "1"},
        {"a": "1", "b/d": "2"},
        {"a": "1", "b": "2"},
        {"ab": "12"},
    ],
)
def test_another_name_or_content_is_another_digest(files: dict[str, str], tmp_path: Path) -> None:
    first = write(tmp_path / "1", {"a": "1", "b/c": "2"})
    assert tree.digest(first) != tree.digest(write(tmp_path / "2", files))


def test_a_link_is_not_its_target(tmp_path: Path) -> None:
    first = write(tmp_path / "1", {"a": "1", "b": "1"})
    second = write(tmp_path / "2", {"a": "1"})
    (second / "b").symlink_to("a")
    assert tree.digest(first) != tree.digest(second)


@pytest.mark.parametrize("target", ["/etc/passwd", "../outside", "a/../../outside", "..", "../.."])
def test_case_74_a_link_out_of_the_tree_is_refused(target: str, tmp_path: Path) -> None:
    root = write(tmp_path / "tree", {"a/b": ""})
    (tmp_path / "outside").write_text("secret")
    (root / "link").symlink_to(target)
    with pytest.raises(tree.TreeError, match="link is a link to"):
        tree.check(root, Limits())


def test_case_74_a_link_through_a_link_is_followed_to_its_end(tmp_path: Path) -> None:
    root = write(tmp_path / "tree", {"a/b": ""})
    (tmp_path / "outside").mkdir()
    (root / "a" / "up").symlink_to("..")
    (root / "link").symlink_to("a/up/../outside")
    with pytest.raises(tree.TreeError, match="link"):
        tree.check(root, Limits())


@pytest.mark.parametrize("target", ["nowhere", "loop", "a/missing"])
def test_case_74_a_link_that_leads_nowhere_is_refused(target: str, tmp_path: Path) -> None:
    root = write(tmp_path / "tree", {"a/b": ""})
    (root / "loop").symlink_to(target)
    with pytest.raises(tree.TreeError, match="leads nowhere"):
        tree.check(root, Limits())


def test_a_link_that_stays_inside_is_fine(tmp_path: Path) -> None:
    root = write(tmp_path / "tree", {"a/b": "", "c": ""})
    (root / "a" / "link").symlink_to("../c")
    tree.check(root, Limits())


def test_what_is_neither_file_nor_folder_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(tree.TreeError, match="pipe is neither"):
        tree.check(tmp_path, Limits())


@pytest.mark.parametrize(
    ("limits", "what"),
    [
        (Limits(files=2), "more than 2 files"),
        (Limits(file_bytes=4), "a/b/c is larger than 4 bytes"),
        (Limits(tree_bytes=7), "over 7 bytes"),
        (Limits(depth=2), "deeper than 2 folders"),
        (Limits(path_bytes=4), "longer than 4 bytes"),
    ],
)
def test_case_76_limits_hold(limits: Limits, what: str, tmp_path: Path) -> None:
    root = write(tmp_path / "tree", {"a/b/c": "12345", "d": "12345"})
    with pytest.raises(tree.TreeTooLargeError, match=what):
        tree.check(root, limits)


def test_case_76_a_tree_that_is_too_deep_for_any_stack_is_refused(tmp_path: Path) -> None:
    here = os.open(tmp_path, os.O_RDONLY)
    for _ in range(2000):
        os.mkdir("d", dir_fd=here)
        below = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)
    try:
        with pytest.raises(tree.TreeTooLargeError, match="deeper than"):
            tree.check(tmp_path, Limits())
    finally:
        # Nobody else could remove it afterwards.
        _flatten(tmp_path)


def _flatten(root: Path) -> None:
    while (root / "d").exists():
        (root / "d").rename(root / "old")
        if (root / "old" / "d").exists():
            (root / "old" / "d").rename(root / "d")
        shutil.rmtree(root / "old")


def test_a_sealed_tree_is_read_only(tmp_path: Path) -> None:
    root = write(tmp_path / "tree", {"a/b": ""})
    tree.seal(root)
    assert stat.S_IMODE((root / "a" / "b").stat().st_mode) == 0o444
    assert stat.S_IMODE((root / "a").stat().st_mode) == 0o555
