"""Roles in memory, for the tests of programs that use this library: the same rules, no cluster.

All users of one `MemoryBackend` see the same roles. It belongs to one event loop.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Literal

from ._lease import steady_now
from .errors import LeaseLost, RoleHeld
from .models import FeedEvent, Grant, Json, Leader, Renewal, RoleState

__all__ = ["MemoryBackend"]

#: If a test leaves a watch unread, it keeps this many of the newest events.
EVENTS_MOST = 1024


@dataclass(slots=True)
class _Held:
    leader: Leader
    token: int
    ttl: float
    until: float
    timer: asyncio.TimerHandle


@dataclass(slots=True, eq=False)
class _Waiter:
    leader: Leader
    ttl: float
    priority: int
    granted: asyncio.Future[int]


@dataclass(slots=True)
class _Role:
    held: _Held | None = None
    waiters: list[_Waiter] = field(default_factory=list)


class MemoryBackend:
    def __init__(self, *, clock: Callable[[], float] = steady_now) -> None:
        self._clock = clock
        self._roles: dict[str, _Role] = {}
        self._last_token = 0
        self._last_event = 0
        self._watches: set[MemoryWatch] = set()

    def now(self) -> float:
        return self._clock()

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
        sent_at, entry, leader = self.now(), self._role(role), Leader(instance_id, address, metadata)
        if entry.held is None:
            return self._grant(role, entry, leader, ttl).grant(role, "elected", sent_at)
        if entry.held.leader.instance_id == instance_id:
            self._prolong(role, entry.held, ttl)
            entry.held.leader = leader
            return _View(entry.held).grant(role, "already_leader", sent_at)
        if wait <= 0 or not await self._wait(entry, _Waiter(leader, ttl, priority, _future()), wait):
            raise self._held_by(entry.held)
        if entry.held is None or entry.held.leader.instance_id != instance_id:
            raise self._held_by(entry.held)
        return _View(entry.held).grant(role, "elected", sent_at)

    async def renew(
        self, role: str, instance_id: str, token: int, *, ttl: float = 30.0, deadline: float | None = None
    ) -> Renewal:
        sent_at = self.now()
        held = self._own(role, instance_id, token)
        self._prolong(role, held, ttl)
        return Renewal(token, ttl, sent_at)

    async def release(self, role: str, instance_id: str, token: int, *, deadline: float | None = None) -> None:
        self._own(role, instance_id, token)
        self._end(role, "released")

    async def elect(
        self, role: str, instance_id: str, *, ttl: float = 30.0, address: str | None = None, metadata: Json = None
    ) -> Grant:
        sent_at, entry = self.now(), self._role(role)
        if entry.held is not None:
            self._lose(role, entry, entry.held, "replaced")
        leader = Leader(instance_id, address, metadata)
        elected = self._grant(role, entry, leader, ttl)
        for waiter in entry.waiters:
            if waiter.leader.instance_id == instance_id and not waiter.granted.done():
                waiter.granted.set_result(elected.held.token)
        return elected.grant(role, "elected", sent_at)

    async def role(self, role: str) -> RoleState:
        entry = self._role(role)
        held = entry.held
        if held is None:
            return RoleState(role, None, None, waiting=len(entry.waiters))
        left = max(0.0, held.until - self.now())
        return RoleState(role, held.leader, held.token, held.ttl, None, left, len(entry.waiters))

    def watch(
        self,
        kinds: Collection[str],
        prefix: str,
        *,
        on_open: Callable[[], None] | None = None,
        on_break: Callable[[Exception], None] | None = None,
    ) -> MemoryWatch:
        watch = MemoryWatch(frozenset(kinds), prefix, self._watches, on_open)
        self._watches.add(watch)
        return watch

    def expire(self, role: str) -> None:
        """Ends the lease now, as if its ttl had passed, so that a test of a take-over need not wait for it."""
        if self._role(role).held is not None:
            self._end(role, "expired")

    def _role(self, role: str) -> _Role:
        return self._roles.setdefault(role, _Role())

    def _own(self, role: str, instance_id: str, token: int) -> _Held:
        held = self._role(role).held
        if held is None or held.leader.instance_id != instance_id or held.token != token:
            raise LeaseLost("lease_lost", 410, f"{instance_id} does not hold {role}")
        return held

    def _grant(self, role: str, entry: _Role, leader: Leader, ttl: float) -> _View:
        self._last_token = max(self._last_token + 1, time.time_ns() // 1000)
        timer = asyncio.get_running_loop().call_later(ttl, self.expire, role)
        entry.held = _Held(leader, self._last_token, ttl, self.now() + ttl, timer)
        self._tell("role_acquired", role, entry.held)
        return _View(entry.held)

    def _prolong(self, role: str, held: _Held, ttl: float) -> None:
        held.timer.cancel()
        held.timer = asyncio.get_running_loop().call_later(ttl, self.expire, role)
        held.ttl, held.until = ttl, self.now() + ttl

    def _end(self, role: str, reason: str) -> None:
        entry = self._role(role)
        if entry.held is not None:
            self._lose(role, entry, entry.held, reason)
        waiting = [waiter for waiter in entry.waiters if not waiter.granted.done()]
        if waiting:
            first = max(waiting, key=lambda waiter: waiter.priority)  # among equals, the one that came first
            entry.waiters.remove(first)
            first.granted.set_result(self._grant(role, entry, first.leader, first.ttl).held.token)

    def _lose(self, role: str, entry: _Role, held: _Held, reason: str) -> None:
        held.timer.cancel()
        entry.held = None
        self._tell("role_lost", role, held, reason=reason)

    async def _wait(self, entry: _Role, waiter: _Waiter, wait: float) -> bool:
        entry.waiters.append(waiter)
        try:
            done, _ = await asyncio.wait([waiter.granted], timeout=wait)
            return bool(done)
        finally:
            waiter.granted.cancel()  # a granted one stays granted
            if waiter in entry.waiters:
                entry.waiters.remove(waiter)

    def _held_by(self, held: _Held | None) -> RoleHeld:
        leader = None if held is None else {"instance_id": held.leader.instance_id, "address": held.leader.address}
        members = {"outcome": "other_leader", "leader": leader, "token": None if held is None else held.token}
        return RoleHeld("role_held", 409, "another instance has the role", retryable=True, members=members)

    def _tell(self, kind: str, role: str, held: _Held, **more: str) -> None:
        self._last_event += 1
        data = {"id": str(self._last_event), "kind": kind, "role": role, "instance_id": held.leader.instance_id}
        event = FeedEvent(kind, str(self._last_event), {**data, "token": held.token, **more})
        for watch in self._watches:
            watch.take(event, role)


class MemoryWatch:
    """Events of a `MemoryBackend`."""

    def __init__(
        self, kinds: frozenset[str], prefix: str, among: set[MemoryWatch], on_open: Callable[[], None] | None
    ) -> None:
        self._kinds = kinds
        self._prefix = prefix
        self._among = among
        self._on_open = on_open
        self._events: deque[FeedEvent] = deque(maxlen=EVENTS_MOST)
        self._more = asyncio.Event()

    def __aiter__(self) -> MemoryWatch:
        return self

    async def __anext__(self) -> FeedEvent:
        if self._on_open is not None:
            begun, self._on_open = self._on_open, None
            begun()
        while not self._events:
            self._more.clear()
            await self._more.wait()
        return self._events.popleft()

    def take(self, event: FeedEvent, name: str) -> None:
        if event.kind in self._kinds and name.startswith(self._prefix):
            self._events.append(event)
            self._more.set()

    async def aclose(self) -> None:
        self._among.discard(self)


@dataclass(frozen=True, slots=True)
class _View:
    held: _Held

    def grant(self, role: str, outcome: Literal["elected", "already_leader"], sent_at: float) -> Grant:
        return Grant(outcome, role, self.held.leader, self.held.token, self.held.ttl, sent_at)


def _future() -> asyncio.Future[int]:
    return asyncio.get_running_loop().create_future()
