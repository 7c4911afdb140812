"""The cluster's API, blocking."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Self

from .. import aio
from ..aio._transport import DEADLINE_S
from ..aio._ties import HeldBy
from ..errors import EldestError
from ..models import Applied, Doc, Grant, IfRole, Json, Level, Page, Process, Renewal, RoleState, Written
from ._portal import portal
from .lock import LockGuard
from .streams import Feed, Reader

PAGE_ITEMS = 100


class Client:
    """Like `eldest.aio.Client`; threads may share it."""

    def __init__(
        self,
        nodes: Sequence[str],
        *,
        deadline: float = DEADLINE_S,
        token: str | None = None,
        ssl_context: ssl.SSLContext | None = None,
        secret: str | None = None,
    ) -> None:
        self.aio = aio.Client(nodes, deadline=deadline, token=token, ssl_context=ssl_context, secret=secret)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        portal.run(self.aio.close())

    # Documents

    def get(self, key: str, *, level: Level = "linear") -> Doc:
        return portal.run(self.aio.get(key, level=level))

    def put(
        self,
        key: str,
        value: Json,
        *,
        if_rev: str | None = None,
        if_absent: bool = False,
        if_role: IfRole | None = None,
        ttl: float | None = None,
        with_role: tuple[str, int] | None = None,
        with_process: str | None = None,
        secret: str | None = None,
    ) -> Written:
        putting = self.aio.put(
            key, value, if_rev=if_rev, if_absent=if_absent, if_role=if_role,
            ttl=ttl, with_role=with_role, with_process=with_process, secret=secret,
        )  # fmt: skip
        return portal.run(putting)

    def renew_doc(self, key: str, *, if_rev: str | None = None) -> float:
        return portal.run(self.aio.renew_doc(key, if_rev=if_rev))

    def delete(self, key: str, *, if_rev: str | None = None, if_role: IfRole | None = None) -> None:
        portal.run(self.aio.delete(key, if_rev=if_rev, if_role=if_role))

    def list_docs(
        self, prefix: str = "", *, limit: int = PAGE_ITEMS, after: str | None = None, level: Level = "linear"
    ) -> Page[Doc]:
        return portal.run(self.aio.list_docs(prefix, limit=limit, after=after, level=level))

    def docs(self, prefix: str = "", *, level: Level = "linear") -> Iterator[Doc]:
        return portal.iterate(self.aio.docs(prefix, level=level))

    # Commands

    def command(self, storage_cmd: str, payload: Mapping[str, Json]) -> Json:
        return portal.run(self.aio.command(storage_cmd, payload))

    def batch(self, commands: Sequence[tuple[str, Mapping[str, Json]]]) -> Applied:
        return portal.run(self.aio.batch(commands))

    def bulk(self, commands: Sequence[tuple[str, Mapping[str, Json]]]) -> list[Applied | EldestError]:
        return portal.run(self.aio.bulk(commands))

    def read(self, path: str, *, level: Level | None = None, **query: str | int | None) -> Json:
        return portal.run(self.aio.read(path, level=level, **query))

    def status(self) -> dict[str, Json]:
        return portal.run(self.aio.status())

    # Roles

    def acquire(
        self,
        role: str,
        instance_id: str,
        *,
        ttl: float = 30.0,
        wait: float = 0.0,
        priority: int = 0,
        address: str | None = None,
        metadata: Json = None,
    ) -> Grant:
        acquiring = self.aio.acquire(
            role, instance_id, ttl=ttl, wait=wait, priority=priority, address=address, metadata=metadata
        )
        return portal.run(acquiring)

    def renew(self, role: str, instance_id: str, token: int, *, ttl: float = 30.0) -> Renewal:
        return portal.run(self.aio.renew(role, instance_id, token, ttl=ttl))

    def release(self, role: str, instance_id: str, token: int) -> None:
        portal.run(self.aio.release(role, instance_id, token))

    def elect(
        self, role: str, instance_id: str, *, ttl: float = 30.0, address: str | None = None, metadata: Json = None
    ) -> Grant:
        return portal.run(self.aio.elect(role, instance_id, ttl=ttl, address=address, metadata=metadata))

    def role(self, role: str) -> RoleState:
        return portal.run(self.aio.role(role))

    def roles(self, prefix: str = "") -> Iterator[RoleState]:
        return portal.iterate(self.aio.roles(prefix))

    def check(self, role: str, token: int) -> bool:
        return portal.run(self.aio.check(role, token))

    def lock(
        self,
        name: str,
        *,
        timeout: float = 0.0,
        ttl: float = 30.0,
        priority: int = 0,
        metadata: Json = None,
        held_by: HeldBy = "connection",
    ) -> LockGuard:
        return LockGuard(self, name, timeout=timeout, ttl=ttl, priority=priority, metadata=metadata, held_by=held_by)

    # Processes

    def register(
        self,
        process_id: str,
        identifier: str,
        *,
        role: str | None = None,
        capabilities: Json = None,
        metadata: Json = None,
        ttl: float = 45.0,
        guarded: bool | None = None,
    ) -> Process:
        registering = self.aio.register(
            process_id, identifier, role=role, capabilities=capabilities, metadata=metadata, ttl=ttl, guarded=guarded
        )
        return portal.run(registering)

    def heartbeat(self, process_id: str, *, guarded: bool | None = None) -> float:
        return portal.run(self.aio.heartbeat(process_id, guarded=guarded))

    def unregister(self, process_id: str, *, guarded: bool | None = None, deadline: float | None = None) -> None:
        portal.run(self.aio.unregister(process_id, guarded=guarded, deadline=deadline))

    def process(self, process_id: str) -> Process:
        return portal.run(self.aio.process(process_id))

    def processes(
        self, *, role: str | None = None, capability: str | None = None, identifier: str | None = None
    ) -> Iterator[Process]:
        return portal.iterate(self.aio.processes(role=role, capability=capability, identifier=identifier))

    # Channels and the feed

    def publish(self, channel: str, message: Json) -> int:
        return portal.run(self.aio.publish(channel, message))

    def listen(self, channel: str) -> Reader[Json]:
        """Messages from now on: it is listening when this returns, unless no node allowed it for 5 s."""
        opened = threading.Event()
        reader = Reader(self.aio.listen(channel, on_open=opened.set))
        reader.begin(opened)
        return reader

    def feed(
        self, kinds: Collection[str] = (), prefix: str = "", *, since: str | None = None, bookmarks: bool = False
    ) -> Feed:
        return Feed(self.aio.feed(kinds, prefix, since=since, bookmarks=bookmarks))

