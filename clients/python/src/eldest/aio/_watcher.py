"""The part of the feed that an election reads: its role, and documents if a prefix is given."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Coroutine
from typing import Any, Protocol

from .._retry import Backoff
from ..backend import Backend
from ..errors import EldestError
from ..models import FeedEvent

ROLE_KINDS = frozenset({"role_acquired", "role_lost"})


class Hearer(Protocol):
    """The receiver of a watcher's events."""

    def emit(self, event: str, *args: Any) -> None: ...

    def role_was_acquired(self, by: str, token: int) -> None: ...

    def role_was_lost(self, token: int) -> None: ...

    def look_again(self) -> None: ...


class Watcher:
    def __init__(self, election: Hearer, backend: Backend, role: str, changes: str | None) -> None:
        self._election = election
        self._backend = backend
        self._role = role
        self._changes = changes

    def watches(self) -> list[Callable[[], Coroutine[Any, Any, None]]]:
        return [self._follow_role] if self._changes is None else [self._follow_role, self._follow_documents]

    async def _follow_role(self) -> None:
        await self._follow(ROLE_KINDS, self._role, self._of_role, self._begun)

    async def _follow_documents(self) -> None:
        await self._follow(frozenset({"change"}), self._changes or "", self._of_documents, None)

    async def _follow(
        self,
        kinds: frozenset[str],
        prefix: str,
        take: Callable[[FeedEvent], None],
        on_open: Callable[[], None] | None,
    ) -> None:
        """Goes on by itself; if that is impossible because the missed part is no longer kept, it starts again from now."""
        backoff = Backoff(random.Random())
        while True:
            watch = self._backend.watch(kinds, prefix, on_open=on_open, on_break=self._broken)
            try:
                async for event in watch:
                    backoff.reset()
                    take(event)
            except EldestError as error:
                self._broken(error)
                self._election.look_again()
            finally:
                await watch.aclose()
            await asyncio.sleep(backoff.delay())

    def _begun(self) -> None:
        self._election.emit("subscribe_started")
        self._election.look_again()  # the role may have been lost between its grant and this moment

    def _broken(self, error: Exception) -> None:
        self._election.emit("subscribe_error", error)

    def _of_role(self, event: FeedEvent) -> None:
        if event.kind == "new_state":
            self._election.look_again()
        role, instance, token = (event.data.get(name) for name in ("role", "instance_id", "token"))
        if role != self._role or not isinstance(instance, str) or not isinstance(token, int):
            return  # of a role whose name has the same beginning
        if event.kind == "role_acquired":
            self._election.role_was_acquired(instance, token)
        elif event.kind == "role_lost":
            self._election.role_was_lost(token)

    def _of_documents(self, event: FeedEvent) -> None:
        self._election.emit("change", event)
