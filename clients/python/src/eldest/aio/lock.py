"""A lock: a role that is held for the length of a block."""

from __future__ import annotations

import asyncio
import random
import uuid
from types import TracebackType
from typing import Self

from .._retry import Backoff
from ..backend import Backend
from ..errors import LeaseLost, RoleHeld
from ..models import Json
from ._events import log
from ._keeper import TTL_S, WAIT_MOST_S, Keeper
from ._ties import HeldBy

__all__ = ["LockGuard"]


class LockGuard:
    """`async with LockGuard(client, "name", timeout=10) as guard:`. `RoleHeld` if it is not free in time.

    `lost` is set when the lock is no longer held, before or after `release()`; a long job should check it, and send
    `guard.token` with every action that is only for the holder.
    """

    def __init__(
        self,
        backend: Backend,
        name: str,
        *,
        timeout: float = 0.0,
        ttl: float = TTL_S,
        priority: int = 0,
        metadata: Json = None,
        instance_id: str | None = None,
        held_by: HeldBy = "connection",
    ) -> None:
        self.name = name
        self.id = instance_id or str(uuid.uuid4())
        self.lost = asyncio.Event()
        self._timeout = timeout
        self._priority = priority
        self._metadata = metadata
        self._keeper = Keeper(backend, name, self.id, ttl=ttl, held_by=held_by)
        self._keeping: asyncio.Task[None] | None = None

    @property
    def role(self) -> str:
        return self.name

    @property
    def held(self) -> bool:
        """Judged by the clock, at the moment of the call."""
        return self._keeper.held

    @property
    def token(self) -> int | None:
        return self._keeper.token

    async def acquire(self) -> Self:
        if self._keeping is not None:
            raise RuntimeError("a guard is for one time")
        loop = asyncio.get_running_loop()
        ends, backoff = loop.time() + self._timeout, Backoff(random.Random())
        while True:
            left = max(0.0, ends - loop.time())
            try:
                await self._keeper.take(
                    wait=min(left, WAIT_MOST_S), priority=self._priority, metadata=self._metadata
                )
                break
            except (RoleHeld, LeaseLost):
                if loop.time() >= ends:
                    raise
            await asyncio.sleep(min(backoff.delay(), max(0.0, ends - loop.time())))
        self._keeping = loop.create_task(self._keep())
        return self

    async def release(self) -> None:
        """The lock is free when this returns. If it was lost before, that is fine: then `lost` was set."""
        token = self._keeper.disown()
        if self._keeping is not None:
            self._keeping.cancel()
            await asyncio.gather(self._keeping, return_exceptions=True)
            self.lost.set()  # a task that was cancelled before it began sets nothing
        if token is not None:
            await self._keeper.release(token)

    async def __aenter__(self) -> Self:
        return await self.acquire()

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        await self.release()

    async def _keep(self) -> None:
        try:
            await self._keeper.keep()
        except Exception:
            log.exception("the lock %s cannot be kept", self.name)
            self._keeper.drop()
        finally:
            self.lost.set()
