"""From a blocking object to the asyncio object behind it."""

from __future__ import annotations

from typing import Protocol

from .. import aio
from ..backend import Backend
from ..models import RoleState
from ._portal import portal


class Plain(Protocol):
    """A blocking client or backend."""

    @property
    def aio(self) -> Backend: ...


class MemoryBackend:
    """Roles in memory, for tests: like `eldest.aio.MemoryBackend`, on the loop of the blocking form."""

    def __init__(self) -> None:
        self.aio: aio.MemoryBackend = aio.MemoryBackend()

    def role(self, role: str) -> RoleState:
        return portal.run(self.aio.role(role))

    def expire(self, role: str) -> None:
        """Ends the lease now, as if its ttl had passed."""
        portal.call(lambda: self.aio.expire(role))
