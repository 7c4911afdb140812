"""A lock, blocking."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from .. import aio
from ..aio._events import within
from ..aio._ties import HeldBy
from ..models import Json
from ._portal import portal
from ._sides import Plain


class LockGuard:
    """`with client.lock("name", timeout=10) as guard:`. `RoleHeld` if it is not free in time."""

    def __init__(
        self,
        backend: Plain,
        name: str,
        *,
        timeout: float = 0.0,
        ttl: float = 30.0,
        priority: int = 0,
        metadata: Json = None,
        held_by: HeldBy = "connection",
    ) -> None:
        self._aio = aio.LockGuard(
            backend.aio, name, timeout=timeout, ttl=ttl, priority=priority, metadata=metadata, held_by=held_by
        )
        self.name = name
        self.id = self._aio.id

    @property
    def role(self) -> str:
        return self.name

    @property
    def held(self) -> bool:
        return self._aio.held

    @property
    def lost(self) -> bool:
        """Whether the lock was acquired, and is no longer held."""
        return self._aio.lost.is_set()

    def wait_lost(self, timeout: float) -> bool:
        """Waits until the lock is lost, at most this long; returns whether it is."""
        return portal.run(within(timeout, self._aio.lost))

    @property
    def token(self) -> int | None:
        return self._aio.token

    def acquire(self) -> Self:
        portal.run(self._aio.acquire())
        return self

    def release(self) -> None:
        portal.run(self._aio.release())

    def __enter__(self) -> Self:
        return self.acquire()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.release()
