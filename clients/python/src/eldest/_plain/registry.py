"""Processes that know of each other, blocking; heartbeats go on in the background."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from .. import aio
from ..aio.registry import HEARTBEAT_EVERY_S, PROCESS_TTL_S, SLAVE
from ..models import Json, Process
from ._portal import portal
from .client import Client
from .election import Election
from .events import Events


class Registry(Events):
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
        self.aio = aio.Registry(
            client.aio,
            identifier,
            election=None if election is None else election.aio,
            process_id=process_id,
            role=role,
            capabilities=capabilities,
            metadata=metadata,
            ttl=ttl,
            heartbeat_every=heartbeat_every,
        )
        super().__init__(self.aio)
        self.id = self.aio.id
        self.identifier = self.aio.identifier

    @property
    def role(self) -> str:
        return self.aio.role

    @property
    def channel(self) -> str:
        return self.aio.channel

    def start(self) -> Self:
        portal.run(self.aio.start())
        return self

    def stop(self) -> None:
        portal.run(self.aio.stop())

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()

    def register(self) -> Process:
        return portal.run(self.aio.register())

    def heartbeat(self) -> None:
        portal.run(self.aio.heartbeat())

    def unregister(self) -> None:
        portal.run(self.aio.unregister())

    def all(self) -> list[Process]:
        return portal.run(self.aio.all())

    def by_role(self, role: str) -> list[Process]:
        return portal.run(self.aio.by_role(role))

    def by_capability(self, capability: str) -> list[Process]:
        return portal.run(self.aio.by_capability(capability))

    def get(self, process_id: str) -> Process | None:
        return portal.run(self.aio.get(process_id))

    def master(self) -> Process | None:
        return portal.run(self.aio.master())

    def slaves(self) -> list[Process]:
        return portal.run(self.aio.slaves())

    def slave(self, process_id: str) -> Process | None:
        return portal.run(self.aio.slave(process_id))

    def slave_count(self) -> int:
        return portal.run(self.aio.slave_count())
