"""What a failure of a registry, or of what it holds, means for the one who asked."""

from pequod.base.logs import one_line
from pequod.evaluator import errors as evaluator
from pequod.evaluator.registry import RegistryAccess
from pequod.sources.errors import (
    DeniedError,
    MissingError,
    RefusedError,
    SourceError,
    TooLargeError,
    UnavailableError,
)

_LONGEST = 300
_ADDRESS, _AUTHORITY = "address", "authority"


def judge(
    error: evaluator.EvaluationError, *, reference: str, step: str, access: RegistryAccess
) -> SourceError:
    """The error that a person sees; never with a secret in it."""
    said = _said(str(error), access)
    if isinstance(error, evaluator.DeniedError):
        return _denied(error, said, reference=reference, step=step, access=access)
    kinds: dict[type[evaluator.EvaluationError], tuple[type[SourceError], str]] = {
        evaluator.MissingError: (MissingError, "check the repository and the tag"),
        evaluator.OverLimitError: (TooLargeError, "push something smaller, or raise the limit"),
        evaluator.ModuleError: (RefusedError, "push it again, as a module, a chart or an archive"),
    }
    kind, next_step = kinds.get(
        type(error), (UnavailableError, "see whether the registry is up, and reached from here")
    )
    return kind(reference, step=step, problem=said, next_step=next_step)


def _denied(
    error: evaluator.DeniedError, said: str, *, reference: str, step: str, access: RegistryAccess
) -> SourceError:
    about = {problem.path for problem in error.problems}
    if _ADDRESS in about:
        return RefusedError(
            reference,
            step=_ADDRESS,
            problem=said,
            next_step="use a registry that is on a server of its own",
        )
    next_step = "give a Secret with username and password, or with .dockerconfigjson for its host"
    if _AUTHORITY in about:
        next_step = "renew the certificate, or give who signed it as ca.crt in the Secret"
    elif access.logins:
        next_step = "correct username and password, or .dockerconfigjson, in the Secret"
    return DeniedError(reference, step=step, problem=said, next_step=next_step)


def _said(text: str, access: RegistryAccess) -> str:
    """What a registry answered may repeat what it was sent."""
    for login in access.logins.values():
        for secret in (login.password, login.token):
            text = text.replace(secret, "***") if secret else text
    return one_line(text, _LONGEST)
