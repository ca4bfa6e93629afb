"""If the grammar ever lets something through, git must still not do what it says."""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from doubles.gitserver import GitServer
from pequod.sources.credentials import Credentials
from pequod.sources.errors import SourceError
from pequod.sources.git.address import GitReference
from pequod.sources.git.command import Call, CommandError, Git
from pequod.sources.git.source import GitSource
from pequod.sources.limits import Limits

Refer = Callable[..., GitReference]


def _forged(reference: GitReference, field: str, value: str) -> GitReference:
    object.__setattr__(reference, field, value)
    return reference


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("ref", "--upload-pack=touch {canary}"),
        ("ref", "--output={canary}"),
        ("path", "--output={canary}"),
        ("path", "-o{canary}"),
        ("path", "../../etc"),
        ("path", ":(exclude)x"),
    ],
)
async def test_case_71_an_option_that_got_past_the_grammar_is_only_a_name(
    server: GitServer, source: GitSource, trust: Credentials, tmp_path: Path, field: str, value: str
) -> None:
    canary = tmp_path / "canary"
    repository = server.repository()
    before, after = repository.commit({"a": "1"}), repository.commit({"a": "2"})
    wanted = _forged(GitReference(url=server.url()), field, value.format(canary=canary))
    with pytest.raises(SourceError):
        await source.resolve(wanted, credentials=trust)
    with suppress(SourceError):
        await source.changed(wanted, before, after, credentials=trust)
    assert not canary.exists()
    assert not [one for one in tmp_path.rglob("*") if "canary" in one.name]


@pytest.mark.parametrize(
    "url",
    [
        "ext::sh -c touch% {canary}",
        "EXT::sh -c touch% {canary}",
        "fd::0",
        "file://{served}",
        "{served}",
        "git://127.0.0.1:1/app.git",
        "ssh://-oProxyCommand=touch%20{canary}/app",
        "http://127.0.0.1:1/app.git",
    ],
)
async def test_case_72_transports_that_are_not_allowed_are_not_used(
    server: GitServer, tmp_path: Path, url: str
) -> None:
    canary = tmp_path / "canary"
    served = server.repository().folder
    home = tmp_path / "home"
    home.mkdir()
    settings = (("remote.origin.url", url.format(canary=canary, served=served)),)
    call = Call(
        arguments=("ls-remote", "--end-of-options", "origin"),
        settings=settings,
        protocols=("https", "ssh"),
    )
    with pytest.raises(CommandError) as caught:
        await Git(home, Limits(seconds=20)).run(call)
    assert "not allowed" in caught.value.complaint or "strange hostname" in caught.value.complaint
    assert not canary.exists()


async def test_case_72_whatever_reads_a_mirror_has_no_network(
    server: GitServer, tmp_path: Path
) -> None:
    settings = (("remote.origin.url", server.url()),)
    call = Call(arguments=("ls-remote", "origin"), settings=settings)
    with pytest.raises(CommandError, match="not allowed"):
        await Git(tmp_path, Limits(seconds=20)).run(call)
    assert not server.journal


@pytest.mark.parametrize("config", ["insteadOf", "include", "sshCommand", "helper"])
async def test_case_73_what_a_mirrors_own_configuration_says_does_not_matter(
    server: GitServer,
    source: GitSource,
    trust: Credentials,
    tmp_path: Path,
    config: str,
) -> None:
    canary = tmp_path / "canary"
    repository = server.repository()
    repository.commit({"a": "1"})
    wanted = GitReference(url=server.url(), ref="main")
    await source.resolve(wanted, credentials=trust)
    evil = tmp_path / "evil"
    evil.write_text(f'[core]\n fsmonitor = "touch {canary}"\n')
    lines = {
        "insteadOf": f'[url "ext::touch {canary} "]\n insteadOf = https://\n',
        "include": f"[include]\n path = {evil}\n",
        "sshCommand": f'[core]\n sshCommand = "touch {canary}"\n hooksPath = {tmp_path}\n',
        "helper": f'[credential]\n helper = "!touch {canary}"\n',
    }
    for mirror in (tmp_path / "git" / "0" / "mirrors").iterdir():
        with (mirror / "config").open("a") as file:
            file.write(lines[config])
    repository.commit({"a": "2"})
    if config == "insteadOf":
        with pytest.raises(SourceError, match="not allowed"):
            await source.resolve(wanted, credentials=trust)
    else:
        artifact = await source.resolve(wanted, credentials=trust)
        assert (artifact.tree / "a").read_text() == "2"
    assert not canary.exists()
