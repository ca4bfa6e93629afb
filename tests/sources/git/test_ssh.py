"""Repositories that are reached by SSH, with OpenSSH's own server."""

import os
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from doubles.gitrepo import Repository
from doubles.sshserver import Pair, SshServer, sshd_program
from pequod.sources.credentials import ANONYMOUS, Credentials, SshKey
from pequod.sources.errors import DeniedError, MissingError, UnavailableError
from pequod.sources.git.address import parse
from pequod.sources.git.source import GitSource

pytestmark = pytest.mark.skipif(
    sshd_program() is None and "CI" not in os.environ,
    reason="git over SSH was not tested: install openssh-server",
)


@pytest.fixture
async def sshd(tmp_path: Path) -> AsyncIterator[SshServer]:
    server = SshServer(tmp_path / "sshd")
    await server.start()
    yield server
    await server.stop()


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    repository = Repository(tmp_path / "served" / "app.git")
    repository.commit({"a": "1", "deploy/b": "2"})
    return repository


def _credentials(server: SshServer) -> Credentials:
    key = SshKey(private=server.client_key.private, known_hosts=server.known_hosts)
    return Credentials(ssh=key, fingerprint="ssh")


async def test_a_repository_is_read_with_a_key(
    sshd: SshServer, repository: Repository, source: GitSource, tmp_path: Path
) -> None:
    wanted = parse(f"{sshd.url(repository.folder)}?ref=main&path=deploy")
    artifact = await source.resolve(wanted, credentials=_credentials(sshd))
    assert artifact.revision == f"main@sha1:{repository.head()}"
    assert (artifact.tree / "b").read_text() == "2"
    assert not list((tmp_path / "git" / "0" / "private").iterdir())


async def test_a_server_with_the_oldest_protocol_gives_whole_commits(
    repository: Repository, source: GitSource, tmp_path: Path
) -> None:
    sshd = SshServer(tmp_path / "sshd", protocol=False)
    await sshd.start()
    try:
        for wanted in ("path=deploy", ""):
            reference = parse(f"{sshd.url(repository.folder)}?ref=main&{wanted}".rstrip("&"))
            artifact = await source.resolve(reference, credentials=_credentials(sshd))
            inside = artifact.tree / ("b" if wanted else "deploy/b")
            assert inside.read_text() == "2"
            repository.commit({"a": wanted})
    finally:
        await sshd.stop()


async def test_without_a_key_nobody_is_asked(
    sshd: SshServer, repository: Repository, source: GitSource
) -> None:
    with pytest.raises(DeniedError, match="needs a key"):
        await source.resolve(parse(sshd.url(repository.folder)), credentials=ANONYMOUS)


async def test_another_key_is_denied(
    sshd: SshServer, repository: Repository, source: GitSource
) -> None:
    key = SshKey(private=Pair.made().private, known_hosts=sshd.known_hosts)
    with pytest.raises(DeniedError, match="does not accept the credentials"):
        await source.resolve(
            parse(sshd.url(repository.folder)), credentials=Credentials(ssh=key, fingerprint="x")
        )


async def test_something_that_is_no_key_is_denied_without_repeating_it(
    sshd: SshServer, repository: Repository, source: GitSource
) -> None:
    key = SshKey(private="not-a-key-but-secret\n", known_hosts=sshd.known_hosts)
    with pytest.raises(DeniedError) as caught:
        await source.resolve(
            parse(sshd.url(repository.folder)), credentials=Credentials(ssh=key, fingerprint="x")
        )
    assert "not-a-key-but-secret" not in str(caught.value)


@pytest.mark.parametrize("known", ["changed", "other host"])
async def test_case_77_a_host_with_another_key_is_not_believed(
    sshd: SshServer, repository: Repository, source: GitSource, known: str
) -> None:
    right = _credentials(sshd)
    lines = {
        "changed": f"[git.test]:{sshd.port} {Pair.made().public}\n",
        "other host": f"other.test {sshd.host_key.public}\n",
    }
    assert right.ssh is not None
    key = replace(right.ssh, known_hosts=lines[known])
    with pytest.raises(DeniedError, match="not one of known_hosts"):
        await source.resolve(
            parse(sshd.url(repository.folder)), credentials=Credentials(ssh=key, fingerprint="x")
        )


async def test_a_missing_repository_is_told_by_ssh_as_well(
    sshd: SshServer, source: GitSource, tmp_path: Path
) -> None:
    with pytest.raises(MissingError, match="no such repository"):
        await source.resolve(
            parse(sshd.url(tmp_path / "nothing.git")), credentials=_credentials(sshd)
        )


async def test_nobody_at_the_port_is_told(sshd: SshServer, source: GitSource) -> None:
    credentials = _credentials(sshd)
    url = sshd.url(Path("/app.git")).replace(str(sshd.port), "1")
    with pytest.raises(UnavailableError):
        await source.resolve(parse(url), credentials=credentials)
