"""Documents, the feed, channels and the registry on a real cluster."""

from __future__ import annotations

import asyncio
from typing import Any

from eldest import NotFound, PreconditionFailed, Problem
from eldest.aio import Election, Registry, StateDoc

from .support import PATIENCE, Heard, RealCluster, nodes


class Documents(RealCluster):
    async def test_compare_and_swap_at_all_nodes(self) -> None:
        key, clients = self.name("a b/\u00e9"), self.clients()
        written = await clients[0].put(key, {"n": 1}, if_absent=True)
        self.assertEqual(((await clients[-1].get(key)).value, written.created), ({"n": 1}, True))
        await clients[-1].put(key, {"n": 2}, if_rev=written.rev)
        with self.assertRaises(PreconditionFailed) as caught:
            await clients[0].put(key, {"n": 3}, if_rev=written.rev)
        self.assertEqual(caught.exception.current_rev, (await clients[0].get(key)).rev)
        await clients[0].delete(key)
        with self.assertRaises(NotFound):
            await clients[0].get(key)

    async def test_documents_that_end_by_themselves(self) -> None:
        prefix, client = self.name("ends"), self.client()
        async with client.feed(["change"], prefix, bookmarks=True) as feed:

            async def change() -> dict[str, Any]:
                while (event := await asyncio.wait_for(anext(feed), PATIENCE)).kind != "change":
                    pass
                return event.data

            # From here on the feed is open.
            self.assertEqual((await asyncio.wait_for(anext(feed), PATIENCE)).kind, "bookmark")
            await client.put(f"{prefix}/ttl", 1, ttl=5.0)
            self.assertEqual((await change())["value"], 1)
            self.assertGreater(await client.renew_doc(f"{prefix}/ttl"), 0)
            ended = await change()
            self.assertEqual((ended["key"], ended["reason"]), (f"{prefix}/ttl", "expired"))
            with self.assertRaises(NotFound):
                await client.renew_doc(f"{prefix}/ttl")

            role, process = self.name("role"), self.name("process")
            grant = await client.acquire(role, "a", ttl=30.0)
            await client.register(process, "worker")
            with self.assertRaises(Problem) as caught:
                await self.client().put(f"{prefix}/role", 2, with_role=(role, grant.token))
            self.assertEqual(caught.exception.code, "forbidden")
            await client.put(f"{prefix}/role", 2, with_role=(role, grant.token))
            other, guarded = self.client(secret="other"), self.name("guarded")
            await other.register(guarded, "worker")
            await client.put(self.name("guarded"), 3, with_process=guarded, secret="other")
            await other.unregister(guarded)
            await client.put(f"{prefix}/process", 3, with_process=process)
            await client.release(role, "a", grant.token)
            await client.unregister(process)
            with self.assertRaises(Problem) as caught:
                await client.put(f"{prefix}/role", 4, with_role=(role, grant.token))
            self.assertEqual(caught.exception.code, "lease_not_held")
            told = [await change() for _ in range(4)]
            gone = [(event["key"], event["reason"]) for event in told if "reason" in event]
            self.assertEqual(gone, [(f"{prefix}/{kind}", "lease_ended") for kind in ("role", "process")])
        with self.assertRaises(ValueError):
            await client.put(prefix, 1, with_role=("r", 1), with_process="p")

    async def test_pages(self) -> None:
        client, prefix = self.client(), self.name("pages")
        await client.batch([("PutDoc", {"key": f"{prefix}/{number:03}", "value": number}) for number in range(150)])
        self.assertEqual([doc.value async for doc in client.docs(prefix)], list(range(150)))

    async def test_many_writers_lose_nothing(self) -> None:
        key, clients = self.name("state"), self.clients()

        async def add(number: int) -> None:
            await StateDoc(clients[number % len(clients)], key, default=[]).update(lambda all: [*all, number])

        await asyncio.gather(*(add(number) for number in range(9)))
        self.assertEqual(sorted((await clients[0].get(key)).value), list(range(9)))

    async def test_commands(self) -> None:
        client, name = self.client(), self.name("user")
        self.assertEqual(await client.command("CreateUser", {"name": name}), {"name": name})
        with self.assertRaises(Problem) as caught:
            await client.command("CreateUser", {"name": name})
        self.assertEqual((caught.exception.code, caught.exception.status), ("exists", 409))
        found = await client.read("/v1/users", prefix=name)
        self.assertEqual(found["items"], [{"name": name}])


