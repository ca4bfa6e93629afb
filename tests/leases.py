"""A place for one Lease with compare-and-swap: what an election needs of an API server."""

import asyncio
from dataclasses import dataclass, field

from pequod.kube.errors import AlreadyExistsError, ConflictError, NotFoundError
from pequod.runtime.lease import Lease, Term


@dataclass
class Register:
    """Holds the Lease, remembers its writes, and knows whose network is cut."""

    lease: Lease | None = None
    version: int = 0
    cut: set[str] = field(default_factory=set)
    writes: list[tuple[float, str | None]] = field(default_factory=list)

    def put(self, term: Term, over: Lease | None) -> Lease:
        if over is None and self.lease is not None:
            raise AlreadyExistsError(409)
        if over is not None and self.lease is None:
            raise NotFoundError(404)
        if over is not None and self.lease is not None and self.lease.version != over.version:
            raise ConflictError(409)
        self.version += 1
        self.lease = Lease(str(self.version), term)
        self.writes.append((asyncio.get_running_loop().time(), term.holder_identity))
        return self.lease
