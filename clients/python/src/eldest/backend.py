"""The interface of the store of roles that elections, locks and brokers need: the cluster (`Client`), or memory
(`MemoryBackend`)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection
from typing import Protocol

from .models import FeedEvent, Grant, Json, Renewal, RoleState


class Watch(Protocol):
    """An async iterator of events from now on."""

    def __aiter__(self) -> AsyncIterator[FeedEvent]: ...

    async def __anext__(self) -> FeedEvent: ...

    async def aclose(self) -> None: ...


class Backend(Protocol):
    def now(self) -> float:
        """A steady clock: `sent_at` of grants and renewals is read from it."""

    async def acquire(
        self,
        role: str,
        instance_id: str,
        *,
        ttl: float = 30.0,
        wait: float = 0.0,
        priority: int = 0,
        address: str | None = None,
        metadata: Json = None,
        deadline: float | None = None,
    ) -> Grant:
        """The role, or `RoleHeld`. With `wait` the grant may come that much later."""

    async def renew(
        self, role: str, instance_id: str, token: int, *, ttl: float = 30.0, deadline: float | None = None
    ) -> Renewal:
        """A longer lease, or `LeaseLost`."""

    async def release(self, role: str, instance_id: str, token: int, *, deadline: float | None = None) -> None:
        """The role is free at once; `LeaseLost` if it was not held under this token."""

    async def elect(
        self, role: str, instance_id: str, *, ttl: float = 30.0, address: str | None = None, metadata: Json = None
    ) -> Grant:
        """Gives the role to that instance from now on, even if another held it."""

    async def role(self, role: str) -> RoleState:
        """The holder of the role."""

    def watch(
        self,
        kinds: Collection[str],
        prefix: str,
        *,
        on_open: Callable[[], None] | None = None,
        on_break: Callable[[Exception], None] | None = None,
    ) -> Watch:
        """Events of these kinds and names; `on_open` when the watch has begun, `on_break` when it was interrupted."""
