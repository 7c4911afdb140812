"""A broker and its state, blocking; heartbeats go on in the background."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from .. import aio
from ..aio.broker import BROKER_HEARTBEAT_S, BROKER_TTL_S, ElectionResult
from ..models import Json, Written
from ._portal import portal
from ._sides import Plain
from .client import Client
from .events import Events


class Broker(Events):
    """Single-shot: to stand by, call `try_elect()` again."""

    def __init__(
        self,
        backend: Plain,
        address: str,
        *,
        role: str = "broker",
        instance_id: str | None = None,
        heartbeat: float = BROKER_HEARTBEAT_S,
        ttl: float = BROKER_TTL_S,
    ) -> None:
        self.aio = aio.Broker(
            backend.aio, address, role=role, instance_id=instance_id, heartbeat=heartbeat, ttl=ttl
        )
        super().__init__(self.aio)
        self.role = role
        self.address = address
        self.id = self.aio.id

    @property
    def is_leader(self) -> bool:
        return self.aio.is_leader

    @property
    def token(self) -> int | None:
        return self.aio.token

    def try_elect(self) -> ElectionResult:
        return portal.run(self.aio.try_elect())

    def check_leadership(self) -> bool:
        return portal.run(self.aio.check_leadership())

    def refused(self, token: int | None) -> None:
        async def refused() -> None:
            self.aio.refused(token)

        portal.run(refused())

    def stop(self) -> None:
        portal.run(self.aio.stop())


class StateDoc:
    """One JSON document with several writers, none of which overwrites another's change; with a `broker`, only in its name."""

    def __init__(self, client: Client, key: str, *, default: Json = None, broker: Broker | None = None) -> None:
        self._aio = aio.StateDoc(client.aio, key, default=default, broker=None if broker is None else broker.aio)
        self.key = key

    def read(self) -> tuple[Json, str | None]:
        return portal.run(self._aio.read())

    def create_if_not_exists(self, value: Json) -> bool:
        return portal.run(self._aio.create_if_not_exists(value))

    def swap(self, value: Json, rev: str | None) -> Written:
        return portal.run(self._aio.swap(value, rev))

    def update(self, change: Callable[[Json], Json]) -> Json:
        """`change` runs in a separate thread, perhaps several times."""

        async def changed(value: Json) -> Json:
            return await asyncio.to_thread(change, value)

        return portal.run(self._aio.update(changed))
