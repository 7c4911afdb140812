"""The feed and channels as iterators that go on at another node by themselves.

Nothing is queued here: events that the caller has not asked for stay in the connection, whose buffers are bounded, and
the node tells a reader that falls too far behind.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from types import TracebackType
from typing import Generic, Self, TypeVar
from urllib.parse import quote, urlencode

from .._http import Request
from .._json import loads
from .._sse import SseEvent, SseParser, TooLong
from ..errors import BadAnswer, EldestError, Problem
from ..models import FeedEvent, Fields, Json, Renewal
from ._transport import StreamBroken, Transport

T = TypeVar("T")

#: Another node, or the same one later, may serve a call after these; any other status is the caller's mistake.
_PASSING = frozenset({408, 421, 429, 502, 503, 504})


class Stream(Generic[T]):
    """Events without an end. Use it with `async for`, and `aclose()` it, or use `async with`."""

    def __init__(
        self,
        transport: Transport,
        on_open: Callable[[], None] | None = None,
        on_break: Callable[[Exception], None] | None = None,
    ) -> None:
        self._transport = transport
        self._backoff = transport.backoff()
        self._on_open = on_open
        self._on_break = on_break
        self._parser = SseParser()
        self._ready: deque[SseEvent] = deque()
        self._node = transport.ring.preferred
        self._open: AbstractAsyncContextManager[AsyncIterator[bytes]] | None = None
        self._pieces: AsyncIterator[bytes] | None = None

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> T:
        while True:
            try:
                event = await self._next_event()
            except (StreamBroken, TooLong) as error:
                await self._broken(error)
            except Problem as error:
                if error.status not in _PASSING:
                    raise
                await self._broken(error)
            else:
                if (value := self._take(event)) is not None:
                    return value

    async def aclose(self) -> None:
        """Ends the connection. The iterator can be used again: it reconnects."""
        opened, self._open, self._pieces = self._open, None, None
        self._ready.clear()
        if opened is not None:
            await opened.__aexit__(None, None, None)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        await self.aclose()

    def _request(self) -> Request:
        raise NotImplementedError

    def _take(self, event: SseEvent) -> T | None:
        """Returns the caller's part of the event, if any. Raises `StreamBroken` for the event that ends a stream."""
        raise NotImplementedError

    async def _next_event(self) -> SseEvent:
        while not self._ready:
            pieces = self._pieces or await self._connect()
            try:
                piece = await anext(pieces)
            except StopAsyncIteration:
                raise StreamBroken(f"{self._node} has ended the stream") from None
            except TimeoutError:
                raise StreamBroken(f"{self._node} was silent") from None
            except EldestError:
                raise
            except Exception as error:  # the kind of error depends on the connection
                raise StreamBroken(str(error) or type(error).__name__) from error
            self._ready.extend(self._parser.feed(piece))
        return self._ready.popleft()

    async def _connect(self) -> AsyncIterator[bytes]:
        self._node = self._transport.ring.preferred
        self._parser = SseParser()
        opening = self._transport.stream(self._node, self._request())
        self._pieces = await opening.__aenter__()
        self._open = opening
        self._backoff.reset()
        if self._on_open is not None:
            self._on_open()
        return self._pieces

    async def _broken(self, error: Exception) -> None:
        await self.aclose()
        self._transport.ring.pass_over(self._node)
        if self._on_break is not None:
            self._on_break(error)
        await asyncio.sleep(self._backoff.delay())


class Feed(Stream[FeedEvent]):
    """Events of the cluster, in the order of its log, without gap or repetition across nodes.

    `last_id` is where a later reader goes on (`since`). Raises `FeedCompacted` if that position is no longer kept.
    """

    def __init__(
        self,
        transport: Transport,
        kinds: Collection[str],
        prefix: str,
        since: str | None,
        bookmarks: bool = False,
        on_open: Callable[[], None] | None = None,
        on_break: Callable[[Exception], None] | None = None,
    ) -> None:
        super().__init__(transport, None, on_break)
        query = {"kinds": ",".join(sorted(kinds)), "prefix": prefix}
        query = {name: value for name, value in query.items() if value}
        self._path = "/v1/feed" + ("?" + urlencode(query, quote_via=quote) if query else "")
        self._bookmarks = bookmarks or "bookmark" in kinds
        self._begun = on_open
        #: The id of the last event or bookmark; None before the first one.
        self.last_id = since

    def _request(self) -> Request:
        headers = {"Last-Event-ID": self.last_id} if self.last_id else {}
        return Request("GET", self._path, headers)

    def _take(self, event: SseEvent) -> FeedEvent | None:
        data = _json(event.data)
        if not isinstance(data, dict):
            raise BadAnswer("an event of the feed is not an object")
        if event.kind == "error":
            raise StreamBroken(f"{data.get('code')}: {data.get('detail')}")
        if event.id is not None:
            self.last_id = event.id
        if self._begun is not None:
            begun, self._begun = self._begun, None
            begun()
        if event.kind == "bookmark" and not self._bookmarks:
            return None
        return FeedEvent(event.kind, event.id, data)


class Channel(Stream[Json]):
    """Messages of a channel, from now on, at most once: messages that are sent while a connection is down are missed."""

    def __init__(self, transport: Transport, name: str, on_open: Callable[[], None] | None = None) -> None:
        super().__init__(transport, on_open, None)
        self._path = f"/v1/channels/{quote(name, safe='')}"

    def _request(self) -> Request:
        return Request("GET", self._path)

    async def __anext__(self) -> Json:
        return (await super().__anext__())[0]

    def _take(self, event: SseEvent) -> Json:
        """Returned in a list, so that the message `null` is not nothing."""
        data = _json(event.data)
        if event.kind == "error":
            raise StreamBroken(str(data))
        return [data]


@asynccontextmanager
async def tied(transport: Transport, request: Request, token: int) -> AsyncIterator[AsyncIterator[Renewal | str]]:
    """The stream that a lease ends with: first the renewal that opening it was, then the node's events."""
    async with transport.line(request) as (sent_at, pieces):
        yield _ties(pieces, sent_at, token)


async def _ties(pieces: AsyncIterator[bytes], sent_at: float, token: int) -> AsyncIterator[Renewal | str]:
    parser = SseParser()
    async for piece in pieces:
        for event in parser.feed(piece):
            data = _json(event.data)
            if event.kind == "tied":
                yield Renewal(token, Fields(data).seconds("expires_in_ms"), sent_at)
            elif event.kind == "error":
                yield Fields(data).text("code")
                return
            else:
                yield event.kind


def _json(text: str) -> Json:
    try:
        return loads(text)
    except ValueError as error:
        raise BadAnswer(f"an event is not JSON: {text[:80]!r}") from error
