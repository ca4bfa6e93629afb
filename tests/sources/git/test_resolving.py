"""What references mean, against a real server."""

import asyncio
from collections.abc import Callable
from hashlib import sha1

import pytest

from doubles.gitrepo import Content
from doubles.gitserver import GitServer
from pequod.sources.credentials import Credentials
from pequod.sources.errors import BadReferenceError, MissingError
from pequod.sources.git.address import GitReference
from pequod.sources.git.source import GitSource

Refer = Callable[..., GitReference]


async def test_a_branch_becomes_a_tree(
    server: GitServer, source: GitSource, trust: Credentials, reference: Refer
) -> None:
    files: dict[str, Content] = {"a.txt": "hello", "deploy/b.txt": "b", "x y/ü.txt": b"\0\n"}
    commit = server.repository().commit(files, "first line\n\nmore")
    artifact = await source.resolve(reference("ref=main"), credentials=trust)
    assert artifact.revision == f"main@sha1:{commit}"
    assert (artifact.tree / "a.txt").read_text() == "hello"
    assert (artifact.tree / "deploy" / "b.txt").read_text() == "b"
    assert (artifact.tree / "x y" / "ü.txt").read_bytes() == b"\0\n"
    assert artifact.metadata == {
        "commit": commit,
        "ref": "refs/heads/main",
        "ref-kind": "branch",
        "subject": "first line",
        "author": "Ada",
        "authored": "2023-11-14T22:13:20+00:00",
    }


@pytest.mark.parametrize("ref", ["light", "heavy", "refs/tags/heavy", "refs/pull/1/head"])
async def test_tags_and_full_names_lead_to_their_commit(
    server: GitServer, source: GitSource, trust: Credentials, reference: Refer, ref: str
) -> None:
    repository = server.repository()
    first = repository.commit({"a": "1"})
    repository.commit({"a": "2"})
    repository.tag("light", first)
    repository.tag("heavy", first, annotated=True)
    repository.point("refs/pull/1/head", first)
    artifact = await source.resolve(reference(f"ref={ref}"), credentials=trust)
    assert artifact.revision == f"{ref}@sha1:{first}"
    assert (artifact.tree / "a").read_text() == "1"
    assert artifact.metadata["ref-kind"] == ("ref" if "pull" in ref else "tag")


async def test_no_ref_means_the_head_of_the_repository(
    server: GitServer, source: GitSource, trust: Credentials, reference: Refer
) -> None:
    commit = server.repository().commit({"a": "1"})
    artifact = await source.resolve(reference(), credentials=trust)
    assert artifact.revision == f"HEAD@sha1:{commit}"
    assert artifact.metadata["ref"] == "refs/heads/main"


async def test_a_full_commit_id_is_taken_at_its_word(
    server: GitServer, source: GitSource, trust: Credentials, reference: Refer
) -> None:
    repository = server.repository()
    first = repository.commit({"a": "1"})
    repository.commit({"a": "2"})
    artifact = await source.resolve(reference(f"ref={first}"), credentials=trust)
    assert artifact.metadata["commit"] == first
    assert (artifact.tree / "a").read_text() == "1"
    assert not any(b"command=ls-refs" in asked.body for asked in server.journal)


async def test_a_short_commit_id_is_found_in_the_history_and_remembered(
    server: GitServer, source: GitSource, trust: Credentials, reference: Refer
) -> None:
    repository = server.repository()
    first = repository.commit({"a": "1"})
    repository.commit({"a": "2"})
    wanted = reference(f"ref={first[:9]}")
    artifact = await source.resolve(wanted, credentials=trust)
    assert artifact.revision == f"{first[:9]}@sha1:{first}"
    assert (artifact.tree / "a").read_text() == "1"
    fetches = len(server.fetches)
    assert (await source.commit_of(wanted, credentials=trust)).commit == first
    assert len(server.fetches) == fetches


async def test_a_branch_that_looks_like_a_commit_is_a_branch(
    server: GitServer, source: GitSource, trust: Credentials, reference: Refer
) -> None:
    commit = server.repository().commit({"a": "1"}, branch="deadbee")
    meant = await source.commit_of(reference("ref=deadbee"), credentials=trust)
    assert (meant.commit, meant.kind) == (commit, "branch")


async def test_a_short_id_of_no_commit_is_told(
    server: GitServer, source: GitSource, trust: Credentials, reference: Refer
) -> None:
    server.repository().commit({"a": "1"})
    with pytest.raises(MissingError, match="no branch, tag or commit"):
        await source.commit_of(reference("ref=abcdef0"), credentials=trust)


