"""Processes that know of each other: each has an entry, which lasts as long as its heartbeats."""

from __future__ import annotations

import asyncio
import contextlib
import random
import uuid
from types import TracebackType
from typing import Self

from .._retry import Backoff
from ..errors import EldestError, FeedCompacted, NotFound
from ..models import FeedEvent, Json, Process
from ._events import Emitter
from .client import Client
from .election import Election, identifier_of_this_process

__all__ = ["HEARTBEAT_EVERY_S", "MASTER", "PROCESS_TTL_S", "SLAVE", "Registry"]

PROCESS_TTL_S = 45.0
HEARTBEAT_EVERY_S = 10.0
FEED_KINDS = ["process_registered", "process_changed", "process_removed"]
MASTER, SLAVE = "master", "slave"
#: `stop` does not hang if the cluster is away: the entry lapses by its ttl then.
UNREGISTER_MOST_S = 1.0
EVENTS = ("slave_registered", "slave_changed", "slave_removed", "heartbeat_error", "error")


class Registry(Emitter):
    """With an `election` the entry has its id, and its role follows it: `master` while it leads, otherwise `slave`."""

    def __init__(
        self,
        client: Client,
        identifier: str | None = None,
        *,
        election: Election | None = None,
        process_id: str | None = None,
        role: str = SLAVE,
        capabilities: Json = None,
        metadata: Json = None,
        ttl: float = PROCESS_TTL_S,
        heartbeat_every: float = HEARTBEAT_EVERY_S,
    ) -> None:
        super().__init__(EVENTS)
        if not 0 < heartbeat_every < ttl:
            raise ValueError("heartbeat_every has to be less than the ttl")
        self._client = client
        self._election = election
        self.id = process_id or (election.id if election else str(uuid.uuid4()))
        # No process comes back under a random id, so no other client needs to speak for it.
        self._guarded = True if process_id is None and election is None else None
        self.identifier = identifier or (election.identifier if election else identifier_of_this_process())
        self.capabilities = capabilities
        self.metadata = metadata
        self._role = role
        self._ttl = ttl
        self._heartbeat_every = heartbeat_every
        self._again = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def role(self) -> str:
        if self._election is None:
            return self._role
        return MASTER if self._election.is_leader else SLAVE

    @property
    def channel(self) -> str:
        """The channel for messages to this process: `client.listen(registry.channel)`."""
        return f"worker:slave:{self.id}"

    # This process

    async def start(self) -> Self:
        """Registers, and keeps the entry alive until `stop()`."""
        if self._tasks:
            raise RuntimeError("the registry has been started")
        if self._election is not None:
            self._election.on("leader_acquired", self._turned)
            self._election.on("leader_lost", self._turned)
        await self.register()
        loop = asyncio.get_running_loop()
        self._tasks = [loop.create_task(self._beat()), loop.create_task(self._watch())]
        return self

    async def stop(self) -> None:
        """Removes the entry; raises if that failed for a second: then the entry lapses by its ttl."""
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._election is not None:
            self._election.off("leader_acquired", self._turned)
            self._election.off("leader_lost", self._turned)
        try:
            await self._unregister(UNREGISTER_MOST_S)
        finally:
            await self.told()

    async def __aenter__(self) -> Self:
        return await self.start()

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        await self.stop()

    async def register(self) -> Process:
        """Writes the present entry of this process."""
        return await self._client.register(
            self.id,
            self.identifier,
            role=self.role,
            capabilities=self.capabilities,
            metadata=self.metadata,
            ttl=self._ttl,
            guarded=self._guarded,
        )

    async def heartbeat(self) -> None:
        """Prolongs the entry; if it has gone, it is written again."""
        try:
            await self._client.heartbeat(self.id, guarded=self._guarded)
        except NotFound:
            await self.register()

    async def unregister(self) -> None:
        """Removes the entry; if there is none, that is fine."""
        await self._unregister(None)

    async def _unregister(self, deadline: float | None) -> None:
        with contextlib.suppress(NotFound):
            await self._client.unregister(self.id, guarded=self._guarded, deadline=deadline)

    # All processes

    async def all(self) -> list[Process]:
        return [process async for process in self._client.processes()]

    async def by_role(self, role: str) -> list[Process]:
        return [process async for process in self._client.processes(role=role)]

    async def by_capability(self, capability: str) -> list[Process]:
        return [process async for process in self._client.processes(capability=capability)]

    async def get(self, process_id: str) -> Process | None:
        try:
            return await self._client.process(process_id)
        except NotFound:
            return None

    async def master(self) -> Process | None:
        """With an election, the entry of the present holder of the role, not one that merely says it is the master."""
        if self._election is None:
            return next(iter(await self.by_role(MASTER)), None)
        leader = (await self._client.role(self._election.role)).leader
        return None if leader is None else await self.get(leader.instance_id)

    async def slaves(self) -> list[Process]:
        return await self.by_role(SLAVE)

    async def slave(self, process_id: str) -> Process | None:
        process = await self.get(process_id)
        return process if process is not None and process.role == SLAVE else None

    async def slave_count(self) -> int:
        return len(await self.slaves())

    # In the background

    def _turned(self, *_: object) -> None:
        self._again.set()

    async def _beat(self) -> None:
        while True:
            turned = await self._rest()
            try:
                await (self.register() if turned else self.heartbeat())
            except EldestError as error:
                self.emit("heartbeat_error", error)
                if turned:
                    self._again.set()

    async def _rest(self) -> bool:
        """Waits until the next heartbeat is due; True as soon as the role has changed."""
        try:
            async with asyncio.timeout(self._heartbeat_every):
                await self._again.wait()
        except TimeoutError:
            return False
        self._again.clear()
        return True

    async def _watch(self) -> None:
        backoff = Backoff(random.Random())
        while True:
            try:
                async with self._client.feed(FEED_KINDS) as feed:
                    async for event in feed:
                        await self._saw(event)
            except FeedCompacted as error:  # missed events cannot be reported; later ones can
                self.emit("error", error)
            except EldestError as error:
                self.emit("error", error)
                await asyncio.sleep(backoff.delay())

    async def _saw(self, event: FeedEvent) -> None:
        process = event.data.get("process")
        if not isinstance(process, str):
            return
        role, before = event.data.get("role"), event.data.get("previous_role")
        if event.kind == "process_removed":
            role, before = None, role
        if role == SLAVE:  # if the slave has gone or changed its role since, an event about that follows
            if (entry := await self.slave(process)) is not None:
                self.emit("slave_changed" if before == SLAVE else "slave_registered", entry)
        elif before == SLAVE:
            self.emit("slave_removed", process)
