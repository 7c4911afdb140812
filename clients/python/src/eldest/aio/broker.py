"""A broker: one of several that run may write. Each call is one try, and all writes are compare-and-swap."""

from __future__ import annotations

import asyncio
import uuid
from dataclasses import dataclass
from typing import Literal

from ..backend import Backend
from ..errors import LeaseLost, RoleHeld
from ._events import Emitter
from ._keeper import Keeper

__all__ = ["BROKER_HEARTBEAT_S", "BROKER_TTL_S", "Broker", "ElectionResult"]

BROKER_HEARTBEAT_S = 3.0
BROKER_TTL_S = 10.0
#: The cluster ends the lease of an earlier life a second after its connection; the rest is for the network.
EARLIER_LIFE_S = 2.0
EARLIER_LIFE_PAUSE_S = 0.2


@dataclass(frozen=True, slots=True)
class ElectionResult:
    """With the status `other_leader`, `leader` is the other's address, or its instance if it gave none."""

    status: Literal["elected", "already_leader", "other_leader", "conflict"]
    leader: str | None = None

    @property
    def leads(self) -> bool:
        return self.status in ("elected", "already_leader")


class Broker(Emitter):
    """Single-shot: to stand by, call `try_elect()` again."""

    def __init__(
        self,
        backend: Backend,
        address: str,
        *,
        role: str = "broker",
        instance_id: str | None = None,
        heartbeat: float = BROKER_HEARTBEAT_S,
        ttl: float = BROKER_TTL_S,
    ) -> None:
        super().__init__(("leader_lost", "heartbeat_error", "error"))
        self.role = role
        self.address = address
        self.id = instance_id or str(uuid.uuid4())
        self._backend = backend
        self._keeper = Keeper(
            backend, role, self.id, ttl=ttl, renew_every=heartbeat, on_renewal_error=lambda e: self.emit("heartbeat_error", e)
        )
        self._keeping: asyncio.Task[None] | None = None
        self._stops = 0
        #: An acquire has no answer: it may have been granted.
        self._asking = False

    @property
    def is_leader(self) -> bool:
        return self._keeper.held

    @property
    def token(self) -> int | None:
        return self._keeper.token

    async def try_elect(self) -> ElectionResult:
        """One try. Heartbeats begin when it is won for the first time.

        If this broker's own address leads, that is its earlier life: it waits for that lease to end, 2 s at most, and
        becomes the `already_leader` under its own token. Raises `LeaseLost` if `stop` comes before the grant.
        """
        before, stops, again = self._keeper.token, self._stops, False
        if before is None:  # the task of a lost lease may still be in a renewal: each lease has its own task
            await self._leave_off()
        now = asyncio.get_running_loop().time
        ends = now() + EARLIER_LIFE_S
        while True:
            self._asking = True  # stays set if there is no answer
            try:
                grant = await self._keeper.take(address=self.address)
                break
            except RoleHeld as other:
                self._asking = False
                self._keeper.drop()
                again = other.outcome != "conflict" and other.leader_address == self.address
                if not again or now() >= ends:
                    return self._refused(other)
                await asyncio.sleep(EARLIER_LIFE_PAUSE_S)
                if self._stops != stops:
                    return self._refused(other)
        self._asking = False
        if self._stops != stops:
            await self._keeper.give_back(self._keeper.disown(), asked=False)
            raise LeaseLost("lease_lost", 410, "the broker was stopped before it was granted the role")
        if self._keeping is None or self._keeping.done():
            self._keeping = asyncio.get_running_loop().create_task(self._keep())
        # Its own lease, found again after a pause, was lost for this process, so the broker is elected again.
        return ElectionResult("already_leader" if again or grant.token == before else "elected")

    @staticmethod
    def _refused(other: RoleHeld) -> ElectionResult:
        if other.outcome == "conflict":
            return ElectionResult("conflict")
        return ElectionResult("other_leader", other.leader_address or other.leader_id)

    async def check_leadership(self) -> bool:
        """Whether this broker leads, by the cluster and by its own clock. Raises `Unavailable` if no node answers in time."""
        token = self._keeper.token
        if token is None:
            return False
        state = await self._backend.role(self.role)
        if state.token != token:
            self._keeper.drop()
        return self._keeper.held and self._keeper.token == token

    def refused(self, token: int | None) -> None:
        """A write in this broker's name was refused: the leader now has another token. A lease under a later token goes on."""
        if token is not None and self._keeper.token == token:
            self._keeper.drop()

    async def stop(self) -> None:
        """Gives the role back at once; raises if that failed for a second: then the role lapses by its ttl."""
        self._stops += 1
        token, asked = self._keeper.disown(), self._asking
        await self._leave_off()
        try:
            await self._keeper.give_back(token, asked=asked)
        finally:
            await self.told()

    async def _leave_off(self) -> None:
        if self._keeping is not None:
            self._keeping.cancel()
            await asyncio.gather(self._keeping, return_exceptions=True)

    async def _keep(self) -> None:
        try:
            await self._keeper.keep()
        except Exception as error:
            self._keeper.drop()
            self.emit("error", error)
        finally:
            self.emit("leader_lost")

