"""A lease that ends with a connection: the belief after a break, and the number that the next renewal names."""

from __future__ import annotations

import asyncio
import unittest
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from eldest import NotFound, Unavailable
from eldest.aio import MemoryBackend
from eldest.aio._keeper import Keeper
from eldest.aio._ties import grace
from eldest.models import Renewal

from .support import PATIENCE, Clock, ClusterCase

TTL = 10.0


class Line:
    """One connection, from the node's side."""

    def __init__(self, number: int, grace: float) -> None:
        self.number = number
        self.grace = grace
        self.closed = asyncio.Event()
        self.says: asyncio.Queue[str | None] = asyncio.Queue()


class TiedBackend(MemoryBackend):
    """Keeps the numbers that renewals name; a test ends connections, and renewals."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(clock=clock)
        self.named: list[int | None] = []
        self.lines: list[Line] = []
        self.refusal: Exception | None = None
        self.away = False
        self.changed = asyncio.Condition()

    async def renew(self, *args: Any, tie: int | None = None, **options: Any) -> Renewal:
        if self.away:
            raise Unavailable("away")
        renewal = await super().renew(*args, **options)
        self.named.append(tie)
        return renewal

    @asynccontextmanager
    async def tie(
        self, role: str, instance_id: str, token: int, *, tie: int, ttl: float, grace: float
    ) -> AsyncIterator[AsyncIterator[Renewal | str]]:
        if self.refusal is not None:
            refusal, self.refusal = self.refusal, None
            raise refusal
        line = Line(tie, grace)
        self.lines.append(line)
        try:
            yield self._events(line, token, ttl)
        finally:
            line.closed.set()

    async def _events(self, line: Line, token: int, ttl: float) -> AsyncIterator[Renewal | str]:
        yield Renewal(token, ttl, self.now())
        while (word := await line.says.get()) is not None:
            yield word


class Breaking(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self) -> None:
        self.clock = Clock()
        self.backend = TiedBackend(self.clock)

    async def kept(self, **options: Any) -> Keeper:
        keeper = Keeper(self.backend, "r", "a", ttl=TTL, **options)
        await keeper.take()
        keeping = asyncio.create_task(keeper.keep())
        self.addAsyncCleanup(self.ended, keeping)
        return keeper

    async def ended(self, keeping: asyncio.Task[None]) -> None:
        keeping.cancel()
        await asyncio.gather(keeping, return_exceptions=True)

    async def until(self, met: Any) -> None:
        async with asyncio.timeout(PATIENCE):
            while not met():
                await asyncio.sleep(0)

    async def test_a_renewal_names_the_connection_that_is_open(self) -> None:
        keeper = await self.kept()
        await self.until(lambda: self.backend.lines)
        self.assertEqual(self.backend.lines[0].grace, grace(TTL))
        keeper.renew_now()
        await self.until(lambda: self.backend.named)
        self.assertEqual(self.backend.named, [self.backend.lines[0].number])

    async def test_one_that_breaks_is_followed_by_the_next_number_and_the_next_connection(self) -> None:
        keeper = await self.kept()
        await self.until(lambda: self.backend.lines)
        first = self.backend.lines[0]
        first.says.put_nowait(None)
        await self.until(lambda: len(self.backend.lines) == 2)
        self.assertEqual(self.backend.named, [first.number + 1])
        self.assertEqual(self.backend.lines[1].number, first.number + 1)
        self.assertTrue(first.closed.is_set())
        self.clock.at += grace(TTL)
        self.assertTrue(keeper.held)

    async def test_without_a_proof_half_of_the_grace_is_believed(self) -> None:
        keeper = await self.kept()
        await self.until(lambda: self.backend.lines)
        first = self.backend.lines[0]
        self.backend.away = True
        number = first.number
        first.says.put_nowait(None)
        await self.until(lambda: keeper._ties is not None and keeper._ties.number == number + 1)
        self.assertTrue(keeper.held)
        self.clock.at += grace(TTL) / 2
        self.assertFalse(keeper.held)
        self.assertFalse(first.closed.is_set())

    async def test_a_node_that_is_about_to_end_lets_go(self) -> None:
        keeper = await self.kept()
        await self.until(lambda: self.backend.lines)
        first = self.backend.lines[0]
        self.backend.away = True
        first.says.put_nowait("stopping")
        await self.until(lambda: keeper._ties is not None and keeper._ties.number == first.number + 1)
        self.clock.at += grace(TTL)
        self.assertTrue(keeper.held)

    async def test_a_new_leader_is_told_at_once(self) -> None:
        await self.kept()
        await self.until(lambda: self.backend.lines)
        self.backend.lines[0].says.put_nowait("renew")
        await self.until(lambda: self.backend.named == [self.backend.lines[0].number])

    async def test_where_there_is_no_such_thing_the_lease_alone_counts(self) -> None:
        self.backend.refusal = NotFound("not_found", 404)
        keeper = await self.kept()
        await self.until(lambda: self.backend.refusal is None)
        keeper.renew_now()
        await self.until(lambda: self.backend.named)
        self.assertEqual(self.backend.lines, [])
        self.assertTrue(keeper.held)

    async def test_a_connection_that_was_not_made_leaves_no_doubt(self) -> None:
        self.backend.refusal = Unavailable("refused")
        await self.kept()
        await self.until(lambda: self.backend.lines)
        self.assertEqual(self.backend.named, [])

    async def test_held_by_the_lease_alone(self) -> None:
        keeper = await self.kept(held_by="lease")
        keeper.renew_now()
        await self.until(lambda: self.backend.named)
        self.assertEqual((self.backend.named, self.backend.lines), ([None], []))
        with self.assertRaises(ValueError):
            Keeper(self.backend, "r", "a", held_by="hand")  # type: ignore[arg-type]


class OverHttp(ClusterCase):
    async def test_it_is_opened_beside_the_node_that_answers(self) -> None:
        client = self.client()
        async with client.lock("job") as guard:
            await self.seen("POST", "/v1/roles/job/tie")
            self.assertTrue(guard.held)
        self.assertIsNone((await client.role("job")).leader)
