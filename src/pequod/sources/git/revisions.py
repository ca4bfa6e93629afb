"""How a commit is shown to people, and compared with what was known before."""

from collections.abc import Mapping
from dataclasses import replace

from pequod.sources.artifact import Artifact
from pequod.sources.git.address import Wanted
from pequod.sources.git.refs import Resolved

_MOST_SUBMODULES = 20
_OF_REFS = {"ref-kind", "ref", "ambiguous", "moved-from"}


def algorithm(commit: str) -> str:
    """The hash function of a repository, by the length of what it yields."""
    return "sha1" if len(commit) == 40 else "sha256"


def revision(reference: Wanted, meant: Resolved) -> str:
    """`main@sha1:…`: what was asked for, and what it meant."""
    return f"{reference.ref or 'HEAD'}@{algorithm(meant.commit)}:{meant.commit}"


def same_content(known: Artifact, reference: Wanted, meant: Resolved) -> bool:
    """Whether what is known is the same folder of the same commit."""
    had = known.metadata
    return had.get("commit") == meant.commit and had.get("path", "") == reference.path


def renamed(known: Artifact, reference: Wanted, meant: Resolved) -> Artifact:
    """The same content under the name that it is asked for by; itself if that is the same."""
    if known.revision == revision(reference, meant):
        return known
    content = {key: value for key, value in known.metadata.items() if key not in _OF_REFS}
    about = {**content, **ref_metadata(reference, meant, known)}
    return replace(known, revision=revision(reference, meant), metadata=about)


def ref_metadata(reference: Wanted, meant: Resolved, known: Artifact | None) -> Mapping[str, str]:
    """What there is to say about the way from the ref to its commit."""
    said = {
        "commit": meant.commit,
        "path": reference.path,
        "ref-kind": meant.kind,
        "ref": meant.name,
        "ambiguous": f"refs/tags/{reference.ref} was not used" if meant.ambiguous else "",
        "moved-from": _moved_from(reference, meant, known),
    }
    return {key: value for key, value in said.items() if value}


def _moved_from(reference: Wanted, meant: Resolved, known: Artifact | None) -> str:
    """Where a tag was before: tags are meant to stay, so people are told."""
    if known is None or meant.kind != "tag" or known.metadata.get("ref") != meant.name:
        return ""
    before = known.metadata.get("commit", "")
    same_name = known.revision.partition("@")[0] == reference.ref
    return before if same_name and before != meant.commit else ""


def content_metadata(commit: Mapping[str, str], submodules: list[str]) -> Mapping[str, str]:
    """What there is to say about the commit and its files."""
    left_out = ", ".join(submodules[:_MOST_SUBMODULES])
    return {**commit, **({"submodules": left_out} if left_out else {})}
