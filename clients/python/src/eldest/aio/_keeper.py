"""One instance's hold on one role: takes it, renews it, and knows at every moment whether it may still be believed."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import cast

from .._lease import Lease
from .._retry import BACKOFF_FIRST_S, BACKOFF_MOST_S
from ..backend import Backend
from ..errors import EldestError, Indeterminate, LeaseLost
from ..models import Grant, Json, Renewal
from ._ties import HeldBy, Ties, Tying, grace

TTL_S = 30.0
RENEW_EVERY_S = 10.0
#: `stop` does not hang if the cluster is away: the lease lapses by its ttl then.
RELEASE_MOST_S = 1.0
#: The part of that time in which a call that asks for the role may still be answered.
ANSWER_MOST_S = RELEASE_MOST_S / 2
#: The bounds that the cluster accepts.
TTL_LEAST_S, TTL_MOST_S, WAIT_MOST_S = 1.0, 3600.0, 60.0
#: Renewals during one ttl: two may fail.
RENEWALS_A_TTL = 3


class Keeper:
    def __init__(
        self,
        backend: Backend,
        role: str,
        instance_id: str,
        *,
        ttl: float = TTL_S,
        renew_every: float | None = None,
        on_renewal_error: Callable[[Exception], None] | None = None,
        held_by: HeldBy = "connection",
    ) -> None:
        if held_by not in ("connection", "lease"):
            raise ValueError(f"held_by is connection or lease, not {held_by!r}")
        if not TTL_LEAST_S <= ttl <= TTL_MOST_S:
            raise ValueError(f"a ttl is {TTL_LEAST_S:g} s to {TTL_MOST_S:g} s, not {ttl:g} s")
        self.backend = backend
        self.role = role
        self.instance_id = instance_id
        self.ttl = ttl
        self.renew_every = min(RENEW_EVERY_S, ttl / RENEWALS_A_TTL) if renew_every is None else renew_every
        if not 0 < self.renew_every < ttl / 2:
            raise ValueError(f"renew_every has to be less than half of the ttl, not {self.renew_every:g} s of {ttl:g} s")
        self._on_renewal_error = on_renewal_error
        self._lease: Lease | None = None
        # A backend in memory has no connections.
        self._tied = held_by == "connection" and hasattr(backend, "tie")
        self._ties: Ties | None = None
        self._at_once = False
        self._under_way: asyncio.Timeout | None = None
        self._taking: asyncio.Task[Grant] | None = None
        self._poke = asyncio.Event()

    # Any thread may read these: they load one value that never changes.

    @property
    def held(self) -> bool:
        """Judged by the clock at the moment of the call, not by a timer."""
        lease = self._lease
        return lease is not None and lease.believed(self.backend.now())

    @property
    def token(self) -> int | None:
        lease = self._lease
        return lease.token if lease is not None and lease.believed(self.backend.now()) else None

    async def take(
        self,
        *,
        wait: float = 0.0,
        priority: int = 0,
        address: str | None = None,
        metadata: Json = None,
        outlives: bool = False,
    ) -> Grant:
        """Takes the role, or raises `RoleHeld`; once this returns, the lease may be believed.

        With `outlives` the call goes on when its caller is cancelled, and `give_back` waits for its answer: a node may
        still work on a call whose connection is closed, and grant the role after `give_back` has looked.
        """
        call = self.backend.acquire(
            self.role, self.instance_id, ttl=self.ttl, wait=wait, priority=priority, address=address, metadata=metadata
        )
        self._taking = asyncio.ensure_future(call) if outlives else None
        grant = await (call if self._taking is None else asyncio.shield(self._taking))
        if wait > 0:
            await self._confirm(grant.token)
        else:
            self.believe(grant)
        return grant

    async def _confirm(self, token: int) -> None:
        """The answer to a call that waited may be older than the lease that it grants."""
        renewal = await self.backend.renew(self.role, self.instance_id, token, ttl=self.ttl)
        self._lease = Lease.counted_from(renewal.sent_at, renewal.token, self.ttl, renewal.expires_in)

    def believe(self, grant: Grant) -> None:
        self._lease = Lease.counted_from(grant.sent_at, grant.token, self.ttl, grant.expires_in)

    async def keep(self) -> None:
        """Renews until the lease is lost: refused, run out, or dropped. When this returns, the belief has ended."""
        tying = self._tie()
        try:
            await self._keep()
        finally:
            self._ties = None
            if tying is not None:
                tying.cancel()
        self.drop()

    async def _keep(self) -> None:
        pause = 0.0
        while (lease := self._lease) is not None and (left := lease.left(self.backend.now())) > 0:
            if not self._at_once:
                await self._rest(min(pause or self.renew_every, left if pause else left / 2))
            self._at_once = False
            pause = await self._renew(pause)

    # The connection that the lease ends with

    def _tie(self) -> asyncio.Task[None] | None:
        lease = self._lease
        if not self._tied or lease is None:
            return None
        self._ties = Ties(
            cast(Tying, self.backend), self.role, self.instance_id, lease.token, self.ttl,
            on_proof=self._tie_proved, on_renew=self._renew_at_once, on_broken=self._tie_broken,
        )  # fmt: skip
        return asyncio.get_running_loop().create_task(self._ties.run())

    def _tie_proved(self, renewal: Renewal) -> None:
        lease = self._lease
        after = Lease.counted_from(renewal.sent_at, renewal.token, self.ttl, renewal.expires_in)
        if lease is not None and lease.token == after.token and lease.until < after.until:
            self._prolong(lease, after)

    def _tie_broken(self) -> None:
        """The node may take this process for dead. A renewal that is running names the old number, and is worth nothing."""
        lease, now = self._lease, self.backend.now()
        if lease is not None:
            self._lease = Lease(lease.token, min(lease.until, now + grace(self.ttl) / 2))
        self._renew_at_once()

    def _renew_at_once(self) -> None:
        self._at_once = True
        self._poke.set()
        if self._under_way is not None:
            self._under_way.reschedule(asyncio.get_running_loop().time())

    async def _rest(self, seconds: float) -> None:
        self._poke.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._poke.wait()

    async def _renew(self, pause: float) -> float:
        """Returns the pause before the next try; 0 means the usual time."""
        lease = self._lease
        if lease is None or (left := lease.left(self.backend.now())) <= 0:
            return 0.0
        number = self._ties.number if self._ties is not None else None
        named = {} if number is None else {"tie": number}
        try:
            async with asyncio.timeout(left) as self._under_way:
                renewal = await self.backend.renew(
                    self.role, self.instance_id, lease.token, ttl=self.ttl, deadline=left, **named
                )
        except LeaseLost:
            self.drop(lease)
        except (EldestError, TimeoutError) as error:
            if self._at_once:
                return pause
            if self._on_renewal_error is not None:
                self._on_renewal_error(error)
            return min(pause * 2 or BACKOFF_FIRST_S, BACKOFF_MOST_S)
        else:
            self._prolong(lease, Lease.counted_from(renewal.sent_at, renewal.token, self.ttl, renewal.expires_in))
            if self._ties is not None and number is not None:
                self._ties.proved(number)
        finally:
            self._under_way = None
        return 0.0

    def _prolong(self, before: Lease, after: Lease) -> None:
        """If the lease ran out or was dropped while the answer was under way, it stays lost, and the loss is reported."""
        if self._lease is before and before.believed(self.backend.now()):
            self._lease = after

    def drop(self, lease: Lease | None = None) -> None:
        """Ends the belief (with `lease`: unless there is another lease by now)."""
        if lease is None or self._lease is lease:
            self._lease = None
        self._poke.set()

    def renew_now(self) -> None:
        """The role may be another's, or the cluster's state was replaced: find out."""
        self._poke.set()

    def disown(self) -> int | None:
        """Drops the lease; returns the token that has to be released, whether it has run out or not."""
        lease = self._lease
        self.drop()
        return None if lease is None else lease.token

    async def give_back(self, token: int | None, *, asked: bool) -> None:
        """Releases this token, or the role if an unanswered call may have been granted it; raises if that fails for a second."""
        try:
            async with asyncio.timeout(RELEASE_MOST_S):
                if token is None and asked and self._taking is not None:
                    with contextlib.suppress(EldestError, TimeoutError):
                        async with asyncio.timeout(ANSWER_MOST_S):
                            token = (await self._taking).token
                if token is None and asked:
                    state = await self.backend.role(self.role)
                    is_mine = state.leader is not None and state.leader.instance_id == self.instance_id
                    token = state.token if is_mine else None
                if token is not None:
                    await self.release(token)
        except TimeoutError:
            why = f"the release of {self.role} was not answered within {RELEASE_MOST_S:g} s"
            raise Indeterminate(why) from None

    async def release(self, token: int, deadline: float | None = None) -> None:
        """Gives the role back. If it was lost before, that is fine."""
        with contextlib.suppress(LeaseLost):
            await self.backend.release(self.role, self.instance_id, token, deadline=deadline)
