"""The next step after an attempt: one call's way over the nodes. No socket, no clock: `now` is an argument.

The rule that all else depends on: 421, 429 and 503 mean *surely not applied*; a 504, and a connection that is lost once
the request may have left, mean *maybe applied*. Both are retried, a write with the same `Idempotency-Key`; they differ
only in the error with which the call ends when its deadline passes.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from .errors import EldestError, Indeterminate, Unavailable

#: A node that answers at all answers sooner; a node that is cut off must leave time for another.
ATTEMPT_TIMEOUT_S = 3.0
#: This many attempts fit in a deadline that is shorter than three of the above.
ATTEMPTS_AT_LEAST = 3
#: A write with less time than this most likely ends unknown, so it is not sent at all.
ATTEMPT_LEAST_S = 0.1
#: An election takes some tens of milliseconds in a data centre ...
BACKOFF_FIRST_S = 0.050
#: ... and more calls than this do not help a cluster that is down longer.
BACKOFF_MOST_S = 1.0

#: Surely not applied, now or later; 408 means that the body never arrived whole.
NOT_APPLIED = frozenset({408, 421, 429, 503})
#: Maybe applied: the cluster's own answer for that, and the answers of proxies that lost one.
MAYBE_APPLIED = frozenset({502, 504})


class After(Enum):
    """The end of an attempt without a final answer."""

    NOT_SENT = "not sent"
    NOT_APPLIED = "not applied"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Attempt:
    node: str
    timeout: float


class Backoff:
    """50 ms, doubling to a second; each pause is a random part of that, so that clients do not come back in step."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._next = BACKOFF_FIRST_S

    def delay(self) -> float:
        most, self._next = self._next, min(self._next * 2, BACKOFF_MOST_S)
        return most * self._rng.uniform(0.5, 1.0)

    def reset(self) -> None:
        self._next = BACKOFF_FIRST_S


class NodeRing:
    """The nodes' URLs, and which is asked first: the last that answered, or the leader that a node named."""

    def __init__(self, urls: Sequence[str]) -> None:
        self._urls = [url.rstrip("/") for url in urls if url]
        if not self._urls:
            raise ValueError("name at least one node's URL")
        self._preferred = 0
        self._beside = 0

    def __len__(self) -> int:
        return len(self._urls)

    @property
    def preferred(self) -> str:
        return self._urls[self._preferred]

    def beside(self) -> str:
        """A node other than the one that is asked first, if there is one, each time the next: a stream there outlives that node."""
        self._beside = (self._beside + 1) % len(self._urls)
        if self._beside == self._preferred:
            self._beside = (self._beside + 1) % len(self._urls)
        return self._urls[self._beside]

    def prefer(self, url: str) -> bool:
        """False for a URL that this client was not given: credentials are sent to no other."""
        url = url.rstrip("/")
        if url not in self._urls:
            return False
        self._preferred = self._urls.index(url)
        return True

    def pass_over(self, url: str) -> None:
        """`url` has failed. If another call has turned to another node in the meantime, that stays."""
        if self.preferred == url:
            self._preferred = (self._preferred + 1) % len(self._urls)


class Course:
    """One call's attempts."""

    def __init__(self, ring: NodeRing, rng: random.Random, now: float, deadline: float, wait: float, write: bool) -> None:
        self._ring = ring
        self._backoff = Backoff(rng)
        self._ends = now + deadline + wait
        self._timeout = min(ATTEMPT_TIMEOUT_S, deadline / ATTEMPTS_AT_LEAST) + wait
        self._write = write
        self._at_once = len(ring) - 1
        self._last: BaseException | str = "no attempt was made"
        #: Whether an attempt so far may have been applied.
        self.unknown = False

    def next(self, now: float) -> Attempt | None:
        """The next attempt; None once the deadline has passed."""
        left = self._ends - now
        return Attempt(self._ring.preferred, min(self._timeout, left)) if left > 0 else None

    def answered(self, node: str) -> None:
        self._ring.prefer(node)

    def failed(self, now: float, node: str, after: After, last: BaseException | str, leader: str | None = None) -> float | None:
        """The pause before the next attempt; None if the deadline comes first."""
        self._last = last
        self.unknown |= self._write and after is After.UNKNOWN
        if self._at_once > 0 and leader is not None and leader.rstrip("/") != node and self._ring.prefer(leader):
            self._at_once -= 1  # two nodes that each take the other for the leader must not send a call in a circle
            return 0.0
        self._ring.pass_over(node)
        delay = self._delay(after)
        return delay if now + delay + ATTEMPT_LEAST_S < self._ends else None

    def _delay(self, after: After) -> float:
        """After a dead node the next is asked at once, but only as often as there are others."""
        if after is not After.NOT_APPLIED and self._at_once > 0:
            self._at_once -= 1
            return 0.0
        return self._backoff.delay()

    def give_up(self) -> EldestError:
        if self.unknown:
            return Indeterminate(f"the outcome of the write is not known: {self._last}")
        return Unavailable(f"no node has answered in time: {self._last}")
