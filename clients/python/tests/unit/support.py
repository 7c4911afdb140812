"""Helpers that several tests need."""

from __future__ import annotations

import asyncio
import unittest
from collections.abc import Callable, Iterable
from typing import Any

from eldest import aio
from eldest.aio._events import Emitter

from .fake import FakeCluster

#: No test waits this long unless something is wrong.
PATIENCE = 60.0


class Clock:
    """A clock that stands still until a test moves it."""

    def __init__(self) -> None:
        self.at = 1000.0

    def __call__(self) -> float:
        return self.at


class Heard:
    """The events of an emitter, in order."""

    def __init__(self, emitter: Emitter, names: Iterable[str]) -> None:
        self.events: list[tuple[Any, ...]] = []
        self._more = asyncio.Event()
        for name in names:
            emitter.on(name, self._listener(name))

    def _listener(self, name: str) -> Callable[..., None]:
        def heard(*args: Any) -> None:
            self.events.append((name, *args))
            self._more.set()

        return heard

    @property
    def names(self) -> list[str]:
        return [event[0] for event in self.events]

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE):
            while not condition():
                self._more.clear()
                await self._more.wait()

    async def until_heard(self, name: str, times: int = 1) -> tuple[Any, ...]:
        await self.until(lambda: self.names.count(name) >= times)
        return [event for event in self.events if event[0] == name][times - 1]


class ClusterCase(unittest.IsolatedAsyncioTestCase):
    """A fake cluster of three nodes, and a client of it."""

    nodes = 3

    def setUp(self) -> None:
        self.cluster = self.enterContext(FakeCluster(self.nodes))

    def client(self, **options: Any) -> aio.Client:
        client = aio.Client(self.cluster.urls, **options)
        self.addAsyncCleanup(client.close)
        return client

    async def seen(self, method: str, path: str, times: int = 1) -> None:
        self.assertTrue(await asyncio.to_thread(self.cluster.has_seen, method, path, times))
