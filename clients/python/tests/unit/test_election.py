"""An election, against memory and against a cluster over HTTP: the same cases."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import unittest
from collections.abc import AsyncIterator
from typing import Any

from eldest import EldestError, Grant, Unavailable
from eldest.aio import Client, Election, MemoryBackend
from eldest.aio.election import EVENTS

from .support import PATIENCE, Clock, ClusterCase, Heard


class DistantBackend(MemoryBackend):
    """A call that has left is granted a little later, even if its caller does not wait any more."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[asyncio.Task[Grant]] = []

    async def acquire(self, *args: Any, **options: Any) -> Grant:
        self.calls.append(asyncio.create_task(self._later(*args, **options)))
        return await asyncio.shield(self.calls[-1])

    async def _later(self, *args: Any, **options: Any) -> Grant:
        for _ in range(20):
            await asyncio.sleep(0)
        return await super().acquire(*args, **options)


class SilentBackend(MemoryBackend):
    """It grants the role, and does not say so."""

    def __init__(self) -> None:
        super().__init__()
        self.granted = asyncio.Event()

    async def acquire(self, *args: Any, **options: Any) -> Grant:
        await super().acquire(*args, **options)
        self.granted.set()
        return await asyncio.get_running_loop().create_future()


class Cases:
    """Cases for any backend. `self.backend` is one, `self.expire(role)` ends a lease."""

    backend: Any
    clock: Clock | None = None

    def expire(self, role: str) -> None:
        raise NotImplementedError

    def election(self, role: str = "r", **options: Any) -> Election:
        return Election(self.backend, role, **options)

    @contextlib.asynccontextmanager
    async def started(self, role: str = "r", **options: Any) -> AsyncIterator[tuple[Election, Heard]]:
        election = self.election(role, **options)
        heard = Heard(election, [name for name in EVENTS if name != "subscribe_started"])
        await election.start()
        try:
            yield election, heard
        finally:
            await election.stop()

    async def test_uncontested(self: Any) -> None:
        async with self.started(instance_id="a") as (election, heard):
            self.assertEqual((election.is_leader, election.status), (True, "started"))
            self.assertTrue(await election.wait_for_election())
            token = election.token
            await heard.until_heard("election_completed")
            self.assertEqual(
                heard.events,
                [
                    ("election_started",),
                    ("leader_acquired", token),
                    ("new_state", "leader"),
                    ("new_leader", "a"),
                    ("election_completed", True),
                ],
            )

    async def test_a_second_one_follows_and_takes_over_when_the_first_stops(self: Any) -> None:
        async with self.started(instance_id="a") as (first, heard_first):
            async with self.started(instance_id="b") as (second, heard):
                self.assertEqual((second.is_leader, second.token, second.leader_id), (False, None, "a"))
                self.assertFalse(await second.wait_for_election())
                before = first.token
                await first.stop()
                self.assertFalse(first.is_leader)
                self.assertIn(("leader_lost",), heard_first.events)
                await heard.until_heard("leader_acquired")
                self.assertTrue(second.is_leader)
                self.assertGreater(second.token, before)
                self.assertEqual(await heard.until_heard("election_completed", 2), ("election_completed", True))

    async def test_of_many_one_leads_and_all_get_their_turn(self: Any) -> None:
        elections = [self.election(instance_id=str(number)) for number in range(5)]
        await asyncio.gather(*(election.start() for election in elections))
        tokens = []
        while elections:
            waiting = [asyncio.create_task(election.wait_until_leader(PATIENCE)) for election in elections]
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            leading = [election for election in elections if election.is_leader]
            self.assertEqual(len(leading), 1)
            tokens.append(leading[0].token)
            await leading[0].stop()
            elections.remove(leading[0])
            for task in waiting:
                task.cancel()
        self.assertEqual(tokens, sorted(set(tokens)))

    async def test_stop_gives_the_role_back_at_once(self: Any) -> None:
        async with self.started() as (election, _):
            await election.stop()
            self.assertEqual(election.status, "stopped")
            self.assertIsNone((await self.backend.role("r")).leader)
            await election.stop()

    async def test_status_has_four_values(self: Any) -> None:
        election = self.election()
        seen = [election.status]
        for step in (election.start, election.stop):
            under_way = asyncio.create_task(step())
            await asyncio.sleep(0)  # its first step is done
            seen.append(election.status)
            await under_way
            seen.append(election.status)
        self.assertEqual(seen, ["stopped", "starting", "started", "stopping", "stopped"])

    async def test_a_stop_during_the_start_leaves_no_leader_behind(self: Any) -> None:
        for steps in range(12):
            election = self.election(instance_id=f"a{steps}")
            starting = asyncio.create_task(election.start())
            for _ in range(steps + 1):
                await asyncio.sleep(0)
            await election.stop()
            await asyncio.wait_for(starting, PATIENCE)
            self.assertEqual((election.is_leader, election.status), (False, "stopped"), f"after {steps} steps")
            self.assertIsNone((await self.backend.role("r")).leader, f"after {steps} steps")
            await election.start()
            self.assertTrue(election.is_leader, f"after {steps} steps")
            await election.stop()

    async def test_wait_for_election_waits_for_a_start_that_nobody_awaited(self: Any) -> None:
        election = self.election()
        starting = asyncio.create_task(election.start())
        self.assertTrue(await election.wait_for_election())
        await asyncio.wait_for(starting, PATIENCE)
        await election.stop()

    async def test_it_can_be_started_again(self: Any) -> None:
        async with self.started() as (election, _):
            await election.stop()
            await election.start()
            self.assertTrue(election.is_leader)
            with self.assertRaises(RuntimeError):
                await election.start()

    async def test_one_shot(self: Any) -> None:
        async with self.election() as first:
            self.assertTrue(first.is_leader)
            async with self.election() as second:
                self.assertFalse(second.is_leader)
        async with self.election() as third:
            self.assertTrue(third.is_leader)

    async def test_one_shot_gives_the_role_back_when_the_block_fails(self: Any) -> None:
        with self.assertRaises(ZeroDivisionError):
            async with self.election():
                raise ZeroDivisionError
        self.assertIsNone((await self.backend.role("r")).leader)

    async def test_a_lease_that_ends_is_told_and_fought_for_again(self: Any) -> None:
        async with self.started(instance_id="a") as (election, heard):
            await heard.until_heard("leader_acquired")
            before = election.token
            self.expire("r")
            await heard.until_heard("leader_lost")
            await heard.until_heard("leader_acquired", 2)
            self.assertGreater(election.token, before)
            self.assertEqual([e for e in heard.names if e == "new_state"], ["new_state"] * 3)

    async def test_another_is_elected_by_name(self: Any) -> None:
        async with self.started(instance_id="a") as (first, heard):
            async with self.started(instance_id="b") as (second, heard_second):
                token = await first.elect("b")
                self.assertFalse(first.is_leader)
                await heard_second.until_heard("leader_acquired")
                self.assertEqual(second.token, token)
                self.assertEqual(await heard.until_heard("new_leader", 2), ("new_leader", "b"))

    async def test_it_elects_itself_over_another(self: Any) -> None:
        # It learns this from the feed: no renewal is due within this test.
        first_one = self.started(instance_id="a", ttl=3600.0, renew_every=1000.0, held_by="lease")
        async with first_one as (first, heard), self.started(instance_id="b") as (second, _):
            token = await second.elect()
            self.assertEqual((second.is_leader, second.token), (True, token))
            await heard.until_heard("leader_lost")
            self.assertFalse(first.is_leader)

    async def test_the_higher_priority_is_served_first(self: Any) -> None:
        async with self.started(instance_id="a") as (first, _):
            low, high = self.election(instance_id="low", priority=1), self.election(instance_id="high", priority=9)
            await low.start()
            await high.start()
            async with asyncio.timeout(PATIENCE):
                while (await self.backend.role("r")).waiting != 2:
                    await asyncio.sleep(0.005)
            await first.stop()
            self.assertTrue(await high.wait_until_leader(PATIENCE))
            self.assertFalse(low.is_leader)
            await high.stop()
            await low.stop()

    async def test_roles_whose_names_begin_alike_are_apart(self: Any) -> None:
        async with self.started("r", instance_id="a") as (one, heard), self.started("r2", instance_id="b") as (two, _):
            self.assertTrue(one.is_leader and two.is_leader)
            await two.stop()
            await heard.until_heard("election_completed")
            self.assertTrue(one.is_leader)
            self.assertEqual(one.leader_id, "a")

    async def test_address_and_metadata_are_told(self: Any) -> None:
        async with self.started(address="a:1", metadata={"zone": 1}) as (election, _):
            leader = (await self.backend.role("r")).leader
            self.assertEqual((leader.instance_id, leader.address, leader.metadata), (election.id, "a:1", {"zone": 1}))
            await election.set_metadata({"zone": 2})
            self.assertEqual((await self.backend.role("r")).leader.metadata, {"zone": 2})
            self.assertEqual(election.metadata, {"zone": 2})
            self.assertTrue(election.is_leader)

    async def test_a_stop_while_it_waits_leaves_nothing_behind(self: Any) -> None:
        async with self.started(instance_id="a") as (first, _), self.started(instance_id="b") as (second, _):
            await second.stop()
            await first.stop()
            self.assertIsNone((await self.backend.role("r")).leader)

    async def test_listeners_may_be_coroutines_and_may_stop_the_election(self: Any) -> None:
        election, stopped = self.election(), asyncio.Event()

        @election.on("leader_acquired")
        async def stop(token: int) -> None:
            await election.stop()
            stopped.set()

        await election.start()
        await asyncio.wait_for(stopped.wait(), PATIENCE)
        self.assertEqual(election.status, "stopped")

    async def test_a_listener_that_fails_is_told_as_an_error_and_harms_nobody(self: Any) -> None:
        election = self.election()
        election.on("leader_acquired", lambda token: 1 / 0)
        heard = Heard(election, ["leader_acquired", "error"])
        with self.assertLogs("eldest", "ERROR"):
            await election.start()
            error = (await heard.until_heard("error"))[1]
        self.assertIsInstance(error, ZeroDivisionError)
        self.assertIn("leader_acquired", heard.names)
        self.assertTrue(election.is_leader)
        await election.stop()

    async def test_the_subscription_is_told(self: Any) -> None:
        election = self.election()
        heard = Heard(election, ["subscribe_started"])
        await election.start()
        await heard.until_heard("subscribe_started")
        await election.stop()


