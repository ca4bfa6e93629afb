"""Artifacts of a real registry become trees."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

import evaluators
from doubles.archives import files_of, member, tar, tar_of, targz_of, zip_of
from doubles.registry import RegistryServer
from pequod.sources.credentials import Credentials
from pequod.sources.errors import BadReferenceError, MissingError, RefusedError, TooLargeError
from pequod.sources.limits import MEBIBYTE, Limits
from pequod.sources.oci.source import OciOptions, OciSource

Publish = Callable[..., Awaitable[str]]
MakeSource = Callable[..., Awaitable[OciSource]]
FILES = {"a.cue": b"a: 1\n", "deep/b.cue": b"b: 2\n"}
TITLE = "org.opencontainers.image.title"
FLUX = "application/vnd.cncf.flux.content.v1.tar+gzip"
CUE = "application/vnd.cue.module.v1+json"
MODULE = {"cue.mod/module.cue": 'module: "example.test/m@v0"\nlanguage: version: "v0.12.0"\n'}


@pytest.mark.parametrize(
    ("media_type", "content"),
    [
        (FLUX, targz_of(FILES)),
        ("application/vnd.timoni.content.v1.tar+gzip", targz_of(FILES)),
        ("application/vnd.oci.image.layer.v1.tar", tar_of(FILES)),
        ("application/vnd.oci.image.layer.v1.tar+gzip", targz_of(FILES)),
        ("application/vnd.docker.image.rootfs.diff.tar.gzip", targz_of(FILES)),
        ("application/vnd.pequod.module.v1.tar+gzip", targz_of(FILES)),
        ("application/vnd.somebody.else.tar", tar_of(FILES)),
        ("application/zip", zip_of(FILES)),
        (
            "application/vnd.cncf.helm.chart.content.v1.tar+gzip",
            targz_of({f"chart/{name}": content for name, content in FILES.items()}),
        ),
    ],
)
async def test_each_kind_of_archive_becomes_a_tree(
    media_type: str,
    content: bytes,
    source: OciSource,
    publish: Publish,
    repository: str,
    trust: Credentials,
) -> None:
    digest = await publish([(media_type, content)])
    found = await source.resolve(f"oci://{repository}:v1", credentials=trust)
    assert files_of(found.tree) == FILES
    assert found.revision == f"v1@{digest}"


async def test_single_files_are_named_by_their_titles(
    source: OciSource, publish: Publish, repository: str, trust: Credentials
) -> None:
    untyped = "application/vnd.oci.image.layer.v1.tar"
    await publish(
        [
            ("text/plain", b"a: 1\n", {TITLE: "a.cue"}),
            (untyped, b"b: 2\n", {TITLE: "deep/b.cue"}),
        ]
    )
    assert files_of((await source.resolve(f"{repository}:v1", credentials=trust)).tree) == FILES


async def test_layers_are_laid_over_each_other(
    source: OciSource, publish: Publish, repository: str, trust: Credentials
) -> None:
    await publish([(FLUX, targz_of({"a": b"1"})), (FLUX, targz_of({"b/c": b"2"}))])
    found = await source.resolve(f"{repository}:v1", credentials=trust)
    assert files_of(found.tree) == {"a": b"1", "b/c": b"2"}


@pytest.mark.parametrize(
    ("layers", "problem"),
    [
        ([(FLUX, targz_of({"a": b"1"})), (FLUX, targz_of({"a": b"2"}))], "a is there twice"),
        ([("text/plain", b"x")], "neither an archive"),
        ([("application/vnd.a.tar+zstd", b"x")], "neither an archive"),
        ([("text/plain", b"x", {TITLE: "../../etc/x"})], "has empty, . or .. parts"),
        ([("text/plain", b"x", {TITLE: "/etc/x"})], "is absolute"),
        ([(FLUX, b"no archive")], "breaks off"),
        ([(FLUX, tar(member("a", type=b"2", linkname="/etc/passwd")))], "symbolic link"),
        ([(FLUX, tar_of({"../out": b""}))], "parts"),
        ([], "no content"),
    ],
)
async def test_case_82_a_hostile_artifact_is_refused(
    layers: list[tuple[str, bytes]],
    problem: str,
    source: OciSource,
    publish: Publish,
    repository: str,
    trust: Credentials,
) -> None:
    await publish(layers)
    with pytest.raises(RefusedError, match=problem):
        await source.resolve(f"{repository}:v1", credentials=trust)


async def test_case_82_a_bomb_in_a_layer_ends_early(
    source: OciSource, publish: Publish, repository: str, trust: Credentials, tmp_path: Path
) -> None:
    await publish([(FLUX, targz_of({"a": b"\0" * (60 * MEBIBYTE)}))])
    with pytest.raises(TooLargeError, match="as only bombs do"):
        await source.resolve(f"{repository}:v1", credentials=trust)
    assert list((tmp_path / "store" / "incoming").iterdir()) == []


async def test_case_76_layers_that_are_too_large_are_not_received(
    server: RegistryServer,
    make_source: MakeSource,
    publish: Publish,
    repository: str,
    trust: Credentials,
) -> None:
    source = await make_source(limits=Limits(transfer_bytes=1000))
    await publish([(FLUX, tar_of({"a": b"x" * 2000}))])
    with pytest.raises(TooLargeError, match="more than 1000 bytes"):
        await source.resolve(f"{repository}:v1", credentials=trust)
    assert not any("/blobs/" in one.path for one in server.journal)


async def test_a_folder_that_is_pushed_is_pulled_again(
    source: OciSource, repository: str, trust: Credentials, tmp_path: Path
) -> None:
    folder = evaluators.write(tmp_path / "folder", {"a": "1", ".git/config": "x"})
    digest = await source.push(folder, f"{repository}:v1", credentials=trust)
    assert await source.push(folder, f"{repository}:v2", credentials=trust) == digest
    found = await source.resolve(f"{repository}:v1", credentials=trust)
    assert files_of(found.tree) == {"a": b"1"}


async def test_a_cue_module_is_pushed_as_one(
    source: OciSource, repository: str, trust: Credentials, tmp_path: Path
) -> None:
    folder = evaluators.write(tmp_path / "folder", {**MODULE, "m.cue": "package m\n"})
    await source.push(folder, f"{repository}:v0.1.0", credentials=trust)
    found = await source.resolve(f"{repository}:v0.1.0", credentials=trust)
    assert set(files_of(found.tree)) == {"cue.mod/module.cue", "m.cue"}


async def test_a_folder_with_a_link_is_not_pushed(
    server: RegistryServer, source: OciSource, repository: str, trust: Credentials, tmp_path: Path
) -> None:
    folder = evaluators.write(tmp_path / "folder", {"a": "1"})
    (folder / "link").symlink_to("/etc/passwd")
    with pytest.raises(RefusedError, match="link is a link"):
        await source.push(folder, f"{repository}:v1", credentials=trust)
    assert server.journal == []


async def test_nobody_chooses_the_digest_of_what_is_pushed(
    source: OciSource, repository: str, tmp_path: Path
) -> None:
    with pytest.raises(BadReferenceError, match="write a tag only"):
        await source.push(tmp_path, f"{repository}@sha256:{'0' * 64}")


async def test_a_module_file_that_is_another_one_is_refused(
    source: OciSource, publish: Publish, repository: str, trust: Credentials
) -> None:
    content = zip_of({"cue.mod/module.cue": b'module: "a.test/m@v0"'})
    shown = b'module: "b.test/m@v0"'
    layers = [("application/zip", content), ("application/vnd.cue.modulefile.v1", shown)]
    await publish(layers, config_type=CUE)
    with pytest.raises(RefusedError, match="not the same as the one that the registry shows"):
        await source.resolve(f"{repository}:v1", credentials=trust)


async def test_only_a_folder_of_it_may_be_wanted(
    source: OciSource, publish: Publish, repository: str, trust: Credentials
) -> None:
    await publish([(FLUX, targz_of({"deploy/base/a": b"1", "other": b"2"}))])
    found = await source.resolve(f"{repository}:v1", path="deploy/base/", credentials=trust)
    assert files_of(found.tree) == {"a": b"1"}
    whole = await source.resolve(f"{repository}:v1", credentials=trust, known=found)
    assert files_of(whole.tree) == {"deploy/base/a": b"1", "other": b"2"}
    with pytest.raises(MissingError, match="there is no folder other in it"):
        await source.resolve(f"{repository}:v1", path="other", credentials=trust)


@pytest.mark.parametrize("path", ["../x", "/etc", "a/../../b", "a\\b", "a//b", "a\0b"])
async def test_case_75_a_path_that_leads_astray_is_refused(
    path: str, server: RegistryServer, source: OciSource, repository: str
) -> None:
    with pytest.raises(BadReferenceError, match="the path"):
        await source.resolve(f"{repository}:v1", path=path)
    assert server.journal == []


async def test_annotations_are_shown_in_part_and_cut(
    source: OciSource, publish: Publish, repository: str, trust: Credentials
) -> None:
    about = {
        "org.opencontainers.image.source": "https://git.test/app",
        "org.opencontainers.image.version": "x" * 1000,
        "org.opencontainers.image.revision": "line\nbreak",
        "com.example.other": "not shown",
    }
    digest = await publish([(FLUX, targz_of(FILES))], annotations=about)
    found = await source.resolve(f"{repository}:v1", credentials=trust)
    assert found.metadata["source"] == "https://git.test/app"
    assert len(found.metadata["version"]) <= 257
    assert found.metadata["revision"] == "line\\nbreak"
    assert found.metadata["manifest"] == digest
    assert "not shown" not in found.metadata.values()


async def test_what_is_not_there_is_missed(
    source: OciSource, publish: Publish, repository: str, trust: Credentials
) -> None:
    await publish([(FLUX, targz_of(FILES))])
    with pytest.raises(MissingError, match="check the repository and the tag"):
        await source.resolve(f"{repository}:v2", credentials=trust)
    with pytest.raises(MissingError):
        await source.resolve(f"{repository}-not:v1", credentials=trust)
    with pytest.raises(MissingError):
        await source.resolve(f"{repository}@sha256:{'0' * 64}", credentials=trust)


async def test_nothing_is_pulled_when_nothing_has_changed(
    server: RegistryServer,
    source: OciSource,
    publish: Publish,
    repository: str,
    trust: Credentials,
) -> None:
    digest = await publish([(FLUX, targz_of(FILES))])
    known = await source.resolve(f"{repository}:v1", credentials=trust)
    server.journal.clear()
    assert await source.resolve(f"{repository}:v1", credentials=trust, known=known) is known
    assert [(one.method, one.path.rpartition("/")[2]) for one in server.journal] == [("HEAD", "v1")]
    server.journal.clear()
    pinned = await source.resolve(f"{repository}:v1@{digest}", credentials=trust, known=known)
    assert pinned is known
    assert server.journal == []


async def test_a_tag_that_moved_is_pulled_and_reported(
    source: OciSource, publish: Publish, repository: str, trust: Credentials
) -> None:
    before = await publish([(FLUX, targz_of({"a": b"1"}))])
    known = await source.resolve(f"{repository}:v1", credentials=trust)
    after = await publish([(FLUX, targz_of({"a": b"2"}))])
    found = await source.resolve(f"{repository}:v1", credentials=trust, known=known)
    assert files_of(found.tree) == {"a": b"2"}
    assert found.revision == f"v1@{after}"
    assert found.metadata["moved-from"] == before


async def test_what_many_want_is_pulled_once(
    server: RegistryServer,
    source: OciSource,
    publish: Publish,
    repository: str,
    trust: Credentials,
) -> None:
    digest = await publish([(FLUX, targz_of(FILES))])
    wanted = (source.resolve(f"{repository}@{digest}", credentials=trust) for _ in range(10))
    found = await asyncio.gather(*wanted)
    assert len({one.digest for one in found}) == 1
    assert sum("/blobs/" in one.path for one in server.journal) == 1


async def test_a_registry_without_tls_has_to_be_named(
    registry_port: int, make_source: MakeSource, publish: Publish, repository: str
) -> None:
    await publish([(FLUX, targz_of(FILES))])
    host = f"127.0.0.1:{registry_port}"
    reference = f"{host}/{repository.partition('/')[2]}:v1"
    local = OciOptions(rule=(await make_source())._options.rule, plain_http=frozenset({host}))
    found = await (await make_source(options=local)).resolve(reference)
    assert files_of(found.tree) == FILES
