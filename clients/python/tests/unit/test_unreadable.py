"""Values that a cluster accepted before it refused them: they stop no reader."""

from __future__ import annotations

import asyncio
import math

from .fake import raw
from .support import PATIENCE, ClusterCase

DIGITS = "7" * 5000

#: Values that a cluster sends, and their values in Python.
VALUES = {
    "1e400": math.inf,
    "-1E400": -math.inf,
    DIGITS: math.inf,
    f'{{"a": [1, -{DIGITS}]}}': {"a": [1, -math.inf]},
    '"\\ud800"': "\ud800",
    '{"$serde_json::private::RawValue": 1}': {"$serde_json::private::RawValue": 1},
}


class Unreadable(ClusterCase):
    def write(self, sent: str) -> None:
        with self.cluster.state.changed:
            for key, text in (("a", "9007199254740993"), ("b", sent), ("c", "[3]")):
                self.cluster.state.put(key, raw(text), None, False, None)

    async def test_a_document_and_a_list_are_read_on(self) -> None:
        client = self.client()
        for sent, value in VALUES.items():
            with self.subTest(sent[:40]):
                self.write(sent)
                self.assertEqual((await client.get("b")).value, value)
                expected = {"a": 9007199254740993, "b": value, "c": [3]}
                self.assertEqual({doc.key: doc.value async for doc in client.docs()}, expected)

    async def test_the_feed_is_read_on(self) -> None:
        client = self.client()
        for sent, value in VALUES.items():
            with self.subTest(sent[:40]):
                since = str(self.cluster.state.index)
                self.write(sent)
                async with client.feed(["change"], since=since) as feed, asyncio.timeout(PATIENCE):
                    told = [(await anext(feed)).data for _ in range(3)]
                self.assertEqual([event["value"] for event in told], [9007199254740993, value, [3]])

    async def test_a_channel_is_read_on(self) -> None:
        client = self.client()
        opened = asyncio.Event()
        async with client.listen("c", on_open=opened.set) as channel, asyncio.timeout(PATIENCE):
            reading = asyncio.create_task(anext(channel))
            await opened.wait()
            with self.cluster.state.changed:
                self.cluster.state.messages += [("c", raw(text)) for text in (*VALUES, "1")]
                self.cluster.state.changed.notify_all()
            heard = [await reading] + [await anext(channel) for _ in VALUES]
        self.assertEqual(heard, [*VALUES.values(), 1])

    async def test_what_was_read_as_infinite_is_not_written(self) -> None:
        client = self.client()
        with self.assertRaises(ValueError):
            await client.put("k", math.inf)
        self.assertEqual(self.cluster.calls("PUT", "/v1/docs/k"), [])
