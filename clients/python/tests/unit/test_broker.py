"""Brokers, one of which writes; their state; and locks."""

from __future__ import annotations

import asyncio
import inspect
import unittest
from unittest.mock import patch

from eldest import EldestError, Indeterminate, LeaseLost, PreconditionFailed, RoleHeld, RoleNotHeld, RoleState
from eldest.aio import Broker, ElectionResult, LockGuard, MemoryBackend, StateDoc
from eldest.aio.state import UPDATE_TRIES

from .support import PATIENCE, Clock, ClusterCase, Heard


class Brokers(unittest.IsolatedAsyncioTestCase):
    def setUp(self) -> None:
        self.clock = Clock()
        self.backend = MemoryBackend(clock=self.clock)

    async def test_the_four_answers(self) -> None:
        first, second = Broker(self.backend, "0.0.0.0:8080"), Broker(self.backend, "0.0.0.0:8081")
        self.assertEqual(await first.try_elect(), ElectionResult("elected"))
        self.assertEqual(await first.try_elect(), ElectionResult("already_leader"))
        self.assertEqual(await second.try_elect(), ElectionResult("other_leader", "0.0.0.0:8080"))
        raced = RoleHeld("role_held", 409, members={"outcome": "conflict"})
        with patch.object(self.backend, "acquire", side_effect=raced):
            self.assertEqual(await second.try_elect(), ElectionResult("conflict"))
        await first.stop()
        self.assertEqual(await second.try_elect(), ElectionResult("elected"))
        self.assertEqual((first.is_leader, second.is_leader), (False, True))
        await second.stop()

    async def test_who_finds_its_own_lease_run_out_is_elected_anew(self) -> None:
        broker = Broker(self.backend, "a:1")
        await broker.try_elect()
        self.clock.at += 60
        self.assertFalse(broker.is_leader)
        self.assertEqual(await broker.try_elect(), ElectionResult("elected"))
        self.assertTrue(broker.is_leader)
        await broker.stop()

    async def test_who_is_back_at_its_own_address_hears_already_leader_once_its_earlier_life_has_let_go(self) -> None:
        earlier = await self.backend.acquire("broker", "before", address="a:1", ttl=10.0)
        broker = Broker(self.backend, "a:1")
        asking = asyncio.create_task(broker.try_elect())
        await asyncio.sleep(0.3)
        self.assertFalse(broker.is_leader or asking.done())
        self.backend.expire("broker")  # like the cluster, a second after the connection of a killed process
        self.assertEqual(await asyncio.wait_for(asking, PATIENCE), ElectionResult("already_leader"))
        self.assertTrue(broker.is_leader)
        self.assertGreater(broker.token or 0, earlier.token)
        await broker.stop()

    async def test_who_lives_at_the_same_address_keeps_the_role(self) -> None:
        await self.backend.acquire("broker", "twin", address="a:1", ttl=10.0)
        broker = Broker(self.backend, "a:1")
        with patch("eldest.aio.broker.EARLIER_LIFE_S", 0.3):
            self.assertEqual(await broker.try_elect(), ElectionResult("other_leader", "a:1"))
        self.assertFalse(broker.is_leader)

    async def test_a_stop_ends_a_try(self) -> None:
        await self.backend.acquire("broker", "twin", address="a:1", ttl=10.0)
        broker = Broker(self.backend, "a:1")
        asking = asyncio.create_task(broker.try_elect())
        await asyncio.sleep(0.1)
        await broker.stop()
        self.backend.expire("broker")
        self.assertEqual(await asyncio.wait_for(asking, PATIENCE), ElectionResult("other_leader", "a:1"))
        self.assertIsNone((await self.backend.role("broker")).leader)

    async def test_a_stop_during_the_call_gives_back_what_it_is_granted(self) -> None:
        broker = Broker(self.backend, "a:1")
        acquire, granted, go_on = self.backend.acquire, asyncio.Event(), asyncio.Event()

        async def late(*args: object, **options: object) -> object:
            grant = await acquire(*args, **options)  # type: ignore[arg-type]
            granted.set()
            await go_on.wait()
            return grant

        for answered_first in (False, True):
            with patch.object(self.backend, "acquire", late):
                asking = asyncio.create_task(broker.try_elect())
                await asyncio.wait_for(granted.wait(), PATIENCE)
                if answered_first:
                    with patch.object(self.backend, "role", return_value=RoleState("broker", None, None)):
                        await broker.stop()  # the stop comes before the grant, and the call answers so
                else:
                    await broker.stop()
                go_on.set()
                with self.assertRaises(LeaseLost):
                    await asyncio.wait_for(asking, PATIENCE)
            self.assertFalse(broker.is_leader)
            self.assertIsNone((await self.backend.role("broker")).leader)
            granted.clear()
            go_on.clear()

    async def test_a_stop_gives_back_what_was_never_answered(self) -> None:
        broker, acquire = Broker(self.backend, "a:1"), self.backend.acquire

        async def unanswered(*args: object, **options: object) -> object:
            await acquire(*args, **options)  # type: ignore[arg-type]
            raise Indeterminate("no answer")

        with patch.object(self.backend, "acquire", unanswered), self.assertRaises(Indeterminate):
            await broker.try_elect()
        self.assertIsNotNone((await self.backend.role("broker")).leader)
        await broker.stop()
        self.assertIsNone((await self.backend.role("broker")).leader)

    async def test_leadership_is_checked_with_the_cluster_and_the_clock(self) -> None:
        first, second = Broker(self.backend, "a:1"), Broker(self.backend, "b:1")
        self.assertFalse(await first.check_leadership())
        await first.try_elect()
        self.assertTrue(await first.check_leadership())
        heard = Heard(first, ["leader_lost"])
        self.backend.expire("broker")
        await second.try_elect()
        self.assertTrue(first.is_leader)  # it has not heard of it yet, and its token is refused
        self.assertFalse(await first.check_leadership())
        self.assertFalse(first.is_leader)
        await heard.until_heard("leader_lost")
        await second.stop()

    async def test_heartbeats_go_on_by_themselves(self) -> None:
        broker = Broker(self.backend, "a:1", heartbeat=0.001)
        beats = asyncio.Event()
        renew = self.backend.renew

        async def counted(*args: object, **options: object) -> object:
            beats.set()
            return await renew(*args, **options)  # type: ignore[arg-type]

        with patch.object(self.backend, "renew", counted):
            await broker.try_elect()
            await asyncio.wait_for(beats.wait(), PATIENCE)
        await broker.stop()

    async def test_defaults(self) -> None:
        given = {name: p.default for name, p in inspect.signature(Broker).parameters.items()}
        self.assertEqual((given["heartbeat"], given["ttl"]), (3.0, 10.0))


