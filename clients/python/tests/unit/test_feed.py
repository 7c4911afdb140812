"""The feed and channels, across nodes that die."""

from __future__ import annotations

import asyncio
from typing import Any

from eldest import FeedCompacted, Problem
from eldest.aio import Feed

from .support import PATIENCE, ClusterCase


async def take(feed: Feed, count: int) -> list[Any]:
    async with asyncio.timeout(PATIENCE):
        return [(await anext(feed)).data["key"] for _ in range(count)]


class OfEvents(ClusterCase):
    async def begin(self, feed: Feed) -> asyncio.Task[list[Any]]:
        """Reads, and returns once the reader knows its position."""
        reading = asyncio.create_task(take(feed, 1))
        async with asyncio.timeout(PATIENCE):
            while feed.last_id is None:
                await asyncio.sleep(0.005)
        return reading

    async def test_events_from_now_on_of_the_kinds_and_names_asked_for(self) -> None:
        client = self.client()
        await client.put("app/old", 1)
        async with client.feed(["change"], "app/") as feed:
            reading = await self.begin(feed)
            await client.put("other", 1)
            await client.acquire("app/role", "a")
            await client.put("app/new", 1)
            self.assertEqual(await reading, ["app/new"])

    async def test_it_goes_on_at_another_node_without_gap_or_repetition(self) -> None:
        client = self.client()
        async with client.feed(["change"]) as feed:
            reading = await self.begin(feed)
            await client.put("0", 0)
            keys = await reading
            for number in range(1, 9):
                if number in (3, 6):
                    self.cluster.kill(number // 3 - 1)
                await client.put(str(number), number)
                if number % 2:
                    keys += await take(feed, 2 if number > 1 else 1)
            keys += await take(feed, 8 - len(keys) + 1)
            self.assertEqual(keys, [str(number) for number in range(9)])

    async def test_bookmarks_count_as_where_it_was(self) -> None:
        client = self.client()
        async with client.feed(["role_lost"]) as feed:
            reading = asyncio.create_task(anext(feed))
            await client.put("a", 1)
            async with asyncio.timeout(PATIENCE):
                while feed.last_id != "1":
                    await asyncio.sleep(0.005)
            self.cluster.kill(0)
            await self.seen("GET", "/v1/feed", 2)
            self.assertEqual(self.cluster.calls("GET", "/v1/feed")[1].headers["last-event-id"], "1")
            reading.cancel()

    async def test_bookmarks_are_told_if_asked_for(self) -> None:
        async with self.client().feed(["change"], bookmarks=True) as feed:
            self.assertEqual((await anext(feed)).kind, "bookmark")

    async def test_a_reader_goes_on_where_another_has_ended(self) -> None:
        client = self.client()
        first = await client.put("a", 1)
        await client.put("b", 1)
        async with client.feed(["change"], since=first.rev) as feed:
            self.assertEqual(await take(feed, 1), ["b"])

    async def test_what_is_no_longer_kept_is_an_error_of_its_own(self) -> None:
        self.cluster.state.feed_kept_from = 5
        with self.assertRaises(FeedCompacted) as caught:
            await anext(self.client().feed(since="3"))
        self.assertEqual(caught.exception.oldest, "5")

    async def test_a_wrong_parameter_is_not_tried_again(self) -> None:
        self.cluster.state.feed_kept_from = 0
        feed = self.client().feed()
        feed._path = "/v1/nothing"
        with self.assertRaises(Problem):
            await anext(feed)

    async def test_a_node_that_refuses_is_left_for_another(self) -> None:
        client = self.client()
        self.cluster.fail("refuse_503", "GET", "/v1/feed")
        self.cluster.fail("garbage", "GET", "/v1/feed")
        async with client.feed(["change"]) as feed:
            reading = await self.begin(feed)
            await client.put("a", 1)
            self.assertEqual(await reading, ["a"])

    async def test_a_reader_that_is_cancelled_can_go_on(self) -> None:
        client = self.client()
        async with client.feed(["change"]) as feed:
            reading = await self.begin(feed)
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)
            await client.put("a", 1)
            self.assertEqual(await take(feed, 1), ["a"])


class Channels(ClusterCase):
    async def test_messages_come_in_order_null_included(self) -> None:
        client, opened = self.client(), asyncio.Event()
        async with client.listen("worker:slave:7", on_open=opened.set) as channel:
            reading = asyncio.create_task(anext(channel))
            await asyncio.wait_for(opened.wait(), PATIENCE)
            self.assertEqual(await client.publish("worker:slave:7", None), 1)
            await client.publish("other", 1)
            await client.publish("worker:slave:7", {"kind": "error"})
            self.assertEqual([await reading, await anext(channel)], [None, {"kind": "error"}])

    async def test_it_listens_again_elsewhere(self) -> None:
        client = self.client()
        async with client.listen("c") as channel:
            reading = asyncio.create_task(anext(channel))
            await self.seen("GET", "/v1/channels/c")
            self.cluster.kill(0)
            await self.seen("GET", "/v1/channels/c", 2)
            async with asyncio.timeout(PATIENCE):
                while not reading.done():
                    await client.publish("c", 1)
            self.assertEqual(await reading, 1)
