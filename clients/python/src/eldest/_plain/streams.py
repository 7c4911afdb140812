"""The feed and channels, blocking."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import CancelledError, Future
from types import TracebackType
from typing import Generic, Self, TypeVar

from ..aio._streams import Feed as AsyncFeed
from ..aio._streams import Stream
from ..models import FeedEvent
from ._portal import portal

T = TypeVar("T")

#: `listen` waits this long for its first connection; after that it goes on trying while it is iterated over.
BEGINS_WITHIN_S = 5.0


class Reader(Generic[T]):
    """A stream to iterate over. Call `close()`, from any thread, or use it in a `with`: both end the iteration."""

    def __init__(self, stream: Stream[T]) -> None:
        self._stream = stream
        self._coming: Future[T] | None = None
        self._closed = False
        self._turn = threading.Lock()

    def begin(self, opened: threading.Event) -> None:
        """Connects before the first item is asked for."""
        self._coming = self._ask()
        opened.wait(BEGINS_WITHIN_S)

    def __iter__(self) -> Iterator[T]:
        return self

    def __next__(self) -> T:
        with self._turn:  # otherwise a close in between would find nothing to cancel
            if self._closed:
                raise StopIteration
            self._coming = coming = self._coming or self._ask()
        try:
            return coming.result()
        except CancelledError:
            raise StopIteration from None
        except BaseException:
            coming.cancel()
            raise
        finally:
            self._coming = None

    def close(self) -> None:
        with self._turn:
            self._closed = True
            coming = self._coming
        if coming is not None:
            coming.cancel()
        portal.run(self._stream.aclose())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _ask(self) -> Future[T]:
        async def following() -> T:
            return await anext(self._stream)

        return asyncio.run_coroutine_threadsafe(following(), portal.loop())


class Feed(Reader[FeedEvent]):
    def __init__(self, feed: AsyncFeed) -> None:
        super().__init__(feed)
        self._feed = feed

    @property
    def last_id(self) -> str | None:
        """The position at which a later reader goes on (`since`)."""
        return self._feed.last_id
