"""The time for which a grant is believed, by a clock that the test moves."""

from __future__ import annotations

import asyncio
import time
import unittest
from unittest.mock import patch

from eldest import LeaseLost, RoleHeld, Unavailable
from eldest._lease import Lease, steady_now
from eldest.aio import MemoryBackend
from eldest.aio._keeper import Keeper
from eldest.models import Grant, Renewal

from .support import PATIENCE, Clock


class Arithmetic(unittest.TestCase):
    def test_it_is_counted_from_the_sending_less_one_percent_and_ten_milliseconds(self) -> None:
        lease = Lease.counted_from(100.0, 1, ttl=30.0, expires_in=30.0)
        self.assertAlmostEqual(lease.until, 129.69)
        self.assertTrue(lease.believed(129.6))
        self.assertFalse(lease.believed(129.7))

    def test_the_shorter_of_the_ttl_and_what_the_cluster_says_counts(self) -> None:
        self.assertAlmostEqual(Lease.counted_from(100.0, 1, ttl=30.0, expires_in=10.0).until, 109.89)
        self.assertAlmostEqual(Lease.counted_from(100.0, 1, ttl=10.0, expires_in=30.0).until, 109.89)
        self.assertFalse(Lease.counted_from(100.0, 1, ttl=30.0, expires_in=0.0).believed(100.0))

    @unittest.skipUnless(hasattr(time, "CLOCK_BOOTTIME"), "this system has no such clock")
    def test_the_clock_goes_on_while_the_machine_sleeps(self) -> None:
        with patch("time.clock_gettime", return_value=7.0) as asked:
            self.assertEqual(steady_now(), 7.0)
        asked.assert_called_once_with(getattr(time, "CLOCK_BOOTTIME"))


class Believing(unittest.IsolatedAsyncioTestCase):
    """`held` asks the clock, and does not depend on a timer."""

    def setUp(self) -> None:
        self.clock = Clock()
        self.backend = MemoryBackend(clock=self.clock)
        self.keeper = Keeper(self.backend, "r", "a", ttl=10.0)

    async def test_the_belief_ends_by_the_clock_alone(self) -> None:
        await self.keeper.take()
        self.assertTrue(self.keeper.held)
        self.clock.at += 9.88
        self.assertTrue(self.keeper.held)
        self.clock.at += 0.02
        self.assertFalse(self.keeper.held)
        self.assertIsNone(self.keeper.token)

    async def test_it_is_counted_from_the_sending_not_from_the_answer(self) -> None:
        async def slow(*args: object, **options: object) -> Grant:
            grant = await MemoryBackend.acquire(self.backend, "r", "a", ttl=10.0)
            self.clock.at += 6.0
            return grant

        with patch.object(self.backend, "acquire", slow):
            await self.keeper.take()
        self.assertTrue(self.keeper.held)
        self.clock.at += 4.0
        self.assertFalse(self.keeper.held)

    async def test_a_waited_grant_is_renewed_before_it_is_believed(self) -> None:
        other = await self.backend.acquire("r", "b")
        taking = asyncio.create_task(self.keeper.take(wait=PATIENCE))
        renewing = asyncio.Event()
        go_on = asyncio.Event()

        async def slow(role: str, instance: str, token: int, **options: float) -> Renewal:
            renewing.set()
            await go_on.wait()
            return await MemoryBackend.renew(self.backend, role, instance, token, ttl=10.0)

        with patch.object(self.backend, "renew", slow):
            async with asyncio.timeout(PATIENCE):
                while not (await self.backend.role("r")).waiting:
                    await asyncio.sleep(0)
                await self.backend.release("r", "b", other.token)
                await renewing.wait()
                self.assertFalse(self.keeper.held)
                self.clock.at += 100.0
                go_on.set()
                await taking
        self.assertTrue(self.keeper.held)

    async def test_a_waited_grant_that_was_lost_again_is_not_believed(self) -> None:
        with patch.object(self.backend, "renew", side_effect=LeaseLost("lease_lost", 410)), self.assertRaises(LeaseLost):
            await self.keeper.take(wait=1.0)
        self.assertFalse(self.keeper.held)

    async def test_an_answer_that_comes_after_the_end_does_not_bring_the_belief_back(self) -> None:
        sent: list[float] = []

        async def late(role: str, instance: str, token: int, **options: float) -> Renewal:
            """The new lease would outlast the answer, but the lease before had run out by then."""
            sent.append(self.clock.at)
            if len(sent) > 1:
                raise LeaseLost("lease_lost", 410)
            self.clock.at += 7.0
            return Renewal(token, 10.0, sent[0])

        keeper = Keeper(self.backend, "r", "a", ttl=10.0, renew_every=0.001)
        await keeper.take()
        self.clock.at += 5.0
        with patch.object(self.backend, "renew", late):
            await asyncio.wait_for(keeper.keep(), PATIENCE)
        self.assertFalse(keeper.held)
        self.assertEqual(len(sent), 1)

    async def test_a_renewal_that_fails_is_told_and_tried_again(self) -> None:
        failures: list[Exception] = []
        keeper = Keeper(self.backend, "r", "a", ttl=10.0, renew_every=0.001, on_renewal_error=failures.append)
        await keeper.take()
        answers = [Unavailable("no"), Unavailable("no"), LeaseLost("lease_lost", 410)]
        with patch.object(self.backend, "renew", side_effect=answers):
            await asyncio.wait_for(keeper.keep(), PATIENCE)
        self.assertEqual(len(failures), 2)
        self.assertFalse(keeper.held)

    async def test_who_is_refused_believes_nothing(self) -> None:
        await self.backend.acquire("r", "b")
        with self.assertRaises(RoleHeld):
            await self.keeper.take()
        self.assertFalse(self.keeper.held)

    async def test_timings_that_cannot_work_are_refused(self) -> None:
        for options in ({"ttl": 0.5}, {"ttl": 4000.0}, {"ttl": 10.0, "renew_every": 5.0}, {"ttl": 10.0, "renew_every": 0.0}):
            with self.assertRaises(ValueError):
                Keeper(self.backend, "r", "a", **options)

    async def test_defaults(self) -> None:
        keeper = Keeper(self.backend, "r", "a")
        self.assertEqual((keeper.ttl, keeper.renew_every), (30.0, 10.0))
