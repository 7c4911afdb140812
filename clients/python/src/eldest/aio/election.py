"""One instance's part in the election of a role's leader."""

from __future__ import annotations

import asyncio
import os
import random
import socket
import uuid
from collections.abc import Callable, Coroutine
from types import TracebackType
from typing import Any, Literal, Self

from .._retry import Backoff
from ..backend import Backend
from ..errors import EldestError, LeaseLost, RoleHeld
from ..models import Grant, Json
from ._events import Emitter, log, within
from ._keeper import TTL_S, WAIT_MOST_S, Keeper
from ._ties import HeldBy
from ._watcher import Watcher

__all__ = ["CHECK_EVERY_S", "EVENTS", "Election", "Status"]

CHECK_EVERY_S = 5.0
WAIT_FOR_ELECTION_S = 30.0
#: The most that a follower's call waits, so that a node that has forgotten it is noticed.
FOLLOWER_WAIT_MOST_S = min(30.0, WAIT_MOST_S)

#: The event of a grant may come this much earlier than its answer; a call that was cancelled then could undo the grant.
ANSWER_AFTER_EVENT_S = 0.5

Work = Callable[[], Coroutine[Any, Any, None]]
Status = Literal["stopped", "starting", "started", "stopping"]

EVENTS = (
    "leader_acquired",
    "leader_lost",
    "election_started",
    "election_completed",
    "new_leader",
    "new_state",
    "change",
    "subscribe_started",
    "subscribe_error",
    "heartbeat_error",
    "error",
)


def identifier_of_this_process() -> str:
    return f"{socket.gethostname()}:{os.getpid()}"


