"""Asking an API server single questions while it may not be up yet."""

from types import TracebackType
from typing import Self

from pequod.kube.auth import Access
from pequod.kube.client import Client
from pequod.kube.errors import (
    ApiError,
    CredentialsError,
    KubeError,
    NoAnswerError,
    UntrustedServerError,
)
from pequod.kube.objects import Object
from pequod.kube.transport import Limits, Request, Transport

_LIMITS = Limits(timeout=5.0, connect=5.0, patience=0.0)


class Questions:
    """A short-lived reader of one API server; used as an async context manager."""

    def __init__(self, access: Access) -> None:
        self._transport = Transport(access, limits=_LIMITS)
        self._client = Client(self._transport)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._transport.close()

    async def answers(self) -> bool:
        """Whether something that speaks HTTPS listens there."""
        try:
            await self._transport.send(Request(method="GET", path="/livez"))
        except (UntrustedServerError, CredentialsError):
            # Nothing that time would mend.
            raise
        except NoAnswerError:
            return False
        except ApiError:
            return True
        return True

    async def ready(self) -> bool:
        """Whether the API server says that it can serve."""
        try:
            await self._transport.send(Request(method="GET", path="/readyz"))
        except (ApiError, NoAnswerError):
            return False
        return True

    async def read(self, path: str) -> Object | None:
        """The object or list at a path; None while it cannot be had, for whichever reason."""
        try:
            return await self._client.read(path, Object)
        except KubeError:
            return None
