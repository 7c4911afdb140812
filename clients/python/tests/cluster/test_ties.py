"""Holders that are killed, on a real cluster."""

from __future__ import annotations

import asyncio
import sys

from eldest.aio import Election

from .support import PATIENCE, RealCluster, nodes

#: Prints its token once a node serves the connection that its role is held by.
TOLD = """
import asyncio, sys, time
from contextlib import asynccontextmanager
import eldest

def told(client):
    tie = client.tie

    @asynccontextmanager
    async def opened(role, instance_id, token, **options):
        async with tie(role, instance_id, token, **options) as events:
            print(token, flush=True)
            yield events

    client.tie = opened
    return client
"""

HOLDER = TOLD + """
async def hold():
    election = eldest.aio.Election(told(eldest.aio.Client(sys.argv[2].split(","))), sys.argv[1], ttl=3600.0)
    await election.start()
    await asyncio.Event().wait()

asyncio.run(hold())
"""

#: The same in the blocking form.
PLAIN_HOLDER = TOLD + """
client = eldest.Client(sys.argv[2].split(","))
told(client.aio)
eldest.Election(client, sys.argv[1], ttl=3600.0).start()
time.sleep(600)
"""


class Killed(RealCluster):
    async def test_another_one_leads_long_before_the_ttl_is_over(self) -> None:
        for program in (HOLDER, PLAIN_HOLDER):
            with self.subTest(program=program):
                await self.take_over(program)

    async def take_over(self, program: str) -> None:
        role = self.name()
        child = await asyncio.create_subprocess_exec(
            sys.executable, "-c", program, role, ",".join(nodes()), stdout=asyncio.subprocess.PIPE
        )
        try:
            assert child.stdout is not None
            first = int(await asyncio.wait_for(child.stdout.readline(), PATIENCE))
            following = Election(self.client(), role, ttl=3600.0)
            await following.start()
            self.addAsyncCleanup(following.stop)
            self.assertFalse(following.is_leader)
            child.kill()
            self.assertTrue(await following.wait_until_leader(PATIENCE))  # the ttl of the killed holder is an hour
            assert following.token is not None
            self.assertGreater(following.token, first)
        finally:
            if child.returncode is None:
                child.kill()
            await child.wait()
