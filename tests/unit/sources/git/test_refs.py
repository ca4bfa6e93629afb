"""Lists of refs, and what names mean in them."""

import pytest

from pequod.sources.errors import RefusedError
from pequod.sources.git.refs import Refs, Resolved, needs_everything, parse_refs, resolve

A, B, C = "a" * 40, "b" * 40, "c" * 40


def test_refs_are_read_with_symbolic_names_and_peeled_tags() -> None:
    lines = (
        "ref: refs/heads/main\tHEAD",
        f"{A}\tHEAD",
        f"{A}\trefs/heads/main",
        f"{B}\trefs/tags/v1",
        f"{C}\trefs/tags/v1^{{}}",
    )
    refs = parse_refs("".join(f"{line}\n" for line in lines).encode(), "url")
    assert refs.symbolic == {"HEAD": "refs/heads/main"}
    assert refs.commit("refs/tags/v1") == C
    assert refs.commit("refs/heads/main") == A
    assert refs.commit("refs/heads/other") is None


@pytest.mark.parametrize(
    "line", ["<html>", A, f"{A} refs/heads/x", f"{A[:-1]}\tx", f"{A}\ta\tb", "", f"{A.upper()}\tx"]
)
def test_what_is_no_list_of_refs_is_refused(line: str) -> None:
    with pytest.raises(RefusedError):
        parse_refs(f"{line}\n".encode(), "url")


@pytest.mark.parametrize(
    ("ref", "meant"),
    [
        ("", Resolved(commit=A, kind="head", name="refs/heads/main")),
        ("HEAD", Resolved(commit=A, kind="head", name="refs/heads/main")),
        ("main", Resolved(commit=A, kind="branch", name="refs/heads/main")),
        ("v1", Resolved(commit=B, kind="tag", name="refs/tags/v1")),
        ("both", Resolved(commit=A, kind="branch", name="refs/heads/both", ambiguous=True)),
        ("refs/tags/both", Resolved(commit=B, kind="tag", name="refs/tags/both")),
        ("refs/pull/1/head", Resolved(commit=C, kind="ref", name="refs/pull/1/head")),
        ("pull/1/head", None),
        ("other", None),
        ("refs/heads/other", None),
    ],
)
def test_names_mean_branches_first_then_tags(ref: str, meant: Resolved | None) -> None:
    refs = Refs(
        objects={
            "HEAD": A,
            "refs/heads/main": A,
            "refs/heads/both": A,
            "refs/tags/both": B,
            "refs/tags/v1": B,
            "refs/pull/1/head": C,
        },
        symbolic={"HEAD": "refs/heads/main"},
    )
    assert resolve(refs, ref) == meant


@pytest.mark.parametrize(
    ("ref", "everything"),
    [
        ("", True),
        ("HEAD", True),
        ("refs/pull/1/head", True),
        ("refs/heads/main", False),
        ("refs/tags/v1", False),
        ("main", False),
    ],
)
def test_only_what_is_needed_is_listed(ref: str, *, everything: bool) -> None:
    assert needs_everything(ref) is everything
