"""Servers that lie, stall, break off, change their mind, or should not be reached at all."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

import pytest
from aiohttp import web

from doubles.gitserver import GitServer, Names
from pequod.kube.addresses import AddressRule
from pequod.sources.credentials import ANONYMOUS, Credentials
from pequod.sources.errors import (
    DeniedError,
    MissingError,
    RefusedError,
    SourceError,
    UnavailableError,
)
from pequod.sources.git.address import GitReference, parse
from pequod.sources.git.source import GitOptions, GitSource
from pequod.sources.limits import Limits

Refer = Callable[..., GitReference]
Make = Callable[..., Awaitable[GitSource]]


async def test_case_77_a_server_that_says_nothing_is_given_up(
    server: GitServer, make_source: Make, trust: Credentials, reference: Refer
) -> None:
    source = await make_source(limits=Limits(seconds=0.5))
    server.behaviour = server.stall
    with pytest.raises(UnavailableError, match=r"longer than 0\.5 seconds"):
        await source.resolve(reference("ref=main"), credentials=trust)


@pytest.mark.parametrize("size", [0, 40, 300])
async def test_case_77_a_pack_that_breaks_off_is_no_tree_and_the_next_fetch_works(
    server: GitServer, source: GitSource, trust: Credentials, reference: Refer, size: int
) -> None:
    server.repository().commit({f"f{number}": str(number) * 50 for number in range(20)})

    async def cut(request: web.Request) -> web.Response | None:
        if b"command=fetch" not in await request.read():
            return None
        status, headers, content = await server.backend(request)
        return web.Response(status=status, headers=headers, body=content[:size])

    server.behaviour = cut
    with pytest.raises(UnavailableError):
        await source.resolve(reference("ref=main"), credentials=trust)
    server.behaviour = None
    assert (await source.resolve(reference("ref=main"), credentials=trust)).digest


async def test_case_77_a_server_that_hangs_within_a_pack_is_given_up(
    server: GitServer, make_source: Make, trust: Credentials, reference: Refer
) -> None:
    source = await make_source(limits=Limits(seconds=1.5))
    server.repository().commit({"a": "1"})

    async def hang(request: web.Request) -> web.StreamResponse | None:
        if b"command=fetch" not in await request.read():
            return None
        _, headers, content = await server.backend(request)
        answer = web.StreamResponse(headers=headers)
        await answer.prepare(request)
        await answer.write(content[: len(content) // 2])
        await server.stall(request)
        return answer

    server.behaviour = hang
    with pytest.raises(UnavailableError, match="longer than"):
        await source.resolve(reference("ref=main"), credentials=trust)


async def test_case_76_a_server_that_drips_is_given_up(
    server: GitServer, make_source: Make, trust: Credentials, reference: Refer
) -> None:
    source = await make_source(limits=Limits(seconds=0.8))

    async def drip(request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse()
        answer.content_type = "application/x-git-upload-pack-advertisement"
        await answer.prepare(request)
        with suppress(ConnectionError):
            while True:
                await answer.write(b"0")
                await asyncio.sleep(0.01)
        return answer

    server.behaviour = drip
    with pytest.raises(UnavailableError, match="longer than"):
        await source.resolve(reference("ref=main"), credentials=trust)


async def test_case_77_a_damaged_pack_is_no_tree(
    server: GitServer, source: GitSource, trust: Credentials, reference: Refer
) -> None:
    server.repository().commit({"a": "1" * 100})

    async def damage(request: web.Request) -> web.Response | None:
        if b"command=fetch" not in await request.read():
            return None
        status, headers, content = await server.backend(request)
        middle = len(content) // 2
        broken = content[:middle] + bytes([content[middle] ^ 255]) + content[middle + 1 :]
        return web.Response(status=status, headers=headers, body=broken)

    server.behaviour = damage
    with pytest.raises(SourceError):
        await source.resolve(reference("ref=main"), credentials=trust)


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (401, DeniedError),
        (403, DeniedError),
        (404, MissingError),
        (429, UnavailableError),
        (500, UnavailableError),
        (503, UnavailableError),
    ],
)
async def test_every_answer_of_a_server_has_its_meaning(
    server: GitServer,
    source: GitSource,
    trust: Credentials,
    reference: Refer,
    status: int,
    kind: type[SourceError],
) -> None:
    async def answer(_request: web.Request) -> web.Response:
        return web.Response(status=status, text="fatal: Authentication failed")

    server.behaviour = answer
    with pytest.raises(kind):
        await source.commit_of(reference("ref=main"), credentials=trust)


async def test_something_that_is_no_git_server_is_told(
    server: GitServer, source: GitSource, trust: Credentials, reference: Refer
) -> None:
    async def page(_request: web.Request) -> web.Response:
        return web.Response(text="<html>hello</html>", content_type="text/html")

    server.behaviour = page
    with pytest.raises(SourceError) as caught:
        await source.commit_of(reference("ref=main"), credentials=trust)
    assert isinstance(caught.value, MissingError | UnavailableError)


async def test_nobody_at_the_address_is_told(
    server: GitServer, source: GitSource, trust: Credentials, reference: Refer
) -> None:
    wanted = reference("ref=main")
    await server.stop()
    with pytest.raises(UnavailableError):
        await source.commit_of(wanted, credentials=trust)


async def test_case_78_a_force_push_is_followed_to_the_new_commit(
    server: GitServer, source: GitSource, trust: Credentials, reference: Refer
) -> None:
    repository = server.repository()
    base = repository.commit({"a": "1"})
    repository.commit({"a": "2"})
    before = await source.resolve(reference("ref=main"), credentials=trust)
    repository.point("refs/heads/main", base)
    after = repository.commit({"a": "3"})
    artifact = await source.resolve(reference("ref=main"), credentials=trust, known=before)
    assert artifact.revision == f"main@sha1:{after}"
    assert (artifact.tree / "a").read_text() == "3"
    assert (before.tree / "a").read_text() == "2"


@pytest.mark.parametrize("annotated", [False, True])
async def test_case_78_a_tag_that_moved_is_reported(
    server: GitServer, source: GitSource, trust: Credentials, reference: Refer, *, annotated: bool
) -> None:
    repository = server.repository()
    first, second = repository.commit({"a": "1"}), repository.commit({"a": "2"})
    repository.tag("v1", first, annotated=annotated)
    before = await source.resolve(reference("ref=v1"), credentials=trust)
    assert "moved-from" not in before.metadata
    repository.tag("v1", second, annotated=annotated)
    artifact = await source.resolve(reference("ref=v1"), credentials=trust, known=before)
    assert artifact.metadata["commit"] == second
    assert artifact.metadata["moved-from"] == first


async def test_case_78_a_ref_that_vanishes_is_missing_and_the_old_tree_stays(
    server: GitServer, source: GitSource, trust: Credentials, reference: Refer
) -> None:
    repository = server.repository()
    repository.commit({"a": "1"})
    repository.commit({"a": "2"}, branch="feature")
    before = await source.resolve(reference("ref=feature"), credentials=trust)
    repository.git("update-ref", "-d", "refs/heads/feature")
    with pytest.raises(MissingError, match=r"branches: main"):
        await source.resolve(reference("ref=feature"), credentials=trust, known=before)
    assert (before.tree / "a").read_text() == "2"


@pytest.mark.parametrize(
    "host",
    [
        "169.254.169.254",
        "127.0.0.1",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[fe80::1]",
        "0.0.0.0",
        "[64:ff9b::7f00:1]",
        "100.100.100.200",
    ],
)
async def test_case_81_addresses_that_are_only_ours_to_reach_are_refused(
    make_source: Make, host: str
) -> None:
    source = await make_source(options=GitOptions(max_age=0))
    with pytest.raises(RefusedError, match="the host"):
        await source.resolve(parse(f"https://{host}:1/app.git"))


@pytest.mark.parametrize("scheme", ["https://", "ssh://git@"])
async def test_case_81_a_name_that_leads_to_this_machine_is_refused(
    make_source: Make, server: GitServer, scheme: str
) -> None:
    source = await make_source(options=GitOptions(max_age=0, resolver=Names()))
    with pytest.raises(RefusedError, match="no address that other people may send us to"):
        await source.resolve(parse(f"{scheme}git.test:{server.port}/app.git"))
    assert not server.journal


async def test_case_81_the_address_that_was_checked_is_the_one_that_is_connected_to(
    make_source: Make, server: GitServer, trust: Credentials, reference: Refer
) -> None:
    """No name server of this machine knows the name, so git can only have our answer."""
    names = Names("127.0.0.1")
    rule = AddressRule(allow_local=True)
    source = await make_source(options=GitOptions(rule=rule, max_age=0, resolver=names))
    server.repository().commit({"a": "1"})
    await source.commit_of(reference("ref=main"), credentials=trust)
    assert names.asked == ["git.test"]


async def test_case_81_a_name_that_changes_its_mind_is_checked_each_time(
    make_source: Make, server: GitServer, trust: Credentials, reference: Refer
) -> None:
    options = GitOptions(
        rule=AddressRule(allow_local=True),
        max_age=0,
        resolver=Names("127.0.0.1", "169.254.169.254"),
    )
    source = await make_source(options=options)
    server.repository().commit({"a": "1"})
    with pytest.raises(RefusedError):
        await source.resolve(reference("ref=main"), credentials=trust)
    assert not server.fetches


async def test_a_name_that_does_not_exist_is_told(make_source: Make) -> None:
    source = await make_source(options=GitOptions(resolver=Names()))
    with pytest.raises(UnavailableError, match="cannot be looked up"):
        await source.commit_of(parse("https://nowhere.test/app.git"), credentials=ANONYMOUS)


async def test_a_slow_fetch_of_one_repository_does_not_hold_up_another(
    server: GitServer, source: GitSource, trust: Credentials, reference: Refer
) -> None:
    server.repository("slow").commit({"a": "1"})
    server.repository("quick").commit({"a": "1"})

    async def behave(request: web.Request) -> None:
        if request.path.startswith("/slow"):
            await server.stall(request)

    server.behaviour = behave
    waiting = asyncio.create_task(source.resolve(reference("ref=main", "slow"), credentials=trust))
    await source.resolve(reference("ref=main", "quick"), credentials=trust)
    assert not waiting.done()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