class Away(ClusterCase):
    async def test_stop_takes_a_second_while_the_cluster_is_away_and_raises(self) -> None:
        broker = Broker(self.client(), "a:1")
        await broker.try_elect()
        for path in ("/release", "/renew"):
            self.cluster.fail("hang", "POST", path, times=1000)
        began = asyncio.get_running_loop().time()
        with self.assertRaises(EldestError):
            await broker.stop()
        self.assertLess(asyncio.get_running_loop().time() - began, 2.5)


class States(ClusterCase):
    async def test_created_once(self) -> None:
        doc = StateDoc(self.client(), "queue.json", default={"jobs": []})
        self.assertEqual(await doc.read(), ({"jobs": []}, None))
        self.assertTrue(await doc.create_if_not_exists({"jobs": [1]}))
        self.assertFalse(await doc.create_if_not_exists({"jobs": [2]}))
        self.assertEqual((await doc.read())[0], {"jobs": [1]})

    async def test_many_writers_lose_nothing(self) -> None:
        client = self.client()

        async def add(number: int) -> None:
            await StateDoc(client, "queue.json", default=[]).update(lambda jobs: [*jobs, number])

        await asyncio.gather(*(add(number) for number in range(8)))
        self.assertEqual(sorted((await client.get("queue.json")).value), list(range(8)))

    async def test_the_change_may_be_a_coroutine(self) -> None:
        async def one_more(value: int) -> int:
            return value + 1

        doc = StateDoc(self.client(), "n", default=0)
        await doc.update(one_more)
        self.assertEqual(await doc.update(one_more), 2)

    async def test_a_document_that_always_changes_is_given_up_in_the_end(self) -> None:
        client = self.client()
        doc = StateDoc(client, "n", default=0)
        tries = 0

        async def interrupted(value: int) -> int:
            nonlocal tries
            tries += 1
            await client.put("n", 100 + tries)
            return value + 1

        with patch("eldest._retry.BACKOFF_MOST_S", 0.001), patch("eldest._retry.BACKOFF_FIRST_S", 0.001):
            with self.assertRaises(PreconditionFailed):
                await doc.update(interrupted)
        self.assertEqual(tries, UPDATE_TRIES)

    async def test_a_swap_depends_on_what_was_read(self) -> None:
        doc = StateDoc(self.client(), "n")
        first = await doc.swap(1, None)
        await doc.swap(2, first.rev)
        with self.assertRaises(PreconditionFailed):
            await doc.swap(3, first.rev)


