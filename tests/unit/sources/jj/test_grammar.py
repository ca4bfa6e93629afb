"""Revisions that people write become names and ids, and those become revsets that we wrote."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pequod.sources.errors import BadReferenceError
from pequod.sources.jj import grammar
from pequod.sources.jj.grammar import Name, parse_name


def test_a_plain_name_can_be_a_tag_or_a_bookmark() -> None:
    assert parse_name("feature/one") == Name(tag="feature/one", bookmark="feature/one")
    assert parse_name("one").revset() == 'tags(exact:"one") | bookmarks(exact:"one")'


def test_the_last_at_sign_separates_the_remote() -> None:
    name = parse_name("user@host@origin")
    assert (name.remote_bookmark, name.remote) == ("user@host", "origin")
    assert name.bookmark == "user@host@origin"
    wanted = 'remote_bookmarks(exact:"user@host", remote=exact:"origin")'
    assert name.revset().endswith(f" | {wanted}")


@pytest.mark.parametrize(
    ("revision", "name"),
    [
        ("refs/heads/a/b", Name(bookmark="a/b")),
        ("refs/tags/v1", Name(tag="v1")),
        ("refs/remotes/origin/a/b", Name(remote_bookmark="a/b", remote="origin")),
    ],
)
def test_a_whole_ref_is_only_what_it_says(revision: str, name: Name) -> None:
    assert parse_name(revision) == name


def test_ids_have_their_own_alphabets() -> None:
    assert grammar.is_change_id("kyzm")
    assert grammar.is_change_id("z" * 32)
    for text in ("", "j", "kA", "K", "k" * 33, "k\n", "k1"):
        assert not grammar.is_change_id(text)
    assert grammar.is_commit_id("0a" * 20)
    assert grammar.is_commit_id("0a" * 32)
    for text in ("", "0a" * 19, "0A" * 20, "0a" * 20 + "\n", "0g" * 20):
        assert not grammar.is_commit_id(text)


def test_quotes_and_backslashes_end_no_string() -> None:
    assert grammar.quoted('a"b\\c') == r'"a\"b\\c"'


@given(st.text(max_size=300))
def test_case_71_any_text_is_refused_or_stays_inside_of_its_quotes(text: str) -> None:
    try:
        revset = parse_name(text).revset()
    except BadReferenceError:
        return
    outside = re.sub(r'"(?:[^"\\]|\\.)*"', "S", revset)
    assert outside in {
        "tags(exact:S)",
        "bookmarks(exact:S)",
        "tags(exact:S) | bookmarks(exact:S)",
        "remote_bookmarks(exact:S, remote=exact:S)",
        "tags(exact:S) | bookmarks(exact:S) | remote_bookmarks(exact:S, remote=exact:S)",
    }
    assert not re.search(r"[\x00-\x20\x7f-\x9f]", text)
