"""One HTTP/1.1 connection on asyncio streams, and a pool of idle ones."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import urlsplit
from weakref import WeakSet

from .._http import BODY_BYTES_MOST, HEAD_BYTES_MOST, Body, Head, Malformed, Request, parse_head

#: A machine that is up accepts a connection at once; a machine that is cut off must leave time for another node.
CONNECT_TIMEOUT_S = 1.0
#: Nodes close connections that are idle for 75 s; a client has to close them sooner.
IDLE_S = 30.0
#: The other side may be slow to end an encrypted connection; after this time it is abandoned.
CLOSE_TIMEOUT_S = 1.0
#: More concurrent calls than this open extra connections, and close them.
IDLE_MOST = 8

_READ_BYTES = 64 << 10


class NotConnected(Exception):
    """No part of the request has left."""


class Lost(Exception):
    """The connection ended, or sent bytes that are not HTTP, when the request may have left."""


@dataclass(frozen=True, slots=True)
class Address:
    host: str
    port: int
    tls: bool

    @staticmethod
    def of(url: str) -> Address:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.path not in ("", "/"):
            raise ValueError(f"{url!r} is not a node's URL; one looks like http://10.0.0.1:9000")
        tls = parts.scheme == "https"
        return Address(parts.hostname, parts.port or (443 if tls else 80), tls)

    @property
    def name(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


class Connection:
    def __init__(self, address: Address, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._address = address
        self._reader = reader
        self._writer = writer
        self._body: Body | None = None
        self._early = b""
        self._reusable = False

    @staticmethod
    async def open(address: Address, context: ssl.SSLContext | None) -> Connection:
        tls = (context or True) if address.tls else None
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT_S):
                streams = await asyncio.open_connection(address.host, address.port, ssl=tls, limit=HEAD_BYTES_MOST)
        except (OSError, TimeoutError) as error:
            raise NotConnected(f"{address.name}: {error or 'no connection in time'}") from error
        return Connection(address, *streams)

    @property
    def stale(self) -> bool:
        return self._reader.at_eof() or self._writer.is_closing()

    @property
    def reusable(self) -> bool:
        return self._reusable and self._body is not None and self._body.done and not self.stale

    async def exchange(self, request: Request) -> Head:
        """Sends the request, and reads the answer's head."""
        self._reusable = False
        try:
            self._writer.write(request.encode(self._address.name))
            await self._writer.drain()
            head = parse_head(await self._head())
            while head.status < 200:
                head = parse_head(await self._head())
            self._body = Body(head)
        except (OSError, EOFError, asyncio.LimitOverrunError, Malformed) as error:
            raise Lost(f"{self._address.name}: {error or type(error).__name__}") from error
        self._reusable = head.keep_alive
        return head

    async def _head(self) -> bytes:
        return (await self._reader.readuntil(b"\r\n\r\n"))[:-4]

    async def piece(self) -> bytes:
        """Part of the body; empty at its end."""
        body = self._body
        try:
            while body is not None and not body.done:
                data = await self._reader.read(_READ_BYTES)
                out = body.feed(data)
                if not data:
                    body.closed()
                if out:
                    return out
        except (OSError, Malformed) as error:
            raise Lost(f"{self._address.name}: {error or type(error).__name__}") from error
        return b""

    async def whole_body(self) -> bytes:
        pieces, size = [], 0
        while piece := await self.piece():
            pieces.append(piece)
            size += len(piece)
            if size > BODY_BYTES_MOST:
                raise Lost(f"{self._address.name}: an answer of more than {BODY_BYTES_MOST} bytes")
        return b"".join(pieces)

    def close(self) -> None:
        self._writer.close()

    async def closed(self) -> None:
        with contextlib.suppress(OSError, TimeoutError):
            async with asyncio.timeout(CLOSE_TIMEOUT_S):
                await self._writer.wait_closed()


class Pool:
    """Idle connections by node. `now` is a steady clock."""

    def __init__(self, context: ssl.SSLContext | None, now: Callable[[], float]) -> None:
        self._context = context
        self._now = now
        self._idle: dict[str, list[tuple[float, Connection]]] = {}
        self._open: WeakSet[Connection] = WeakSet()
        self._closed = False

    async def take(self, url: str) -> Connection:
        if self._closed:
            raise RuntimeError("the client is closed")
        connection = self._take_idle(url) or await Connection.open(Address.of(url), self._context)
        self._open.add(connection)
        return connection

    def _take_idle(self, url: str) -> Connection | None:
        idle = self._idle.get(url, [])
        while idle:
            since, connection = idle.pop()
            if self._now() - since < IDLE_S and not connection.stale:
                return connection
            connection.close()
        return None

    def give_back(self, url: str, connection: Connection) -> None:
        """Takes a connection in any state; one that cannot be reused is closed."""
        idle = self._idle.setdefault(url, [])
        if self._closed or not connection.reusable or len(idle) >= IDLE_MOST:
            connection.close()
        else:
            idle.append((self._now(), connection))

    async def close(self) -> None:
        """Closes connections in use too: calls on them end."""
        self._closed = True
        connections = list(self._open)
        self._idle.clear()
        for connection in connections:
            connection.close()
        await asyncio.gather(*(connection.closed() for connection in connections))