class StatesOfBrokers(ClusterCase):
    """The first broker stood still while the second was elected, and has heard nothing of it."""

    async def asyncSetUp(self) -> None:
        self.one = self.client()
        # It renews after longer than any test waits.
        self.a, self.b = (Broker(self.one, at, role="jobs/\u00e9", ttl=3600.0, heartbeat=1700.0) for at in ("a:1", "b:1"))
        self.a._keeper._tied = False  # a connection that opens late would inform it
        self.first, self.second = (StateDoc(self.one, "queue", default=[], broker=broker) for broker in (self.a, self.b))
        await self.a.try_elect()
        await self.first.update(lambda jobs: [*jobs, 1])
        _, self.known = await self.first.read()
        with self.cluster.state.changed:
            self.cluster.state.lose(self.a.role, "expired")
        await self.b.try_elect()
        self.assertEqual((self.a.is_leader, self.b.is_leader), (True, True))

    async def asyncTearDown(self) -> None:
        await asyncio.gather(self.a.stop(), self.b.stop())

    async def test_who_was_replaced_changes_nothing_and_has_lost(self) -> None:
        heard = Heard(self.a, ["leader_lost"])
        with self.assertRaises(RoleNotHeld) as caught:
            await self.first.swap([1, 2], self.known)
        self.assertEqual((caught.exception.role, self.a.is_leader, self.a.token), ("jobs/\u00e9", False, None))
        await heard.until_heard("leader_lost")
        self.assertEqual(len(self.cluster.calls("PUT", "queue")), 2)  # one of them was refused, and not repeated
        for write in (self.first.update(lambda jobs: [*jobs, 3]), self.first.swap([], self.known), self.first.create_if_not_exists([])):
            with self.assertRaises(RoleNotHeld):
                await write
        self.assertEqual(len(self.cluster.calls("PUT", "queue")), 2)
        self.assertEqual(await self.second.update(lambda jobs: [*jobs, 4]), [1, 4])
        self.assertEqual(((await self.first.read())[0], self.b.is_leader), ([1, 4], True))

    async def test_who_was_refused_while_it_renews_hears_of_it_and_is_kept_anew(self) -> None:
        heard = Heard(self.a, ["leader_lost"])
        self.cluster.fail("hang", "POST", "/renew")
        self.a._keeper.renew_now()
        await self.seen("POST", "/renew")
        with self.assertRaises(RoleNotHeld):
            await self.first.swap([1, 2], self.known)
        await self.b.stop()
        self.a._keeper._tied = True
        self.assertEqual(await self.a.try_elect(), ElectionResult("elected"))
        await heard.until_heard("leader_lost")
        # The new lease has a separate connection, and goes on.
        await self.seen("POST", f"token={self.a.token}&")
        await self.first.swap([1, 2], self.known)
        self.assertEqual((self.a.is_leader, heard.names), (True, ["leader_lost"]))

    async def test_who_leads_anew_meanwhile_keeps_that_lead(self) -> None:
        put = self.one.put

        async def late(*args: object, **options: object) -> object:
            await self.a.check_leadership()
            await self.b.stop()
            await self.a.try_elect()
            return await put(*args, **options)  # type: ignore[arg-type]

        with patch.object(self.one, "put", late), self.assertRaises(RoleNotHeld):
            await self.first.swap([1, 2], self.known)
        self.assertTrue(self.a.is_leader)
        await self.first.swap([1, 2], self.known)
        self.assertEqual((await self.second.read())[0], [1, 2])


class Locks(unittest.IsolatedAsyncioTestCase):
    def setUp(self) -> None:
        self.clock = Clock()
        self.backend = MemoryBackend(clock=self.clock)

    async def test_held_for_the_length_of_the_block(self) -> None:
        async with LockGuard(self.backend, "l") as guard:
            self.assertTrue(guard.held)
            self.assertEqual((await self.backend.role("l")).token, guard.token)
            with self.assertRaises(RoleHeld):
                await LockGuard(self.backend, "l").acquire()
        self.assertFalse(guard.held)
        self.assertTrue(guard.lost.is_set())
        self.assertIsNone((await self.backend.role("l")).leader)

    async def test_it_is_waited_for(self) -> None:
        first = await LockGuard(self.backend, "l").acquire()
        second = asyncio.create_task(LockGuard(self.backend, "l", timeout=PATIENCE).acquire())
        async with asyncio.timeout(PATIENCE):
            while not (await self.backend.role("l")).waiting:
                await asyncio.sleep(0)
            await first.release()
            guard = await second
        self.assertTrue(guard.held)
        await guard.release()

    async def test_waiting_ends_in_time(self) -> None:
        async with LockGuard(self.backend, "l"):
            with self.assertRaises(RoleHeld):
                await LockGuard(self.backend, "l", timeout=0.02).acquire()

    async def test_its_loss_is_a_signal(self) -> None:
        guard = LockGuard(self.backend, "l", ttl=3.0)
        guard._keeper.renew_every = 0.001
        await guard.acquire()
        self.backend.expire("l")
        await asyncio.wait_for(guard.lost.wait(), PATIENCE)
        self.assertFalse(guard.held)
        await guard.release()

    async def test_it_is_believed_by_the_clock(self) -> None:
        async with LockGuard(self.backend, "l") as guard:
            self.clock.at += 29.8
            self.assertFalse(guard.held)
            self.assertIsNone(guard.token)
