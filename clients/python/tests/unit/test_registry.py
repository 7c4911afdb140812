"""Processes that know of each other."""

from __future__ import annotations

import asyncio
import inspect
from typing import Any

from eldest import EldestError, NotFound
from eldest.aio import Client, Election, Registry

from .support import ClusterCase, Heard


class Registered(ClusterCase):
    def registry(self, client: Client, name: str, **options: Any) -> Registry:
        return Registry(client, f"cms-{name}", process_id=name, **options)

    async def test_all_by_role_and_one(self) -> None:
        client = self.client()
        async with self.registry(client, "a", role="master"), self.registry(client, "b"), self.registry(client, "c") as c:
            self.assertEqual([process.id for process in await c.all()], ["a", "b", "c"])
            self.assertEqual([process.id for process in await c.by_role("master")], ["a"])
            self.assertEqual([process.id for process in await c.slaves()], ["b", "c"])
            self.assertEqual(await c.slave_count(), 2)
            master = await c.master()
            self.assertEqual(master and master.identifier, "cms-a")
            slave = await c.slave("b")
            self.assertEqual(slave and slave.channel, "worker:slave:b")
            self.assertEqual(c.channel, "worker:slave:c")
            self.assertIsNone(await c.slave("a"))
            self.assertIsNone(await c.get("nobody"))
        self.assertEqual([process async for process in client.processes()], [])

    async def test_stop_takes_a_second_while_the_cluster_is_away_and_raises(self) -> None:
        registry = await self.registry(self.client(), "a").start()
        self.cluster.fail("hang", "DELETE", "/v1/processes", times=1000)
        began = asyncio.get_running_loop().time()
        with self.assertRaises(EldestError):
            await registry.stop()
        self.assertLess(asyncio.get_running_loop().time() - began, 2.5)

    async def test_capabilities(self) -> None:
        client = self.client()
        capabilities = {"canProcessDetections": True, "maxSubscriptions": 100, "preferredWorkload": 80}
        async with self.registry(client, "a", capabilities=capabilities) as a, self.registry(client, "b"):
            able = await a.by_capability("canProcessDetections")
            self.assertEqual([(process.id, process.capabilities) for process in able], [("a", capabilities)])

    async def test_heartbeats_go_on_by_themselves(self) -> None:
        async with self.registry(self.client(), "a", heartbeat_every=0.02):
            await self.seen("POST", "/v1/processes/a/heartbeat", 3)

    async def test_an_entry_that_has_gone_is_written_anew(self) -> None:
        client = self.client()
        async with self.registry(client, "a", heartbeat_every=0.02):
            await client.unregister("a")
            await self.seen("PUT", "/v1/processes/a", 2)
            self.assertEqual((await client.process("a")).identifier, "cms-a")

    async def test_a_heartbeat_by_hand(self) -> None:
        client = self.client()
        registry = self.registry(client, "a")
        await registry.heartbeat()
        self.assertEqual((await client.process("a")).id, "a")
        await registry.unregister()
        await registry.unregister()
        with self.assertRaises(NotFound):
            await client.process("a")

    async def test_slaves_that_come_and_go_are_told(self) -> None:
        client = self.client()
        async with self.registry(client, "a", role="master") as a:
            heard = Heard(a, ["slave_registered", "slave_removed"])
            await self.seen("GET", "/v1/feed")
            async with self.registry(client, "b"):
                event = await heard.until_heard("slave_registered")
                self.assertEqual((event[1].id, event[1].identifier), ("b", "cms-b"))
            self.assertEqual(await heard.until_heard("slave_removed"), ("slave_removed", "b"))
            self.assertEqual(len(heard.events), 2)

    async def test_who_turns_into_a_slave_has_come_and_who_turns_from_one_has_gone(self) -> None:
        client = self.client()
        async with self.registry(client, "a", role="master") as a:
            heard = Heard(a, ["slave_registered", "slave_changed", "slave_removed"])
            await self.seen("GET", "/v1/feed")
            steps = [("master", 1, None), ("slave", 1, "slave_registered"), ("slave", 2, "slave_changed"), ("slave", 2, None)]
            for role, zone, told in [*steps, ("master", 3, "slave_removed"), ("master", 4, None), ("slave", 4, "slave_registered")]:
                before = len(heard.events)
                await client.register("b", "cms-b", role=role, metadata={"zone": zone})
                if told is not None:
                    await heard.until(lambda before=before: len(heard.events) > before)
                    self.assertEqual(heard.names[-1], told)
            self.assertEqual(heard.names, ["slave_registered", "slave_changed", "slave_removed", "slave_registered"])
            self.assertEqual([heard.events[1][1].metadata, heard.events[2][1]], [{"zone": 2}, "b"])

    async def test_a_master_that_turns_slave_is_told_to_the_next_one(self) -> None:
        client = self.client()
        first, second = Election(client, "r"), Election(client, "r")
        await first.start()
        await second.start()
        async with Registry(client, election=first) as one, Registry(client, election=second) as two:
            heard = Heard(two, ["slave_registered", "slave_removed"])
            await self.seen("GET", "/v1/feed", 2)
            await second.elect()
            await heard.until(lambda: len(heard.events) == 2)
            self.assertEqual((await heard.until_heard("slave_registered"))[1].id, one.id)
            self.assertEqual(await heard.until_heard("slave_removed"), ("slave_removed", two.id))
        await first.stop()
        await second.stop()

    async def test_a_process_that_died_is_told(self) -> None:
        client = self.client()
        async with self.registry(client, "a", role="master") as a:
            heard = Heard(a, ["slave_removed"])
            await self.seen("GET", "/v1/feed")
            await client.register("b", "cms-b", role="slave", ttl=0.3)
            self.assertEqual(await heard.until_heard("slave_removed"), ("slave_removed", "b"))

    async def test_heartbeats_that_fail_are_told(self) -> None:
        client = self.client()
        async with self.registry(client, "a", heartbeat_every=0.02) as registry:
            client._transport.deadline = 0.1
            heard = Heard(registry, ["heartbeat_error"])
            self.cluster.fail("refuse_503", "POST", "/heartbeat", times=10)
            await heard.until_heard("heartbeat_error")

    async def test_the_role_follows_an_election(self) -> None:
        client = self.client()
        first, second = Election(client, "r"), Election(client, "r")
        await first.start()
        await second.start()
        async with Registry(client, election=first) as one, Registry(client, election=second) as two:
            master = await two.master()
            self.assertEqual((one.role, two.role, master and master.id), ("master", "slave", first.id))
            await first.stop()
            await second.wait_until_leader()
            await self.seen("PUT", f"/v1/processes/{second.id}", 2)
            await self.seen("PUT", f"/v1/processes/{first.id}", 2)
            master = await one.master()
            self.assertEqual(master and master.id, second.id)
        await second.stop()

    async def test_defaults(self) -> None:
        given = {name: p.default for name, p in inspect.signature(Registry).parameters.items()}
        self.assertEqual((given["ttl"], given["heartbeat_every"], given["role"]), (45.0, 10.0, "slave"))
