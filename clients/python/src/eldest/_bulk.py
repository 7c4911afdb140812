"""Many commands at once: lines of a stream, each a separate call under its own key. No socket, no clock."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ._json import loads
from ._retry import MAYBE_APPLIED, NOT_APPLIED
from .errors import EldestError, Indeterminate, Problem, Unavailable, problem
from .models import Applied, Fields, Json

#: A node decides this many at once. More would only wait there, and would be sent again if one of them has to be.
LINES_MOST = 1024
BYTES_MOST = 1 << 20

Commands = Sequence[tuple[str, Mapping[str, Json]]]


@dataclass(slots=True)
class Line:
    """A command that waits for its final answer."""

    #: Its place among all commands.
    place: int
    text: bytes
    unknown: bool = False
    last: object = "no attempt was made"

    def give_up(self) -> EldestError:
        if self.unknown:
            return Indeterminate(f"the outcome of the command is not known: {self.last}")
        return Unavailable(f"the command surely did not happen: {self.last}")


def chunks(commands: Commands) -> Iterator[list[Line]]:
    """The lines that are sent at once, in order."""
    chunk: list[Line] = []
    size = 0
    for place, (storage_cmd, payload) in enumerate(commands):
        line = {"storage_cmd": storage_cmd, "payload": payload, "idempotency_key": uuid.uuid4().hex}
        text = json.dumps(line, allow_nan=False, separators=(",", ":")).encode() + b"\n"
        if chunk and (len(chunk) == LINES_MOST or size + len(text) > BYTES_MOST):
            yield chunk
            chunk, size = [], 0
        chunk.append(Line(place, text))
        size += len(text)
    if chunk:
        yield chunk


def take(lines: list[Line], body: bytes, told: list[Applied | EldestError]) -> list[Line]:
    """Notes the node's answers to these lines; returns the lines that have to be retried."""
    answers = [answer for answer in body.split(b"\n") if answer]
    answers += [b""] * (len(lines) - len(answers))
    left = []
    for line, answer in zip(lines, answers, strict=False):
        said = _read(answer)
        if isinstance(said, Applied) or (isinstance(said, Problem) and said.status not in NOT_APPLIED | MAYBE_APPLIED):
            told[line.place] = said
            continue
        line.unknown |= not isinstance(said, Problem) or said.status in MAYBE_APPLIED
        line.last = said or "no answer to this line"
        left.append(line)
    return left


def _read(answer: bytes) -> Applied | Problem | None:
    try:
        members = loads(answer)
    except ValueError:
        return None
    if not isinstance(members, dict):
        return None
    if "code" in members:
        status = members.get("status")
        return problem(status if isinstance(status, int) else 0, members)
    fields = Fields(members)
    results = fields.items("results") if "results" in members else [members.get("result")]
    return Applied(fields.whole("index"), fields.text("epoch"), results)
