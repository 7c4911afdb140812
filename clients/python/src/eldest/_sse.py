"""Parses server-sent events from bytes. No socket."""

from __future__ import annotations

from dataclasses import dataclass

#: A message of a channel is at most 1 MiB, and JSON may take six bytes for one byte of text.
EVENT_BYTES_MOST = 8 << 20


class TooLong(Exception):
    """An event is longer than any event of the cluster."""


@dataclass(frozen=True, slots=True)
class SseEvent:
    kind: str
    id: str | None
    data: str


class SseParser:
    def __init__(self) -> None:
        self._rest = bytearray()
        self._lines: list[str] = []
        self._size = 0

    def feed(self, data: bytes) -> list[SseEvent]:
        """The events that `data` completes; comments are skipped."""
        self._rest += data
        *lines, rest = self._rest.split(b"\n")
        self._rest = bytearray(rest)
        events = [event for line in lines if (event := self._line(line)) is not None]
        if self._size + len(self._rest) > EVENT_BYTES_MOST:
            raise TooLong
        return events

    def _line(self, raw: bytes | bytearray) -> SseEvent | None:
        line = raw.decode("utf-8", "replace").removesuffix("\r")
        if line:
            self._size += len(raw)
            if not line.startswith(":"):
                self._lines.append(line)
            return None
        lines, self._lines, self._size = self._lines, [], 0
        return _event(lines) if lines else None


def _event(lines: list[str]) -> SseEvent | None:
    kind, event_id, data = "message", None, list[str]()
    for line in lines:
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "event":
            kind = value
        elif name == "id":
            event_id = value
        elif name == "data":
            data.append(value)
    return SseEvent(kind, event_id, "\n".join(data)) if data else None