class InMemory(Cases, unittest.IsolatedAsyncioTestCase):
    def setUp(self) -> None:
        self.backend = MemoryBackend()

    def expire(self, role: str) -> None:
        self.backend.expire(role)

    async def test_is_leader_asks_the_clock_at_each_call(self) -> None:
        clock = Clock()
        self.backend = MemoryBackend(clock=clock)
        async with self.started(ttl=10.0) as (election, heard):
            self.assertTrue(election.is_leader)
            clock.at += 9.9  # nothing else has run in between: no timer, no task
            self.assertFalse(election.is_leader)
            self.assertIsNone(election.token)
            self.assertEqual(heard.names.count("leader_lost"), 0)

    async def test_a_grant_that_comes_after_its_caller_has_gone_is_given_back(self) -> None:
        for steps in range(12):
            self.backend = backend = DistantBackend()
            election = self.election()
            starting = asyncio.create_task(election.start())
            for _ in range(steps + 1):
                await asyncio.sleep(0)
            await election.stop()
            await asyncio.wait_for(starting, PATIENCE)
            await asyncio.gather(*backend.calls)
            self.assertIsNone((await backend.role("r")).leader, f"after {steps} steps")

    async def test_a_stop_does_not_wait_for_an_answer_that_never_comes(self) -> None:
        self.backend = SilentBackend()
        election = self.election()
        starting = asyncio.create_task(election.start())
        await asyncio.wait_for(self.backend.granted.wait(), PATIENCE)
        await asyncio.wait_for(election.stop(), PATIENCE)
        await asyncio.wait_for(starting, PATIENCE)
        self.assertIsNone((await self.backend.role("r")).leader)

    async def test_defaults(self) -> None:
        given = {name: p.default for name, p in inspect.signature(Election).parameters.items()}
        self.assertEqual((given["ttl"], given["check_every"], given["priority"]), (30.0, 5.0, 0))
        election = self.election()
        self.assertEqual(election._keeper.renew_every, 10.0)
        self.assertEqual(inspect.signature(Election.wait_for_election).parameters["timeout"].default, 30.0)
        self.assertNotEqual(election.id, self.election().id)
        self.assertEqual(election.status, "stopped")
        self.assertEqual(self.election(identifier="cms-backend").identifier, "cms-backend")

    async def test_events_that_do_not_exist_are_refused(self) -> None:
        with self.assertRaises(ValueError):
            self.election().on("leader-acquired", print)

    async def test_once_and_off(self) -> None:
        election, heard = self.election(), []
        election.once("new_state", heard.append)
        election.on("leader_acquired", heard.append)
        election.off("leader_acquired", heard.append)
        await election.start()
        await election.stop()
        self.assertEqual(heard, ["leader"])

    async def test_wait_for_election_ends_in_time_without_a_decision(self) -> None:
        election = self.election()
        self.assertFalse(await election.wait_for_election(0.01))
        self.assertFalse(await election.wait_until_leader(0.01))