async def test_a_short_id_of_several_commits_is_refused_with_the_choices(
    server: GitServer, source: GitSource, trust: Credentials, reference: Refer
) -> None:
    repository = server.repository()
    twins = _twins(repository.tree())
    for text in twins:
        commit = repository.git("hash-object", "-t", "commit", "-w", "--stdin", stdin=text)
        repository.point(f"refs/heads/{commit}x", commit)
    with pytest.raises(BadReferenceError, match="may be 2 commits"):
        await source.commit_of(reference(f"ref={commit[:7]}"), credentials=trust)


def _twins(tree: str) -> tuple[bytes, bytes]:
    """Two commits whose ids begin with the same seven digits."""
    seen: dict[str, bytes] = {}
    for number in range(100_000):
        lines = (f"tree {tree}", f"author A <a@t> {number} +0000", "committer A <a@t> 0 +0000")
        text = "\n".join((*lines, "", "x", "")).encode()
        short = sha1(f"commit {len(text)}\0".encode() + text).hexdigest()[:7]
        if short in seen:
            return seen[short], text
        seen[short] = text
    raise AssertionError


async def test_case_78_a_name_of_both_a_branch_and_a_tag_is_the_branch_and_says_so(
    server: GitServer, source: GitSource, trust: Credentials, reference: Refer
) -> None:
    repository = server.repository()
    first = repository.commit({"a": "1"}, branch="both")
    second = repository.commit({"a": "2"}, branch="both")
    repository.tag("both", first)
    artifact = await source.resolve(reference("ref=both"), credentials=trust)
    assert artifact.metadata["commit"] == second
    assert artifact.metadata["ambiguous"] == "refs/tags/both was not used"


async def test_only_the_wanted_folder_is_fetched_and_exported(
    server: GitServer, source: GitSource, trust: Credentials, reference: Refer
) -> None:
    server.repository().commit({"deploy/base/a": "1", "deploy/base/b/c": "2", "other": "3" * 9999})
    artifact = await source.resolve(reference("path=deploy/base"), credentials=trust)
    found = sorted(str(one.relative_to(artifact.tree)) for one in artifact.tree.rglob("*"))
    assert found == ["a", "b", "b/c"]
    assert artifact.metadata["path"] == "deploy/base"
    assert len(server.fetches) == 2


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("deploy/bas", "folders: deploy/base, deploy/extra"),
        ("nothing/at/all", "folders: deploy"),
        ("file", "it is no folder"),
    ],
)
async def test_a_missing_folder_is_told_with_those_that_exist(
    server: GitServer, source: GitSource, trust: Credentials, path: str, said: str
) -> None:
    server.repository().commit({"deploy/base/a": "1", "deploy/extra/a": "1", "file": "x"})
    wanted = GitReference(url=server.url(), path=path)
    with pytest.raises(MissingError, match=said):
        await source.resolve(wanted, credentials=trust)


@pytest.mark.parametrize("ref", ["gone", "refs/heads/gone", "0" * 39 + "1"])
async def test_a_missing_revision_is_told(
    server: GitServer, source: GitSource, trust: Credentials, reference: Refer, ref: str
) -> None:
    server.repository().commit({"a": "1"})
    with pytest.raises(MissingError, match=r"no branch, tag or commit|no such revision"):
        await source.resolve(reference(f"ref={ref}"), credentials=trust)


async def test_a_missing_repository_is_told(
    server: GitServer, source: GitSource, trust: Credentials, reference: Refer
) -> None:
    server.repository().commit({"a": "1"})
    with pytest.raises(MissingError, match="no such repository"):
        await source.resolve(reference("ref=main", "other"), credentials=trust)


async def test_a_tag_of_a_file_is_no_revision(
    server: GitServer, source: GitSource, trust: Credentials, reference: Refer
) -> None:
    repository = server.repository()
    repository.commit({"a": "1"})
    repository.point("refs/tags/blob", repository.blob(b"x"))
    with pytest.raises(MissingError, match="is a blob, not a commit"):
        await source.resolve(reference("ref=blob"), credentials=trust)


async def test_repositories_with_long_hashes_work_as_well(
    server: GitServer, source: GitSource, trust: Credentials, reference: Refer
) -> None:
    commit = server.repository(algorithm="sha256").commit({"a": "1"})
    artifact = await source.resolve(reference("ref=main"), credentials=trust)
    assert artifact.revision == f"main@sha256:{commit}"
    assert (artifact.tree / "a").read_text() == "1"


