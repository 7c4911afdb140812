"""Elections, locks and brokers on a real cluster."""

from __future__ import annotations

import asyncio

import eldest
from eldest import LeaseLost, RoleHeld, RoleNotHeld
from eldest.aio import Broker, Election, ElectionResult, LockGuard, StateDoc, leader_only, stop_leader_only

from .support import PATIENCE, Heard, RealCluster, nodes


class Roles(RealCluster):
    async def test_acquire_renew_check_release(self) -> None:
        client, role = self.client(), self.name()
        grant = await client.acquire(role, "a", address="a:1", metadata={"zone": 1})
        self.assertEqual((grant.outcome, grant.role, grant.leader), ("elected", role, eldest.Leader("a", "a:1", {"zone": 1})))
        self.assertEqual((await client.acquire(role, "a", address="a:1", metadata={"zone": 1})).outcome, "already_leader")
        with self.assertRaises(RoleHeld) as caught:
            await client.acquire(role, "b")
        self.assertEqual((caught.exception.outcome, caught.exception.leader_id), ("other_leader", "a"))
        self.assertEqual((await client.renew(role, "a", grant.token)).token, grant.token)
        self.assertTrue(await client.check(role, grant.token))
        self.assertIn(role, [state.role async for state in client.roles("py/")])
        await client.release(role, "a", grant.token)
        self.assertFalse(await client.check(role, grant.token))
        state = await client.role(role)
        self.assertEqual((state.leader, state.token), (None, None))
        for refused in (client.renew(role, "a", grant.token), client.release(role, "a", grant.token)):
            with self.assertRaises(LeaseLost):
                await refused
        self.assertGreater((await client.acquire(role, "b")).token, grant.token)

    async def test_a_lease_that_is_not_renewed_ends(self) -> None:
        client, role = self.client(), self.name()
        await client.acquire(role, "a", ttl=1.0)
        grant = await client.acquire(role, "b", wait=PATIENCE)
        self.assertEqual(grant.leader.instance_id, "b")


class Elections(RealCluster):
    async def test_uncontested(self) -> None:
        role = self.name()
        election = Election(self.client(), role, instance_id="a")
        heard = Heard(election, ["election_started", "leader_acquired", "new_state", "new_leader", "election_completed", "error"])
        await election.start()
        self.assertTrue(election.is_leader and await election.wait_for_election())
        await heard.until_heard("election_completed")
        self.assertEqual(
            heard.events,
            [("election_started",), ("leader_acquired", election.token), ("new_state", "leader"), ("new_leader", "a"), ("election_completed", True)],
        )
        await election.stop()
        self.assertIsNone((await self.client().role(role)).leader)

    async def test_of_several_at_all_nodes_one_leads_and_stops_hand_over(self) -> None:
        role, clients = self.name(), self.clients()
        elections = [Election(clients[number % len(clients)], role) for number in range(6)]
        await asyncio.gather(*(election.start() for election in elections))
        tokens: list[int] = []
        while elections:
            waits = [asyncio.create_task(election.wait_until_leader(PATIENCE)) for election in elections]
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            leading = [election for election in elections if election.is_leader]
            self.assertEqual(len(leading), 1)
            tokens.append(leading[0].token or 0)
            await leading[0].stop()
            elections.remove(leading[0])
            await asyncio.gather(*(wait for wait in waits if wait.cancel()), return_exceptions=True)
        self.assertEqual(tokens, sorted(set(tokens)))

    async def test_the_follower_hears_of_the_leader_and_takes_over(self) -> None:
        role, (one, *_, other) = self.name(), self.clients()
        # Within this test no lease and no connection ends by itself: only the release hands over.
        first = Election(one, role, instance_id="a", ttl=3600.0, held_by="lease")
        second = Election(other, role, instance_id="b")
        heard = Heard(second, ["new_leader", "leader_acquired", "leader_lost", "new_state", "subscribe_started"])
        await first.start()
        await second.start()
        await heard.until_heard("subscribe_started")
        self.assertEqual((second.is_leader, second.leader_id), (False, "a"))
        await first.stop()
        await heard.until_heard("leader_acquired")
        self.assertEqual((second.is_leader, second.leader_id), (True, "b"))
        await second.stop()
        self.assertIn(("leader_lost",), heard.events)

    async def test_a_stop_while_it_waits_leaves_nothing_behind(self) -> None:
        role, clients = self.name(), self.clients()
        first, second = Election(clients[0], role), Election(clients[-1], role)
        await first.start()
        await second.start()
        async with asyncio.timeout(PATIENCE):
            while (await clients[0].role(role)).waiting != 1:
                await asyncio.sleep(0.01)
        await second.stop()
        await first.stop()
        self.assertIsNone((await clients[0].role(role)).leader)

    async def test_the_holder_is_named(self) -> None:
        role, clients = self.name(), self.clients()
        first, second = Election(clients[0], role, instance_id="a"), Election(clients[-1], role, instance_id="b")
        heard = Heard(second, ["leader_acquired", "leader_lost"])
        await first.start()
        await second.start()
        token = await first.elect("b")
        await heard.until_heard("leader_acquired")
        self.assertEqual((first.is_leader, second.is_leader, second.token), (False, True, token))
        await first.elect()
        await heard.until_heard("leader_lost")
        self.assertEqual((first.is_leader, second.is_leader), (True, False))
        await first.stop()
        await second.stop()

    async def test_renewals_keep_a_short_lease(self) -> None:
        election = Election(self.client(), self.name(), ttl=4.0)
        heard = Heard(election, ["leader_lost", "heartbeat_error"])
        await election.start()
        token = election.token
        renewed = asyncio.Event()
        renew, left = election._backend.renew, 5  # one in each third of the ttl: together they take longer than it

        async def counted(*args: object, **options: object) -> object:
            nonlocal left
            left -= 1
            if not left:
                renewed.set()
            return await renew(*args, **options)  # type: ignore[arg-type]

        election._backend.renew = counted  # type: ignore[method-assign, assignment]
        await asyncio.wait_for(renewed.wait(), PATIENCE)
        self.assertEqual((election.token, heard.events), (token, []))
        await election.stop()

    async def test_metadata_is_told(self) -> None:
        client, role = self.client(), self.name()
        election = Election(client, role, address="a:1", metadata={"zone": 1})
        await election.start()
        await election.set_metadata({"zone": 2})
        leader = (await client.role(role)).leader
        self.assertEqual((leader and leader.metadata, election.is_leader), ({"zone": 2}, True))
        await election.stop()

    async def test_changes_of_documents_are_told(self) -> None:
        client, prefix = self.client(), self.name("doc")
        election = Election(client, self.name(), changes=prefix)
        heard = Heard(election, ["change"])
        await election.start()
        async with asyncio.timeout(PATIENCE):
            while not heard.events:  # until the subscription has begun
                await client.put(f"{prefix}/x", 1)
        self.assertEqual(heard.events[0][1].data["key"], f"{prefix}/x")
        await election.stop()

    async def test_one_shot_and_leader_only(self) -> None:
        client, role = self.client(), self.name()
        async with Election(client, role) as first:
            async with Election(client, role) as second:
                self.assertEqual((first.is_leader, second.is_leader), (True, False))

        @leader_only(role, backend=client)
        async def aggregate() -> str:
            return "ran"

        self.assertEqual(await aggregate(), "ran")
        await stop_leader_only()
        self.assertIsNone((await client.role(role)).leader)

    async def test_the_blocking_form(self) -> None:
        role = self.name()

        def blocking() -> None:
            with eldest.Client(nodes()) as client:
                first, second = eldest.Election(client, role).start(), eldest.Election(client, role).start()
                self.assertEqual((first.is_leader, second.is_leader), (True, False))
                first.stop()
                self.assertTrue(second.wait_until_leader())
                second.stop()

        await asyncio.to_thread(blocking)


