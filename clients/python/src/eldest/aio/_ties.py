"""A lease that ends with a connection: in addition to the renewals, a stream to one node is kept open, and if this process
dies, that node frees the role. While the process is alive, only renewals decide: one that names a greater number makes
an older stream worth nothing."""

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

#: The means by which a role is held: a connection and a lease, or the lease alone.
HeldBy = Literal["connection", "lease"]

#: The node waits this long after the connection has closed. A holder that is alive and has lost it believes for half of
#: that.
GRACE_MOST_S = 1.0
GRACE_SHARE = 0.5

#: Another attempt, or another node, may serve a call after these.
_PASSING = frozenset({408, 421, 429, 502, 503, 504})


def grace(ttl: float) -> float:
    return min(GRACE_MOST_S, ttl * GRACE_SHARE)


def _rising() -> int:
    """Above the numbers of earlier processes under the same name, provided that the wall clock goes forward; below 2^53."""
    return int(time.time() * 1000) * 1024 + random.randrange(1024)


class Tying(Backend, Protocol):
    """A backend that has connections; a backend in memory has none."""

    def tie(
        self, role: str, instance_id: str, token: int, *, tie: int, ttl: float, grace: float
    ) -> AbstractAsyncContextManager[AsyncIterator[Renewal | str]]:
        """Yields first the renewal that this was, then `renew` (renew at once for a new leader) or `stopping` (the node
        lets go).

        Entering it may raise `Unavailable`: then there surely is no connection.
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
        #: The next renewal names this number.
        self.number = _rising()

    def proved(self, number: int) -> None:
        """A renewal under this number has succeeded."""
        if number == self.number:
            self._proved.set()

    async def run(self) -> None:
        """Runs until it is cancelled, or no tie can be had."""
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
                await self._go_on(self._on_broken)  # the stream may be open at the node
            await asyncio.sleep(backoff.delay())

    async def _once(self, backoff: Backoff) -> None:
        """One stream, until it is over and the lease is proved to go on without it. Only then is it closed on this side."""
        opening = self._backend.tie(
            self._role, self._instance_id, self._token, tie=self.number, ttl=self._ttl, grace=grace(self._ttl)
        )
        async with opening as events:
            backoff.reset()
            await self._go_on(await self._listened(events))

    async def _listened(self, events: AsyncIterator[Renewal | str]) -> Callable[[], None]:
        """Returns the function to call about the end of the stream."""
        try:
            async for event in events:
                if isinstance(event, Renewal):
                    self._on_proof(event)
                elif event == "stopping":
                    return self._on_renew
                elif event == "renew":
                    self._on_renew()
        except (EldestError, OSError, TimeoutError):
            pass  # in every case the node may take this process for dead
        return self._on_broken

    async def _go_on(self, tell: Callable[[], None]) -> None:
        """Takes the next number; returns when a renewal has named it."""
        self.number += 1
        self._proved.clear()
        tell()
        await self._proved.wait()