class OverHttp(Cases, ClusterCase):
    def setUp(self) -> None:
        super().setUp()
        self.backend: Client = Client(self.cluster.urls)
        self.addAsyncCleanup(self.backend.close)

    def expire(self, role: str) -> None:
        state = self.cluster.state
        with state.changed:
            state.lose(role, "expired")

    async def test_it_goes_on_when_the_node_it_uses_dies(self) -> None:
        async with self.started(ttl=60.0, renew_every=0.2) as (election, heard):
            await heard.until_heard("election_completed")
            self.cluster.kill(0)
            await heard.until_heard("subscribe_error")
            await self.seen("POST", "/renew", 5)
            self.assertTrue(election.is_leader)
            self.assertNotIn("leader_lost", heard.names)

    async def test_a_cluster_that_is_gone_ends_the_leadership_before_the_lease(self) -> None:
        async with self.started(ttl=5.0, renew_every=0.1) as (election, heard):
            self.assertTrue(election.is_leader)
            for node in range(3):
                self.cluster.kill(node)
            await heard.until_heard("leader_lost")
            self.assertFalse(election.is_leader)
            self.assertIn("heartbeat_error", heard.names)
            self.backend._transport.deadline = 0.1  # for the release

    async def test_a_lost_answer_to_a_renewal_is_told_by_none(self) -> None:
        async with self.started(ttl=60.0, renew_every=0.05) as (election, heard):
            for kind in ("cut_before", "cut_after", "refuse_503", "done_504"):
                self.cluster.fail(kind, "POST", "/renew")  # type: ignore[arg-type]
            await self.seen("POST", "/renew", 10)
            self.assertTrue(election.is_leader)
            self.assertNotIn("leader_lost", heard.names)

    async def test_an_acquisition_whose_answer_was_lost_is_one_acquisition(self) -> None:
        self.cluster.fail("cut_after", "POST", "/acquire")
        async with self.started() as (election, _):
            self.assertTrue(election.is_leader)
            self.assertEqual([kind for _, kind, _ in self.cluster.state.events], ["role_acquired"])

    async def test_a_stop_while_a_grant_is_on_its_way_leaves_no_leader_behind(self) -> None:
        self.cluster.fail("hang_after", "POST", "/acquire")
        election = self.election()
        starting = asyncio.create_task(election.start())
        await self.seen("POST", "/acquire")
        async with asyncio.timeout(PATIENCE):
            while (await self.backend.role("r")).leader is None:
                await asyncio.sleep(0.005)
        await election.stop()
        await asyncio.wait_for(starting, PATIENCE)
        self.assertFalse(election.is_leader)
        self.assertIsNone((await self.backend.role("r")).leader)

    async def test_no_cluster_at_the_start_is_an_error_and_no_leader(self) -> None:
        down = self.cluster.fail("refuse_503", "POST", "/acquire", times=1000)
        # An attempt has a third of it: a busy machine answers in that time too.
        self.backend._transport.deadline = 6.0
        async with self.started() as (election, heard):
            self.assertFalse(election.is_leader)
            self.assertIsInstance((await heard.until_heard("error"))[1], Unavailable)
            down.times = 0
            await heard.until_heard("leader_acquired")

    async def test_stop_takes_a_second_while_the_cluster_is_away_and_tells_what_was_not_done(self) -> None:
        async with self.started() as (election, heard):
            self.cluster.fail("hang", "POST", "/release", times=1000)
            began = asyncio.get_running_loop().time()
            await election.stop()
            self.assertLess(asyncio.get_running_loop().time() - began, 2.5)
            self.assertIsInstance((await heard.until_heard("error"))[1], EldestError)

    async def test_one_shot_without_a_cluster_raises(self) -> None:
        self.cluster.fail("refuse_503", "POST", "/acquire", times=1000)
        self.backend._transport.deadline = 6.0
        election = self.election()
        with self.assertRaises(Unavailable):
            async with election:
                self.fail("it does not lead")
        self.assertEqual(election.status, "stopped")

    async def test_a_shorter_lease_than_asked_for_is_renewed_in_its_time(self) -> None:
        self.cluster.state.lease_most_ms = 6_000  # a busy machine renews within two thirds of this, and not within the ten seconds of the requested ttl
        async with self.started() as (election, heard):
            await self.seen("POST", "/renew", 2)
            self.assertTrue(election.is_leader)
            self.assertNotIn("leader_lost", heard.names)

    async def test_a_grant_that_was_waited_for_is_renewed_first(self) -> None:
        async with self.started(instance_id="a") as (first, _), self.started(instance_id="b") as (second, _):
            async with asyncio.timeout(PATIENCE):
                while (await self.backend.role("r")).waiting != 1:
                    await asyncio.sleep(0.005)
            self.cluster.seen.clear()
            await first.stop()
            await second.wait_until_leader(PATIENCE)
            self.assertEqual(len([call for call in self.cluster.calls("POST", "/renew") if b'"b"' in call.body]), 1)

    async def test_changes_of_documents_are_told(self) -> None:
        async with self.started(changes="app/") as (_, heard):
            await self.seen("GET", "kinds=change")
            await self.backend.put("app/x", 1)
            await self.backend.put("other", 1)
            await self.backend.put("app/y", 2)
            await heard.until_heard("change", 2)
            changes = [event[1].data["key"] for event in heard.events if event[0] == "change"]
            self.assertEqual(changes, ["app/x", "app/y"])

    async def test_a_follower_waits_no_longer_than_check_every(self) -> None:
        async with self.started(instance_id="a"), self.started(instance_id="b", check_every=0.1):
            await self.seen("POST", "/acquire", 4)
            self.assertIn(b'"wait_ms":100', self.cluster.calls("POST", "/acquire")[-1].body)