class LocksAndBrokers(RealCluster):
    async def test_lock(self) -> None:
        name, clients = self.name(), self.clients()
        first = await LockGuard(clients[0], name).acquire()
        second = asyncio.create_task(LockGuard(clients[-1], name, timeout=PATIENCE).acquire())
        await first.release()
        guard = await second
        self.assertTrue(guard.held and guard.token)
        await guard.release()
        self.assertTrue(guard.lost.is_set())

    async def test_two_brokers(self) -> None:
        role, clients = self.name(), self.clients()
        first = Broker(clients[0], "0.0.0.0:8080", role=role)
        second = Broker(clients[-1], "0.0.0.0:8081", role=role)
        self.assertEqual(await first.try_elect(), ElectionResult("elected"))
        self.assertEqual(await first.try_elect(), ElectionResult("already_leader"))
        self.assertEqual(await second.try_elect(), ElectionResult("other_leader", "0.0.0.0:8080"))
        self.assertEqual([await broker.check_leadership() for broker in (first, second)], [True, False])
        await first.stop()
        self.assertEqual(await second.try_elect(), ElectionResult("elected"))
        self.assertEqual([await broker.check_leadership() for broker in (first, second)], [False, True])
        await second.stop()

    async def test_a_broker_that_was_replaced_and_believes_that_it_leads_changes_no_state(self) -> None:
        role, key, clients = self.name(), self.name("state"), self.clients()
        # It renews once in half an hour, like a process that stands still.
        first, second = (
            Broker(client, at, role=role, ttl=3600.0, heartbeat=1700.0) for client, at in ((clients[0], "a:1"), (clients[-1], "b:1"))
        )
        await first.try_elect()
        mine = StateDoc(clients[0], key, default=[], broker=first)
        await mine.update(lambda jobs: [*jobs, 1])
        _, known = await mine.read()
        await clients[1].elect(role, second.id, ttl=3600.0, address=second.address)
        self.assertTrue(first.is_leader)
        heard = Heard(first, ["leader_lost"])
        with self.assertRaises(RoleNotHeld):
            await mine.swap([1, "late"], known)
        await heard.until_heard("leader_lost")
        self.assertEqual((first.is_leader, await mine.read()), (False, ([1], known)))
        await second.try_elect()
        self.assertEqual(await StateDoc(clients[-1], key, broker=second).update(lambda jobs: [*jobs, 2]), [1, 2])
        await first.stop()
        await second.stop()
