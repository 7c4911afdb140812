"""Functions that run only where this process leads."""

from __future__ import annotations

import unittest

from eldest.aio import Election, MemoryBackend, leader_only, stop_leader_only


class LeaderOnly(unittest.IsolatedAsyncioTestCase):
    def setUp(self) -> None:
        self.backend = MemoryBackend()

    async def test_it_runs_on_the_leader_and_is_skipped_elsewhere(self) -> None:
        ran: list[int] = []

        @leader_only("aggregation", backend=self.backend)
        async def aggregate(number: int) -> int:
            ran.append(number)
            return number

        other = await Election(self.backend, "aggregation").start()
        self.assertIsNone(await aggregate(1))
        await other.stop()
        state = await self.backend.role("aggregation")
        self.assertIsNotNone(state.leader)  # this process had been waiting for it
        while await aggregate(2) is None:
            pass
        self.assertEqual(ran, [2])
        await stop_leader_only()
        self.assertIsNone((await self.backend.role("aggregation")).leader)

    async def test_functions_of_one_role_share_an_election(self) -> None:
        async def ran() -> bool:
            return True

        first, second = (leader_only("r", backend=self.backend)(ran) for _ in range(2))
        self.assertTrue(await first() and await second())
        await stop_leader_only()

    async def test_an_election_of_one_s_own(self) -> None:
        election = Election(self.backend, "r")

        @leader_only(election)
        async def work() -> str:
            return "done"

        self.assertIsNone(await work())
        await election.start()
        self.assertEqual(await work(), "done")
        await election.stop()
        self.assertIsNone(await work())
