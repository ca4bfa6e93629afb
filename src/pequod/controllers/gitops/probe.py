"""What can be found out about a cluster with three small requests.

Answers come from servers of other people: each is checked before it is believed.
"""

import asyncio
import re
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from pequod.api import reasons
from pequod.api.reasons import Reason
from pequod.base.logs import one_line
from pequod.kube.client import Client
from pequod.kube.errors import (
    ApiError,
    BrokenAnswerError,
    CredentialsError,
    ForbiddenError,
    KubeError,
    NoAnswerError,
    NotFoundError,
    TimedOutError,
    UnauthorizedError,
    UnreachableError,
    UntrustedServerError,
)
from pequod.kube.kinds import NAMESPACES, NODES
from pequod.kube.objects import Named
from pequod.runtime.verdicts import Stalled, Waiting

LIMIT = 10.0
"""Seconds that a cluster may take for an answer."""
_LONGEST_VERSION = 63
_MOST_NODES = 1_000_000
_UID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")

_NEXT_STEPS: dict[type[KubeError], str] = {
    UnreachableError: "check that the server's address is right and that the network lets us there",
    UntrustedServerError: "check certificate-authority-data and tls-server-name in the kubeconfig",
    TimedOutError: f"it did not answer within {LIMIT:.0f} s; check its load and the network",
    NoAnswerError: "check that an API server listens there",
}


@dataclass(frozen=True, slots=True)
class Answer:
    """That a cluster answers, how soon, and its version, if it tells us that."""

    took: float
    version: str | None = None


@dataclass(frozen=True, slots=True)
class Found:
    """Which cluster it is, and how many nodes it has, if we may know."""

    identity: str
    nodes: int | None


class Probe:
    """Asks clusters who they are."""

    def __init__(self, own: Client) -> None:
        self._own = own
        self._own_identity: str | None = None

    async def answer(self, client: Client) -> Answer:
        """Whether a cluster answers; raises a verdict that says why it does not."""
        began = time.monotonic()
        version = None
        try:
            async with _bounded():
                version = one_line(await client.version())[:_LONGEST_VERSION]
        except (UnauthorizedError, ForbiddenError):
            # It answers. Whether it likes us is the next question.
            pass
        except (NoAnswerError, CredentialsError) as error:
            raise _no_answer(error) from error
        except ApiError as error:
            raise Waiting(error.reason, f"it answers with an error: {error}") from error
        return Answer(time.monotonic() - began, version)

    async def identity(self, client: Client) -> Found:
        """Who a cluster is; raises a verdict that says why we do not get to know."""
        try:
            async with _bounded():
                system = await client.get(NAMESPACES, "kube-system", type=Named)
                nodes = await _nodes(client)
        except (UnauthorizedError, ForbiddenError, NotFoundError) as error:
            raise _refused(error) from error
        except (NoAnswerError, CredentialsError) as error:
            raise _no_answer(error) from error
        uid = system.metadata.uid
        if not _UID.fullmatch(uid):
            broken = BrokenAnswerError("its namespace kube-system has no proper UID")
            raise _no_answer(broken)
        await self._require_another(client, uid)
        return Found(uid, nodes)

    async def _require_another(self, client: Client, uid: str) -> None:
        """A kubeconfig that leads back to ourselves is a way around the operator's own limits."""
        if client is self._own:
            return
        if self._own_identity is None:
            own = await self._own.get(NAMESPACES, "kube-system", type=Named)
            self._own_identity = own.metadata.uid
        if uid == self._own_identity:
            raise Stalled(
                reasons.OWN_CLUSTER,
                "the kubeconfig leads to the operator's own cluster; remove "
                "spec.kubeconfigSecretRef to register it",
            )


async def _nodes(client: Client) -> int | None:
    """How many nodes there are; None where we may not know."""
    try:
        return min(await client.count(NODES), _MOST_NODES)
    except ForbiddenError:
        return None


@asynccontextmanager
async def _bounded() -> AsyncIterator[None]:
    try:
        async with asyncio.timeout(LIMIT):
            yield
    except TimeoutError as error:
        raise TimedOutError(f"no answer within {LIMIT:.0f} s") from error


def _no_answer(error: KubeError) -> Waiting:
    message = str(error)
    if isinstance(error, NoAnswerError):
        message += f": {_NEXT_STEPS.get(type(error), _NEXT_STEPS[NoAnswerError])}"
    return Waiting(error.reason, message)


def _refused(error: ApiError) -> Waiting:
    """Why the cluster does not let us in, and what would change that."""
    says: dict[type[ApiError], tuple[Reason, str]] = {
        UnauthorizedError: (
            reasons.UNAUTHORIZED,
            "the cluster does not accept the credentials; put valid ones into the Secret",
        ),
        ForbiddenError: (
            reasons.FORBIDDEN,
            "the account may not read the namespace kube-system; allow it `get` on it",
        ),
    }
    default = (error.reason, f"the namespace kube-system cannot be read: {error}")
    return Waiting(*says.get(type(error), default))
