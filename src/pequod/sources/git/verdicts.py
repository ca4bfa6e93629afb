"""What a failure of git means for the one who asked.

Git has exit codes for almost nothing, so its English messages are the only evidence; they are all
here. Lines that begin with `remote:` are the server's, and decide nothing.
"""

import re
from dataclasses import dataclass

from pequod.base.logs import one_line
from pequod.sources.errors import (
    DeniedError,
    MissingError,
    RefusedError,
    SourceError,
    TooLargeError,
    UnavailableError,
)
from pequod.sources.git.command import AbsentError, CommandError, TooMuchError, TooSlowError


class BrokenError(Exception):
    """The mirror is damaged; a new one may not be."""


@dataclass(frozen=True, slots=True)
class _Verdict:
    phrases: re.Pattern[str]
    kind: type[SourceError]
    problem: str
    next_step: str


def _verdict(phrases: str, kind: type[SourceError], problem: str, next_step: str) -> _Verdict:
    return _Verdict(re.compile(phrases, re.IGNORECASE), kind, problem, next_step)


_VERDICTS = (
    _verdict(
        r"file size limit|died of signal 25|file too large|out of memory",
        TooLargeError,
        "what the server sends is more than the limit",
        "point to a smaller repository or raise the limit",
    ),
    _verdict(
        r"returned error: 30[1278]|unable to update url base from redirection",
        RefusedError,
        "the server redirects to another address, which is not followed",
        "write the address that it redirects to",
    ),
    _verdict(
        r"host key verification failed|host identification has changed",
        DeniedError,
        "the host's key is not one of known_hosts",
        "find out why, then correct known_hosts in the Secret",
    ),
    _verdict(
        r"certificate|ssl_error|gnutls_handshake|tls connect error",
        DeniedError,
        "the server's certificate cannot be verified",
        "renew it, or give the authority that signed it as ca.crt in the Secret",
    ),
    _verdict(
        r"authentication failed|could not read (username|password)|returned error: 40[13]"
        r"|permission denied|invalid credentials|access denied|invalid format|libcrypto",
        DeniedError,
        "the server does not accept the credentials",
        "give a Secret with credentials that may read the repository",
    ),
    _verdict(
        r"couldn't find remote ref|not our ref|unadvertised object|no such remote ref",
        MissingError,
        "the repository has no such revision, or does not give it out",
        "write a branch, tag or commit that is there",
    ),
    _verdict(
        r"repository .*not found|returned error: (404|410)|not appear to be a git repository"
        r"|no such repository|project you were looking for could not be found",
        MissingError,
        "there is no such repository, or not for these credentials",
        "correct the address, or give credentials that may see it",
    ),
    _verdict(
        r"fsck error|error in object|bad tree object|hasdotgit|not allowed|dumb http",
        RefusedError,
        "the repository breaks a rule of git",
        "look at it with `git fsck`, or use another server",
    ),
)

_BROKEN = re.compile(
    r"not a git repository|bad object|index file|shallow file|packfile .* (cannot|does not)"
    r"|is corrupt|corrupt loose|did not send all necessary objects|unable to create .*\.lock"
    r"|unable to read (tree|sha1|[0-9a-f]{40})|bad config|not a valid object",
    re.IGNORECASE,
)


def judge(
    error: CommandError, *, reference: str, step: str, secrets: tuple[str, ...] = ()
) -> SourceError:
    """The error that a person sees."""
    if isinstance(error, TooMuchError):
        kind, problem, next_step = TooLargeError, error.complaint, "use a smaller repository"
        return kind(reference, step=step, problem=problem, next_step=next_step)
    if isinstance(error, AbsentError | TooSlowError):
        next_step = "install it" if isinstance(error, AbsentError) else "see whether it answers"
        return UnavailableError(reference, step=step, problem=error.complaint, next_step=next_step)
    said = _said(error.complaint, secrets)
    for verdict in _VERDICTS:
        if verdict.phrases.search(said):
            problem = f"{verdict.problem} ({_last(said)})"
            return verdict.kind(reference, step=step, problem=problem, next_step=verdict.next_step)
    return UnavailableError(
        reference,
        step=step,
        problem=f"the server did not answer as it should ({_last(said)})",
        next_step="see whether it is up, and can be reached from here",
    )


def is_broken(error: CommandError) -> bool:
    """Whether a failure is one of our own copy rather than of the server."""
    return type(error) is CommandError and bool(_BROKEN.search(_said(error.complaint, ())))


def _said(complaint: str, secrets: tuple[str, ...]) -> str:
    lines = (line.strip() for line in complaint.splitlines())
    text = "\n".join(line for line in lines if line and not line.startswith("remote:"))
    for secret in secrets:
        text = text.replace(secret, "***")
    return text


def _last(said: str) -> str:
    """The line that says most: the first fatal one, or the last."""
    lines = said.splitlines() or ["no message"]
    fatal = [line for line in lines if line.startswith("fatal: ")]
    return one_line((fatal or lines[-1:])[0], 300)