async def test_what_is_still_the_same_is_not_fetched_again(
    server: GitServer, source: GitSource, trust: Credentials, reference: Refer
) -> None:
    server.repository().commit({"a": "1"})
    first = await source.resolve(reference("ref=main"), credentials=trust)
    server.journal.clear()
    again = await source.resolve(reference("ref=main"), credentials=trust, known=first)
    assert again is first
    assert len(server.journal) == 2
    assert not server.fetches


async def test_another_name_for_the_same_commit_costs_no_fetch(
    server: GitServer, source: GitSource, trust: Credentials, reference: Refer
) -> None:
    repository = server.repository()
    repository.tag("v1", repository.commit({"a": "1"}))
    first = await source.resolve(reference("ref=main"), credentials=trust)
    server.journal.clear()
    again = await source.resolve(reference("ref=v1"), credentials=trust, known=first)
    assert (again.digest, again.metadata["ref-kind"]) == (first.digest, "tag")
    assert again.revision.startswith("v1@sha1:")
    assert not server.fetches


async def test_one_more_commit_costs_one_small_fetch(
    server: GitServer, source: GitSource, trust: Credentials, reference: Refer
) -> None:
    repository = server.repository()
    repository.commit({f"f{n}": str(n) * 1000 for n in range(50)})
    first = await source.resolve(reference("ref=main"), credentials=trust)
    repository.commit({"f1": "other"})
    server.journal.clear()
    received: list[int] = []

    async def measure(request: object) -> None:
        _, _, content = await server.backend(request)  # type: ignore[arg-type]
        received.append(len(content))

    server.behaviour = measure
    second = await source.resolve(reference("ref=main"), credentials=trust, known=first)
    assert (second.tree / "f1").read_text() == "other"
    assert (second.tree / "f2").read_text() == "2" * 1000
    assert len(server.fetches) == 1
    assert f"have {first.metadata['commit']}".encode() in server.fetches[0].body
    assert max(received) < 2500


async def test_a_commit_elsewhere_does_not_write_the_folder_again(
    server: GitServer, source: GitSource, trust: Credentials, reference: Refer
) -> None:
    repository = server.repository()
    repository.commit({"deploy/a": "1", "other": "1"})
    first = await source.resolve(reference("path=deploy"), credentials=trust)
    second = repository.commit({"other": "2"}, "elsewhere")
    server.journal.clear()
    again = await source.resolve(reference("path=deploy"), credentials=trust, known=first)
    assert again.digest == first.digest
    assert again.revision == f"HEAD@sha1:{second}"
    assert again.metadata["subject"] == "elsewhere"
    assert len(server.fetches) == 1


async def test_equal_questions_at_the_same_time_are_asked_once(
    server: GitServer, source: GitSource, trust: Credentials, reference: Refer
) -> None:
    server.repository().commit({"a": "1"})
    wanted = reference("ref=main")
    artifacts = await asyncio.gather(*(source.resolve(wanted, credentials=trust) for _ in range(5)))
    assert len({one.digest for one in artifacts}) == 1
    assert len(server.fetches) == 1
    assert len(server.journal) == 4


async def test_refs_are_remembered_for_as_long_as_the_caller_says(
    server: GitServer, source: GitSource, trust: Credentials, reference: Refer
) -> None:
    repository = server.repository()
    first = repository.commit({"a": "1"})
    await source.commit_of(reference("ref=main"), credentials=trust)
    second = repository.commit({"a": "2"})
    server.journal.clear()
    old = await source.commit_of(reference("ref=main"), credentials=trust, max_age=600)
    assert (old.commit, server.journal) == (first, [])
    assert (await source.commit_of(reference("ref=main"), credentials=trust)).commit == second


async def test_the_paths_that_differ_between_two_commits(
    server: GitServer, source: GitSource, trust: Credentials, reference: Refer
) -> None:
    repository = server.repository()
    before = repository.commit({"a/x": "1", "b/y": "1", "c": "1"})
    after = repository.commit({"a/x": "2", "b/z": "1"})
    assert await source.changed(reference(), before, after, credentials=trust) == ["a/x", "b/z"]
    assert await source.changed(reference("path=b"), before, after, credentials=trust) == ["b/z"]
    with pytest.raises(BadReferenceError, match="not a full commit id"):
        await source.changed(reference(), "--output=/tmp/x", after, credentials=trust)
    with pytest.raises(MissingError, match="no such revision"):
        await source.changed(reference(), "1" * 40, after, credentials=trust)
