"""A lease that ends with a connection: a stream to one node is kept open beside the renewals, and when this process dies, that
node frees the role. While the process lives, only renewals decide: one that names a greater number makes an older stream
worth nothing."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from typing import Literal, Protocol

from .._retry import Backoff
from ..backend import Backend
from ..errors import EldestError, Problem, Unavailable
from ..models import Renewal

#: With what a role is held: a connection besides the lease, or the lease alone.
HeldBy = Literal["connection", "lease"]

#: The node waits this long after the connection has closed. Whoever lives and has lost it believes for half of that.
GRACE_MOST_S = 1.0
GRACE_SHARE = 0.5

#: Another attempt, or another node, may serve what these refuse.
_PASSING = frozenset({408, 421, 429, 502, 503, 504})


def grace(ttl: float) -> float:
    return min(GRACE_MOST_S, ttl * GRACE_SHARE)


def _rising() -> int:
    """Above what an earlier process under the same name has drawn, as far as the wall clock goes forward; below 2^53."""
    return int(time.time() * 1000) * 1024 + random.randrange(1024)


class Tying(Backend, Protocol):
    """A backend that has connections; one in memory has none."""

    def tie(
        self, role: str, instance_id: str, token: int, *, tie: int, ttl: float, grace: float
    ) -> AbstractAsyncContextManager[AsyncIterator[Renewal | str]]:
        """First the renewal that this was, then `renew` (a new leader is to be told) or `stopping` (the node lets go).

        Entered, it may raise `Unavailable`: then there surely is no connection.
        """


class Ties:
    """The ties of one grant, one after the other."""

    def __init__(
        self,
        backend: Tying,
        role: str,
        instance_id: str,
        token: int,
        ttl: float,
        *,
        on_proof: Callable[[Renewal], None],
        on_renew: Callable[[], None],
        on_broken: Callable[[], None],
    ) -> None:
        self._backend = backend
        self._role = role
        self._instance_id = instance_id
        self._token = token
        self._ttl = ttl
        self._on_proof = on_proof
        self._on_renew = on_renew
        self._on_broken = on_broken
        self._proved = asyncio.Event()
        #: What the next renewal names.
        self.number = _rising()

    def proved(self, number: int) -> None:
        """A renewal under this number has come through."""
        if number == self.number:
            self._proved.set()

    async def run(self) -> None:
        """Until it is cancelled, or there is no such thing to be had."""
        backoff = Backoff(random.Random())
        while True:
            try:
                await self._once(backoff)
            except Unavailable:
                pass
            except Problem as problem:
                if problem.status not in _PASSING:
                    return
            except (EldestError, OSError, TimeoutError):
                await self._go_on(self._on_broken)  # it may be open, over there
            await asyncio.sleep(backoff.delay())

    async def _once(self, backoff: Backoff) -> None:
        """One stream, until it is over and the lease is proved to go on without it: only then it is closed on this side."""
        opening = self._backend.tie(
            self._role, self._instance_id, self._token, tie=self.number, ttl=self._ttl, grace=grace(self._ttl)
        )
        async with opening as events:
            backoff.reset()
            await self._go_on(await self._listened(events))

    async def _listened(self, events: AsyncIterator[Renewal | str]) -> Callable[[], None]:
        """What is to be told of its end."""
        try:
            async for event in events:
                if isinstance(event, Renewal):
                    self._on_proof(event)
                elif event == "stopping":
                    return self._on_renew
                elif event == "renew":
                    self._on_renew()
        except (EldestError, OSError, TimeoutError):
            pass  # however it broke, the node may take this process for dead
        return self._on_broken

    async def _go_on(self, tell: Callable[[], None]) -> None:
        """The next number; returns when a renewal has named it."""
        self.number += 1
        self._proved.clear()
        tell()
        await self._proved.wait()
