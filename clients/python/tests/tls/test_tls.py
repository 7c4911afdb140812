"""A cluster that speaks TLS. The environment names its nodes, its CA and, as ID=PID, its processes; the leader's is killed."""

from __future__ import annotations

import asyncio
import os
import signal
import ssl
import unittest
import uuid

from eldest import Unavailable, aio

from ..unit.support import PATIENCE

NODES = [url for url in os.environ.get("ELDEST_NODES", "").split(",") if url.startswith("https:")]
PIDS = dict(pair.split("=") for pair in os.environ.get("ELDEST_PIDS", "").split(",") if pair)


@unittest.skipUnless(NODES and PIDS, "ELDEST_NODES and ELDEST_PIDS name no cluster that speaks TLS")
class Tls(unittest.IsolatedAsyncioTestCase):
    async def test_a_role_and_the_feed_survive_the_leader(self) -> None:
        name = f"py/tls/{uuid.uuid4()}"
        context = ssl.create_default_context(cafile=os.environ["ELDEST_CA"])
        async with aio.Client(NODES, ssl_context=context) as client, client.lock(name, timeout=PATIENCE, ttl=60) as guard:
            first = await client.put(f"{name}/0", 0)
            async with client.feed(["change"], f"{name}/", since=first.rev) as feed:
                await client.put(f"{name}/1", 1)
                self.assertEqual((await asyncio.wait_for(anext(feed), PATIENCE)).data["value"], 1)
                leader = (await client.status())["leader"]
                os.kill(int(PIDS[str(leader["id"])]), signal.SIGKILL)
                await client.put(f"{name}/2", 2)
                self.assertEqual((await asyncio.wait_for(anext(feed), PATIENCE)).data["value"], 2)
            self.assertTrue(await client.check(name, guard.token))

    async def test_nobody_is_believed_without_the_ca(self) -> None:
        async with aio.Client(NODES, deadline=1.0) as client:
            with self.assertRaises(Unavailable):
                await client.put("k", 1)
