"""Asking an API server single questions: does it answer, and does an object exist yet?"""

import ssl
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import aiohttp
import msgspec

_TIMEOUT = aiohttp.ClientTimeout(total=5)


@dataclass(frozen=True, kw_only=True)
class Access:
    """Where an API server is, and the files with which to be let in."""

    server: str
    authority: Path
    certificate: Path
    key: Path

    def tls(self) -> ssl.SSLContext:
        """A context that trusts this server's authority only and shows the client certificate."""
        context = ssl.create_default_context(cafile=str(self.authority))
        context.load_cert_chain(str(self.certificate), str(self.key))
        return context


class Probe:
    """A short-lived reader of one API server; used as an async context manager."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        connector = aiohttp.TCPConnector(ssl=self._access.tls())
        self._session = aiohttp.ClientSession(connector=connector, timeout=_TIMEOUT)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._session is not None:
            await self._session.close()

    async def answers(self) -> bool:
        """Whether something that speaks HTTPS listens there."""
        status, _ = await self._get("/livez")
        return status is not None

    async def ready(self) -> bool:
        """Whether the API server says that it can serve."""
        status, _ = await self._get("/readyz")
        return status == 200

    async def read(self, path: str) -> dict[str, Any] | None:
        """The object or list at a path; None while it cannot be had, for whichever reason."""
        status, body = await self._get(path)
        return msgspec.json.decode(body, type=dict[str, Any]) if status == 200 else None

    async def _get(self, path: str) -> tuple[int | None, bytes]:
        assert self._session is not None, "a Probe is entered before it is asked"
        try:
            async with self._session.get(f"{self._access.server}{path}") as answer:
                return answer.status, await answer.read()
        except aiohttp.ClientConnectorCertificateError:
            # Nothing that time would mend.
            raise
        except (aiohttp.ClientError, TimeoutError):
            return None, b""