class Feeds(RealCluster):
    async def test_a_reader_goes_on_at_another_node(self) -> None:
        prefix, clients = self.name("feed"), self.clients()
        first = await clients[0].put(f"{prefix}/0", 0)
        seen: list[object] = []
        since: str | None = first.rev
        for number in range(1, 7):
            await clients[number % len(clients)].put(f"{prefix}/{number}", number)
            async with clients[(number + 1) % len(clients)].feed(["change"], prefix, since=since) as feed:
                event = await asyncio.wait_for(anext(feed), PATIENCE)
                seen.append(event.data["value"])
                since = feed.last_id
        self.assertEqual(seen, list(range(1, 7)))

    async def test_a_bookmark_says_where_a_reader_from_now_on_begins(self) -> None:
        prefix, client = self.name("feed"), self.client()
        async with client.feed(["change"], prefix, bookmarks=True) as feed:
            self.assertEqual((await asyncio.wait_for(anext(feed), PATIENCE)).kind, "bookmark")
            await client.put(f"{prefix}/x", 1)
            self.assertEqual((await asyncio.wait_for(anext(feed), PATIENCE)).data["value"], 1)

    async def test_a_node_that_is_not_there_is_passed_over(self) -> None:
        prefix = self.name("feed")
        client = self.client(["http://127.0.0.1:1", *nodes()])
        first = await client.put(f"{prefix}/0", 0)
        await client.put(f"{prefix}/1", 1)
        again = self.client(["http://127.0.0.1:1", *nodes()])
        async with again.feed(["change"], prefix, since=first.rev) as feed:
            self.assertEqual((await asyncio.wait_for(anext(feed), PATIENCE)).data["value"], 1)

    async def test_messages_reach_listeners_at_other_nodes(self) -> None:
        name, clients, opened = self.name("channel"), self.clients(), asyncio.Event()
        async with clients[0].listen(name, on_open=opened.set) as channel:
            reading = asyncio.create_task(anext(channel))
            await asyncio.wait_for(opened.wait(), PATIENCE)
            self.assertEqual(await clients[-1].publish(name, {"job": 17}), 1)
            self.assertEqual(await asyncio.wait_for(reading, PATIENCE), {"job": 17})


class Processes(RealCluster):
    async def test_registered_found_and_removed(self) -> None:
        identifier, clients = self.name("cms"), self.clients()
        capabilities = {"canProcessDetections": True, "maxSubscriptions": 100}
        async with Registry(clients[0], identifier, capabilities=capabilities) as registry:
            entry = await clients[-1].process(registry.id)
            self.assertEqual((entry.identifier, entry.role, entry.capabilities), (identifier, "slave", capabilities))
            self.assertEqual(entry.channel, registry.channel)
            found = [process.id async for process in clients[-1].processes(identifier=identifier)]
            self.assertEqual(found, [registry.id])
            able = [process.id for process in await registry.by_capability("canProcessDetections")]
            self.assertIn(registry.id, able)
            await registry.heartbeat()
        with self.assertRaises(NotFound):
            await clients[-1].process(registry.id)

    async def test_heartbeats_keep_it_and_without_them_it_ends(self) -> None:
        client, name = self.client(), self.name("p")
        async with Registry(client, name, process_id=name, role="master", heartbeat_every=0.1, ttl=4.0) as registry:
            heard = Heard(registry, ["slave_registered", "slave_removed"])
            async with asyncio.timeout(PATIENCE):
                while not heard.events:  # until the subscription has begun
                    await client.register(self.name("p"), name, role="slave", ttl=5.0)  # longer than the other entry lasts without heartbeats
                    await asyncio.sleep(0.05)
            other = heard.events[0][1]
            self.assertEqual((other.identifier, other.role), (name, "slave"))
            await heard.until(lambda: ("slave_removed", other.id) in heard.events)
            self.assertEqual((await client.process(name)).role, "master")
            await client.unregister(name)
            async with asyncio.timeout(PATIENCE):
                while await registry.get(name) is None:  # until a heartbeat has written it again
                    await asyncio.sleep(0.01)

    async def test_master_and_slaves_of_an_election(self) -> None:
        role, clients = self.name(), self.clients()
        first, second = Election(clients[0], role), Election(clients[-1], role)
        await first.start()
        await second.start()
        async with Registry(clients[0], election=first) as one, Registry(clients[-1], election=second) as two:
            master = await two.master()
            self.assertEqual((one.role, two.role, master and master.id), ("master", "slave", first.id))
            self.assertIsNotNone(await one.slave(two.id))
            self.assertGreaterEqual(await one.slave_count(), 1)
            await first.stop()
            self.assertTrue(await second.wait_until_leader(PATIENCE))
            master = await one.master()
            self.assertEqual(master and master.id, second.id)
        await second.stop()
