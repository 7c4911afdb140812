"""HTTP/1.1 as bytes in and bytes out. No socket, no clock: the same for every kind of IO, and testable byte by byte."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

#: The head of an answer is a few hundred bytes; a head longer than this is not from a node.
HEAD_BYTES_MOST = 64 << 10
#: A page is at most 4 MiB and a document 1 MiB; a whole-data document may be larger, but no client asks for one.
BODY_BYTES_MOST = 64 << 20


class Malformed(Exception):
    """The bytes are not an HTTP answer that this client accepts."""


@dataclass(frozen=True, slots=True)
class Request:
    """`path` is already encoded, with its query."""

    method: str
    path: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""

    def encode(self, host: str) -> bytes:
        lines = [f"{self.method} {self.path} HTTP/1.1", f"Host: {host}"]
        lines += [f"{name}: {value}" for name, value in self.headers.items()]
        if self.body or self.method not in ("GET", "HEAD"):
            lines.append(f"Content-Length: {len(self.body)}")
        head = "\r\n".join(lines) + "\r\n\r\n"
        if head.count("\r\n") != len(lines) + 1 or "\r" in head.replace("\r\n", "") or "\n" in head.replace("\r\n", ""):
            raise ValueError("a header or a path holds a line break")
        return head.encode("latin-1") + self.body


@dataclass(frozen=True, slots=True)
class Head:
    status: int
    headers: Mapping[str, str]  # names in lower case
    keep_alive: bool

    @property
    def has_body(self) -> bool:
        return not (self.status < 200 or self.status in (204, 304))


def parse_head(raw: bytes) -> Head:
    """`raw` is everything before the empty line."""
    lines = raw.decode("latin-1").split("\r\n")
    version, _, rest = lines[0].partition(" ")
    status = rest[:3]
    if version not in ("HTTP/1.1", "HTTP/1.0") or not (status.isascii() and status.isdigit()) or len(status) != 3:
        raise Malformed(f"not an HTTP answer: {lines[0][:80]!r}")
    headers = dict(_header(line) for line in lines[1:] if line)
    connection = headers.get("connection", "").lower()
    keep_alive = "close" not in connection and (version == "HTTP/1.1" or "keep-alive" in connection)
    return Head(int(status), headers, keep_alive)


def _header(line: str) -> tuple[str, str]:
    name, colon, value = line.partition(":")
    if not colon or not name or name != name.strip():
        raise Malformed(f"not a header: {line[:80]!r}")
    return name.lower(), value.strip()


class Body:
    """Takes the bytes after a head and returns their content. `done` once the body has ended."""

    def __init__(self, head: Head) -> None:
        self.done = False
        self._buffer = bytearray()
        self._left = 0
        self._state = self._begin(head)

    def _begin(self, head: Head) -> str:
        if not head.has_body:
            return self._finish()
        if head.headers.get("transfer-encoding", "").lower() == "chunked":
            return "chunk-size"
        length = head.headers.get("content-length")
        if length is None:
            return "until-close"
        if not (length.isascii() and length.isdigit()):
            raise Malformed(f"content-length {length[:40]!r}")
        self._left = int(length)
        return "length" if self._left else self._finish()

    def _finish(self) -> str:
        self.done = True
        return "done"

    def feed(self, data: bytes) -> bytes:
        """The decoded bytes that `data` completes."""
        self._buffer += data
        out = bytearray()
        while not self.done and self._step(out):
            pass
        return bytes(out)

    def closed(self) -> None:
        """The other side has ended the connection."""
        if self._state == "until-close":
            self._finish()
        elif not self.done:
            raise Malformed("the answer was cut short")

    def _step(self, out: bytearray) -> bool:
        """Reads one piece; False if more bytes are needed."""
        if self._state == "until-close":
            out += self._buffer
            self._buffer.clear()
            return False
        if self._state in ("length", "chunk"):
            return self._take(out)
        line = self._line()
        if line is None:
            return False
        self._take_line(line)
        return True

    def _take(self, out: bytearray) -> bool:
        piece = self._buffer[: self._left]
        del self._buffer[: self._left]
        out += piece
        self._left -= len(piece)
        if self._left:
            return False
        self._state = self._finish() if self._state == "length" else "chunk-end"
        return True

    def _line(self) -> bytes | None:
        end = self._buffer.find(b"\r\n")
        if end < 0:
            if len(self._buffer) > HEAD_BYTES_MOST:
                raise Malformed("a line without an end")
            return None
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 2]
        return line

    def _take_line(self, line: bytes) -> None:
        if self._state == "chunk-end":
            if line:
                raise Malformed("a chunk is longer than it says")
            self._state = "chunk-size"
        elif self._state == "trailers":
            self._state = "trailers" if line else self._finish()
        else:
            self._left = _chunk_size(line)
            self._state = "chunk" if self._left else "trailers"


def _chunk_size(line: bytes) -> int:
    digits = line.split(b";")[0].strip()
    if not 1 <= len(digits) <= 15 or not all(byte in b"0123456789abcdefABCDEF" for byte in digits):
        raise Malformed(f"a chunk of the size {line[:40]!r}")
    return int(digits, 16)