class Election(Emitter):
    """`start()` takes part until `stop()`; as a context manager it tries once, and gives the role back at the end.

    `changes` is the prefix of documents whose changes are emitted as `change`; without it there are none.
    """

    def __init__(
        self,
        backend: Backend,
        role: str,
        *,
        instance_id: str | None = None,
        identifier: str | None = None,
        ttl: float = TTL_S,
        renew_every: float | None = None,
        check_every: float = CHECK_EVERY_S,
        priority: int = 0,
        metadata: Json = None,
        address: str | None = None,
        changes: str | None = None,
        watch: bool = True,
        held_by: HeldBy = "connection",
    ) -> None:
        super().__init__(EVENTS)
        self._backend = backend
        self.role = role
        #: One life of this process; no other ever uses it again.
        self.id = instance_id or str(uuid.uuid4())
        self.identifier = identifier or identifier_of_this_process()
        self.address = address
        self.priority = priority
        self._metadata = metadata
        self._wait = min(check_every, FOLLOWER_WAIT_MOST_S)
        if self._wait <= 0:
            raise ValueError("check_every has to be more than nothing")
        self._keeper = Keeper(
            backend, role, self.id, ttl=ttl, renew_every=renew_every, on_renewal_error=self._renewal_failed, held_by=held_by
        )
        self._watcher = Watcher(self, backend, role, changes) if watch else None
        self._status: Status = "stopped"
        self._leading = False  # as the events said; `is_leader` asks the clock
        self._leader: str | None = None
        self._asking = False
        self._deciding = False
        self._decided = asyncio.Event()
        self._elected = asyncio.Event()
        self._attempted = asyncio.Event()
        self._wake = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    # Values at the moment of the call; safe from any thread

    @property
    def is_leader(self) -> bool:
        """Whether this instance may act as the leader now, by the clock."""
        return self._status in ("starting", "started") and self._keeper.held

    @property
    def token(self) -> int | None:
        """The fencing token while this instance leads: send it with every action that is only for a leader."""
        return self._keeper.token if self._status in ("starting", "started") else None

    @property
    def status(self) -> Status:
        return self._status

    @property
    def leader_id(self) -> str | None:
        """The last known leader."""
        return self._leader

    @property
    def metadata(self) -> Json:
        return self._metadata

    async def set_metadata(self, metadata: Json) -> None:
        """Sent to the cluster with the next acquisition; at once if this instance leads."""
        self._metadata = metadata
        if self.is_leader:
            await self._tell_metadata()

    async def _tell_metadata(self) -> None:
        """This grant is not believed: only the runner takes a lease."""
        try:
            grant = await self._backend.acquire(
                self.role, self.id, ttl=self._keeper.ttl, priority=self.priority, address=self.address, metadata=self._metadata
            )
        except RoleHeld:
            self._keeper.drop()
        else:
            if grant.token != self.token:
                self._keeper.drop()

    # Continuous form

    async def start(self) -> Self:
        """Returns when the first election has been decided, or could not be held for now: then `error` says why."""
        self._begin()
        self._tasks = [self._spawn(self._run)]
        if self._watcher is not None:
            self._tasks += [self._spawn(watch) for watch in self._watcher.watches()]
        try:
            await self._attempted.wait()
        except asyncio.CancelledError:
            await self.stop()
            raise
        if self._status == "starting":
            self._status = "started"
        return self

    async def stop(self) -> None:
        """Stops leading at the moment of the call; gives the role back, and returns when that is done, after a second at most."""
        if self._status in ("stopped", "stopping"):
            return
        self._status = "stopping"
        token = self._keeper.disown()
        try:
            await self._end_tasks()
            token = self._keeper.disown() or token
            self._fall()
            await self._give_back(token)
        finally:
            self._ended()
        await self.told()

    def _ended(self) -> None:
        self._status = "stopped"
        self._asking = self._deciding = False
        self._decided.set()
        self._attempted.set()

    async def elect(self, instance_id: str | None = None) -> int:
        """Names the leader, this instance by default; returns its token. Needs the admin credential.

        The previous leader has lost the role, and learns it by the feed; until then only the token tells the two apart.
        """
        named = instance_id or self.id
        if named != self.id:
            self._keeper.drop()
            return (await self._backend.elect(self.role, named, ttl=self._keeper.ttl)).token
        grant = await self._backend.elect(
            self.role, self.id, ttl=self._keeper.ttl, address=self.address, metadata=self._metadata
        )
        if grant.token != self.token:
            self._keeper.drop()
            self._elected.clear()  # the task that keeps the lease clears it too, but has not run yet
            self._wake.set()
        if self._status == "started":
            await self.wait_until_leader()
        return grant.token

    async def wait_for_election(self, timeout: float = WAIT_FOR_ELECTION_S) -> bool:
        """Waits until it is decided who leads; returns whether this instance does. False also if it is not decided in time."""
        await within(timeout, self._decided)
        return self.is_leader

    async def wait_until_leader(self, timeout: float = WAIT_FOR_ELECTION_S) -> bool:
        """Waits until this instance leads."""
        await within(timeout, self._elected)
        return self.is_leader

    # One-shot form

    async def __aenter__(self) -> Self:
        self._begin()
        try:
            await self._campaign(0.0)
        except BaseException:
            self._ended()
            raise
        self._status = "started"
        if self._leading:
            self._tasks = [self._spawn(self._keep_once)]
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        await self.stop()

    async def _keep_once(self) -> None:
        await self._keeper.keep()
        self._fall()

    # The election

    def _begin(self) -> None:
        if self._status != "stopped":
            raise RuntimeError(f"the election is {self._status}")
        self._status = "starting"
        self._attempted.clear()
        self._open_election()

    def _spawn(self, work: Work) -> asyncio.Task[None]:
        return asyncio.get_running_loop().create_task(self._guarded(work))

    async def _guarded(self, work: Work) -> None:
        """An unexpected error ends the belief at once, and is reported; it does not pass in silence."""
        try:
            await work()
        except Exception as error:
            log.exception("the election of %s has failed", self.role)
            self._keeper.drop()
            self._fall()
            self._attempted.set()
            self.emit("error", error)

    async def _run(self) -> None:
        backoff, wait = Backoff(random.Random()), 0.0
        while True:
            try:
                won = await self._unless_woken(wait) if wait else await self._campaign_at_once()
            except EldestError as error:
                self.emit("error", error)
                self._attempted.set()
                await asyncio.sleep(backoff.delay())
                continue
            self._attempted.set()
            backoff.reset()
            # After a wake-up the next call does not wait: the role may be this instance's already.
            wait = self._wait if won is False else 0.0
            if won:
                await self._keeper.keep()
                self._fall()
                self._open_election()

    async def _campaign_at_once(self) -> bool:
        self._wake.clear()  # a later wake-up may be news that is newer than the answer
        return await self._campaign(0.0)

    async def _unless_woken(self, wait: float) -> bool | None:
        """Whether it was won; None if the feed said that there is no need to wait."""
        loop = asyncio.get_running_loop()
        running, woken = loop.create_task(self._campaign(wait)), loop.create_task(self._wake.wait())
        try:
            await asyncio.wait([running, woken], return_when=asyncio.FIRST_COMPLETED)
            return running.result() if running.done() else None
        finally:
            for task in (running, woken):
                task.cancel()
            await asyncio.gather(running, woken, return_exceptions=True)

    async def _campaign(self, wait: float) -> bool:
        """One try; whether it was won."""
        self._asking = True  # stays set if there is no answer
        try:
            grant = await self._keeper.take(
                wait=wait,
                priority=self.priority,
                address=self.address,
                metadata=self._metadata,
                outlives=not wait,
            )
        except RoleHeld as held:
            self._asking = False
            self._heard_of(held.leader_id)
            self._close_election(False)
            return False
        except LeaseLost:  # waited for, granted, and lost again before it could be believed
            return False
        self._asking = False
        self._rise(grant)
        return True

    def _rise(self, grant: Grant) -> None:
        self._leading = True
        self._elected.set()
        self.emit("leader_acquired", grant.token)
        self.emit("new_state", "leader")
        self._heard_of(self.id)
        self._close_election(True)

    def _fall(self) -> None:
        if not self._leading:
            return
        self._leading = False
        self._elected.clear()
        self.emit("leader_lost")
        self.emit("new_state", "follower")

    def _open_election(self) -> None:
        if not self._deciding:
            self._deciding = True
            self._decided.clear()
            self.emit("election_started")

    def _close_election(self, won: bool) -> None:
        if self._deciding:
            self._deciding = False
            self.emit("election_completed", won)
        self._decided.set()

    def _heard_of(self, leader: str | None) -> None:
        if leader is not None and leader != self._leader:
            self._leader = leader
            self.emit("new_leader", leader)

    def _renewal_failed(self, error: Exception) -> None:
        self.emit("heartbeat_error", error)

    # Events of the feed: they only hasten what the lease would bring anyway

    def role_was_acquired(self, by: str, token: int) -> None:
        if by == self.id:
            # The answer to the call that waits will come soon, or another client named this instance.
            asyncio.get_running_loop().call_later(ANSWER_AFTER_EVENT_S, self._wake_unless_held)
            return
        own = self._keeper.token
        if own is not None and own > token:
            return  # of an earlier grant
        self._keeper.drop()
        self._heard_of(by)
        self._close_election(False)

    def _wake_unless_held(self) -> None:
        if not self._keeper.held:
            self._wake.set()

    def role_was_lost(self, token: int) -> None:
        own = self._keeper.token
        if own == token:
            self._keeper.drop()
        elif own is None:
            self._leader = None
            self._open_election()

    def look_again(self) -> None:
        """Events so far may be of a state that was replaced."""
        self._keeper.renew_now()

    # The end

    async def _end_tasks(self) -> None:
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _give_back(self, token: int | None) -> None:
        """If the role could not be released, that is reported, and the role lapses after its ttl."""
        try:
            await self._keeper.give_back(token, asked=self._asking)
        except EldestError as error:
            self.emit("error", error)
