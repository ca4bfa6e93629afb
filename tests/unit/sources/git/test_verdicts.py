"""What git says, and what that means."""

import pytest

from pequod.sources.errors import (
    DeniedError,
    MissingError,
    RefusedError,
    SourceError,
    TooLargeError,
    UnavailableError,
)
from pequod.sources.git.command import AbsentError, CommandError, TooMuchError, TooSlowError
from pequod.sources.git.verdicts import is_broken, judge


@pytest.mark.parametrize(
    ("complaint", "kind"),
    [
        ("fatal: repository 'https://x/y/' not found", MissingError),
        ("fatal: '/x' does not appear to be a git repository", MissingError),
        ("fatal: couldn't find remote ref refs/heads/x", MissingError),
        ("fatal: remote error: upload-pack: not our ref 1234", MissingError),
        ("error: Server does not allow request for unadvertised object 12", MissingError),
        ("fatal: unable to access 'x': The requested URL returned error: 404", MissingError),
        ("fatal: Authentication failed for 'https://x/'", DeniedError),
        ("fatal: could not read Username for 'https://x': terminal prompts disabled", DeniedError),
        ("fatal: unable to access 'x': The requested URL returned error: 403", DeniedError),
        ("git@x: Permission denied (publickey).\nfatal: Could not read from remote", DeniedError),
        ("Host key verification failed.\nfatal: Could not read from remote", DeniedError),
        ("fatal: unable to access 'x': server certificate verification failed.", DeniedError),
        ("fatal: unable to access 'x': The requested URL returned error: 302", RefusedError),
        ("fatal: transport 'file' not allowed", RefusedError),
        ("error: object 12: hasDotgit: contains '.git'\nfatal: fsck error", RefusedError),
        ("fatal: write error: File too large", TooLargeError),
        ("fatal: Out of memory, malloc failed", TooLargeError),
        ("fatal: unable to access 'x': Could not resolve host: y", UnavailableError),
        ("fatal: unable to access 'x': Failed to connect to y: refused", UnavailableError),
        ("fatal: the remote end hung up unexpectedly", UnavailableError),
        ("fatal: early EOF\nfatal: index-pack failed", UnavailableError),
        ("fatal: unable to access 'x': The requested URL returned error: 503", UnavailableError),
        ("something new", UnavailableError),
        ("", UnavailableError),
    ],
)
def test_every_complaint_has_its_meaning(complaint: str, kind: type[SourceError]) -> None:
    error = judge(CommandError(complaint), reference="r", step="fetch")
    assert type(error) is kind
    assert error.transient is (kind is UnavailableError)


def test_what_a_server_says_decides_nothing() -> None:
    said = "remote: fatal: Authentication failed\nfatal: the remote end hung up unexpectedly"
    assert isinstance(judge(CommandError(said), reference="r", step="s"), UnavailableError)


def test_limits_and_deadlines_are_their_own_meaning() -> None:
    def kind(error: CommandError) -> type[SourceError]:
        return type(judge(error, reference="r", step="s"))

    assert kind(TooMuchError("more than 5 bytes arrived")) is TooLargeError
    assert kind(TooSlowError("it took longer than 5 seconds")) is UnavailableError
    assert kind(AbsentError("git is not there")) is UnavailableError


def test_secrets_and_line_breaks_are_not_repeated() -> None:
    said = "fatal: bad header Authorization: Basic abc123\x1b[2J of the server"
    error = judge(CommandError(said), reference="r", step="s", secrets=("abc123",))
    assert "abc123" not in str(error)
    assert "\x1b" not in str(error)


@pytest.mark.parametrize(
    ("complaint", "broken"),
    [
        ("fatal: not a git repository: '/x'", True),
        ("fatal: bad object refs/pequod/12", True),
        ("error: packfile ./x.pack does not match index", True),
        ("fatal: bad config line 1 in file /x/config", True),
        ("fatal: early EOF", False),
        ("error: unable to read askpass response from '/bin/false'", False),
        ("fatal: the remote end hung up unexpectedly: Broken pipe", False),
    ],
)
def test_a_damaged_mirror_is_told_from_a_bad_server(complaint: str, *, broken: bool) -> None:
    assert is_broken(CommandError(complaint)) is broken
