"""Headers and trees of commits, as git printed them for what jj 0.45 wrote."""

from datetime import UTC, datetime, timedelta

import pytest

from pequod.sources.errors import BadReferenceError, MissingError, RefusedError
from pequod.sources.jj.commits import (
    CommitHeader,
    commit_headers,
    conflict_trees,
    conflicted_paths,
    tree_entries,
)
from pequod.sources.jj.remote import chosen

PLAIN = (
    b"d98d8ae87576df53d8b8a180e68a40db5960b48c\n"
    b"tree 3683f870be446c7cc05ffaef9fa06415276e1828\n"
    b"parent 8591cf9028e2eb6f46ee94acb5ad50223dcc9983\n"
    b"author A <a@b> 1794753707 -0730\n"
    b"committer A <a@b> 1794753707 +0000\n"
    b"change-id vzvzqwwqzkklsrynktptpkoprpoulynu\n"
    b"\n"
    b"    second\n"
    b"    \n"
    b"    change-id kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk\n"
)
SIGNED = (
    b"8591cf9028e2eb6f46ee94acb5ad50223dcc9983\n"
    b"tree aaff74984cccd156a469afa7d9ab10e4777beb24\n"
    b"author A <a@b> 1794753707 +0000\n"
    b"committer A <a@b> 1794753707 +0000\n"
    b"gpgsig -----BEGIN PGP SIGNATURE-----\n"
    b" \n"
    b" change-id kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk\n"
    b" -----END PGP SIGNATURE-----\n"
    b"jj:trees aaff74984cccd156a469afa7d9ab10e4777beb24 1 2\n"
    b"change-id sqylpxkmmumnrsxkrnrxwvpwntvvxznm\n"
    b"\n"
    b"    first\n"
)
BY_GIT = (
    b"1111111111111111111111111111111111111111\n"
    b"tree aaff74984cccd156a469afa7d9ab10e4777beb24\n"
    b"author \xff <> 99999999999999999999 +0000\n"
    b"committer A <a@b> 1 +0000\n"
    b"\n"
    b"    caf\xe9\n"
)


def header(number: int, change: str, *, description: str = "") -> CommitHeader:
    return CommitHeader(
        commit_id=f"{number:040x}",
        change_id=change,
        conflicted=False,
        authored_at=datetime.now(UTC),
        description=description,
    )


def test_the_headers_of_commits_are_read() -> None:
    plain, signed, by_git = commit_headers(b"\0".join((PLAIN, SIGNED, BY_GIT, b"")))
    assert plain == CommitHeader(
        commit_id="d98d8ae87576df53d8b8a180e68a40db5960b48c",
        change_id="vzvzqwwqzkklsrynktptpkoprpoulynu",
        conflicted=False,
        authored_at=datetime.fromtimestamp(1794753707, UTC),
        description="second",
    )
    assert plain.authored_at.utcoffset() == -timedelta(hours=7, minutes=30)
    assert signed.change_id == "sqylpxkmmumnrsxkrnrxwvpwntvvxznm"
    assert signed.conflicted
    assert (by_git.change_id, by_git.conflicted) == (None, False)
    assert by_git.description == "caf\ufffd"
    assert by_git.authored_at == datetime.fromtimestamp(0, UTC)


def test_only_the_commits_of_a_change_are_read_if_one_is_given() -> None:
    listing = b"\0".join((PLAIN, SIGNED, BY_GIT, b""))
    (found,) = commit_headers(listing, change_id="sqyl")
    assert found.change_id == "sqylpxkmmumnrsxkrnrxwvpwntvvxznm"
    assert [*commit_headers(listing, change_id="kkkk")] == []


@pytest.mark.parametrize("value", [b"", b"abc", b"k" * 31, b"k" * 33, b"K" * 32, b"a" * 32])
def test_a_change_id_that_is_none_is_passed_over_also_if_another_follows(value: bytes) -> None:
    content = PLAIN.replace(b"change-id v", b"change-id " + value + b"\nchange-id v", 1)
    assert next(commit_headers(content)).change_id is None


def test_nothing_and_nonsense_are_no_commits() -> None:
    assert [*commit_headers(b"")] == []
    assert next(commit_headers(b"nonsense")).change_id is None
    broken = PLAIN.replace(b"1794753707 -0730", b"999999999999 -9959")
    assert next(commit_headers(broken)).authored_at == datetime.fromtimestamp(0, UTC)


def test_the_inputs_of_a_conflict_are_compared() -> None:
    root = tree_entries(
        b"040000 tree 1111\t.jjconflict-base-0\0"
        b"040000 tree 2222\t.jjconflict-side-0\0"
        b"040000 tree 3333\t.jjconflict-side-1\0"
        b"100644 blob 4444\tJJ-CONFLICT-README\0"
        b"100644 blob 5555\tname with\ttab and\nline\0"
    )
    assert conflict_trees(root) == {
        b".jjconflict-base-0": "1111",
        b".jjconflict-side-0": "2222",
        b".jjconflict-side-1": "3333",
    }
    assert b"name with\ttab and\nline" in root
    inputs = {
        b".jjconflict-base-0": {b"same": b"1", b"edited": b"1", b"left": b"1", b"gone": b"1"},
        b".jjconflict-side-0": {b"same": b"1", b"edited": b"2", b"left": b"2", b"gone": b"2"},
        b".jjconflict-side-1": {b"same": b"1", b"edited": b"3", b"left": b"1", b"new": b"1"},
    }
    assert conflicted_paths(inputs) == ["edited", "gone"]


def test_a_conflict_of_three_sides_cancels_what_agrees() -> None:
    inputs = {
        b".jjconflict-base-0": {b"a": b"1", b"b": b"1"},
        b".jjconflict-base-1": {b"a": b"1", b"b": b"1"},
        b".jjconflict-side-0": {b"a": b"1", b"b": b"2"},
        b".jjconflict-side-1": {b"a": b"2", b"b": b"3"},
        b".jjconflict-side-2": {b"a": b"1", b"b": b"4"},
    }
    assert conflicted_paths(inputs) == ["b"]


def test_the_commit_of_a_change_is_chosen() -> None:
    one, other = "k" * 32, "k" * 31 + "z"
    commits = [header(1, one), header(2, other)]
    assert chosen(one, commits, []).commit_id == f"{1:040x}"
    assert chosen("k" * 31 + "z", commits, []).change_id == other
    with pytest.raises(BadReferenceError, match="more than one change id"):
        chosen("kk", commits, [])
    with pytest.raises(MissingError):
        chosen("zz", commits, [])


def test_a_head_wins_over_history_and_a_tag_is_no_head() -> None:
    change = "k" * 32
    commits = [header(1, change, description="one"), header(2, change, description="two")]
    first, second = (commit.commit_id for commit in commits)
    assert chosen(change, commits, [("refs/heads/main", second)]).commit_id == second
    tag = ("refs/tags/v1", first)
    assert chosen(change, commits, [tag, ("refs/heads/main", second)]).commit_id == second
    for refs in ([], [tag], [("refs/heads/a", first), ("refs/heads/b", second)]):
        with pytest.raises(RefusedError, match=r"2 commits: .* \(one\), .* \(two\)"):
            chosen(change, commits, refs)
