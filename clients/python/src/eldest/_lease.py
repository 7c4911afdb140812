"""Computes how long a grant may be believed. Arithmetic only: no clock, no network."""

from __future__ import annotations

import time
from dataclasses import dataclass

#: Clocks of two machines run apart by less than this share of a lease ...
DRIFT_SHARE = 0.01
#: ... and are read at most this late.
DRIFT_FIXED_S = 0.010


def steady_now() -> float:
    """Seconds on a clock that is never set, and that goes on while the machine sleeps.

    `time.monotonic` stands still on Linux while the machine is suspended; a holder that woke up would believe in a
    lease that ended in the meantime.
    """
    return time.clock_gettime(_BOOT_CLOCK) if _BOOT_CLOCK is not None else time.monotonic()


_BOOT_CLOCK: int | None = getattr(time, "CLOCK_BOOTTIME", None)


@dataclass(frozen=True, slots=True)
class Lease:
    """A grant, and the moment of the holder's own clock at which the belief in it ends."""

    token: int
    until: float

    @staticmethod
    def counted_from(sent_at: float, token: int, ttl: float, expires_in: float) -> Lease:
        """From the SENDING of the request: the cluster cannot have counted from an earlier moment."""
        length = min(ttl, expires_in)
        return Lease(token, sent_at + length - (length * DRIFT_SHARE + DRIFT_FIXED_S))

    def believed(self, now: float) -> bool:
        return now < self.until

    def left(self, now: float) -> float:
        return max(0.0, self.until - now)
