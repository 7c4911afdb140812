"""Bytes in and out: HTTP answers and server-sent events, cut at every byte."""

from __future__ import annotations

import unittest

from eldest._http import HEAD_BYTES_MOST, Body, Head, Malformed, Request, parse_head
from eldest._sse import EVENT_BYTES_MOST, SseEvent, SseParser, TooLong


def body_of(headers: dict[str, str], *pieces: bytes, status: int = 200) -> tuple[bytes, Body]:
    body = Body(Head(status, headers, True))
    return b"".join(body.feed(piece) for piece in pieces), body


class Http(unittest.TestCase):
    def test_a_request_says_how_long_it_is(self) -> None:
        self.assertEqual(
            Request("POST", "/a?b=c", {"X": "1"}, b"hi").encode("h:9"),
            b"POST /a?b=c HTTP/1.1\r\nHost: h:9\r\nX: 1\r\nContent-Length: 2\r\n\r\nhi",
        )
        self.assertNotIn(b"Content-Length", Request("GET", "/").encode("h"))
        self.assertIn(b"Content-Length: 0", Request("DELETE", "/").encode("h"))

    def test_a_line_break_in_a_header_is_refused(self) -> None:
        for value in ("a\r\nX: y", "a\nb", "a\rb"):
            with self.assertRaises(ValueError):
                Request("GET", "/", {"X": value}).encode("h")

    def test_a_head(self) -> None:
        head = parse_head(b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nA:b")
        self.assertEqual((head.status, head.headers, head.keep_alive), (503, {"retry-after": "1", "a": "b"}, True))
        self.assertFalse(parse_head(b"HTTP/1.1 200 OK\r\nConnection: close").keep_alive)
        self.assertFalse(parse_head(b"HTTP/1.0 200 OK").keep_alive)

    def test_what_is_no_head_is_malformed(self) -> None:
        for raw in (b"", b"SMTP ready", b"HTTP/1.1 2x0 OK", b"HTTP/1.1", b"HTTP/1.1 200 OK\r\nnonsense", b"HTTP/2 200"):
            with self.assertRaises(Malformed):
                parse_head(raw)

    def test_a_chunked_body_cut_at_every_byte(self) -> None:
        raw = b"4\r\nWiki\r\n6;x=y\r\npedia \r\nE\r\nin \r\n\r\nchunks.\r\n0\r\nT: v\r\n\r\n"
        for cut in range(len(raw) + 1):
            out, body = body_of({"transfer-encoding": "chunked"}, raw[:cut], raw[cut:])
            self.assertEqual((out, body.done), (b"Wikipedia in \r\n\r\nchunks.", True))

    def test_a_body_of_a_length(self) -> None:
        out, body = body_of({"content-length": "3"}, b"a", b"bc")
        self.assertEqual((out, body.done), (b"abc", True))
        self.assertTrue(body_of({"content-length": "0"})[1].done)
        self.assertTrue(body_of({"content-length": "9"}, status=304)[1].done)

    def test_a_body_until_the_end_of_the_connection(self) -> None:
        out, body = body_of({}, b"a", b"b")
        self.assertEqual((out, body.done), (b"ab", False))
        body.closed()
        self.assertTrue(body.done)

    def test_a_body_that_is_cut_short_is_malformed(self) -> None:
        for headers, raw in (({"content-length": "3"}, b"ab"), ({"transfer-encoding": "chunked"}, b"4\r\nWi")):
            _, body = body_of(headers, raw)
            with self.assertRaises(Malformed):
                body.closed()

    def test_lengths_that_are_none_are_malformed(self) -> None:
        for length in ("-1", "x", "", "\u00b2"):
            with self.assertRaises(Malformed):
                body_of({"content-length": length})
        for raw in (b"-1\r\n", b"zz\r\n", b"\r\n", b"4\r\nWikiX\r\n", b"1" * (HEAD_BYTES_MOST + 1)):
            with self.assertRaises(Malformed):
                body_of({"transfer-encoding": "chunked"}, raw)


class Sse(unittest.TestCase):
    RAW = ": hello\n\nid: 7\nevent: change\ndata: {\"a\":\ndata: 1}\n\r\nevent: nothing\n\ndata: \u00e9\n\n".encode()
    EVENTS = [SseEvent("change", "7", '{"a":\n1}'), SseEvent("message", None, "\u00e9")]

    def test_events_cut_at_every_byte(self) -> None:
        for cut in range(len(self.RAW) + 1):
            parser = SseParser()
            self.assertEqual(parser.feed(self.RAW[:cut]) + parser.feed(self.RAW[cut:]), self.EVENTS)

    def test_an_event_without_an_end_is_refused(self) -> None:
        for piece in (b"x" * 100_000, b"data: " + b"x" * 100_000 + b"\n"):
            parser = SseParser()
            with self.assertRaises(TooLong):
                for _ in range(EVENT_BYTES_MOST // len(piece) + 2):
                    parser.feed(piece)
