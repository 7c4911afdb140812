"""Eldest, blocking: who leads, who holds a lock, which processes are alive, and small documents that all agree on.

The same verbs for asyncio are in `eldest.aio`.
"""

from ._plain._sides import MemoryBackend
from ._plain.broker import Broker, StateDoc
from ._plain.client import Client
from ._plain.election import Election, leader_only, stop_leader_only
from ._plain.lock import LockGuard
from ._plain.registry import Registry
from ._plain.streams import Feed, Reader
from .aio._leader_only import configure
from .aio.broker import ElectionResult
from .errors import (
    BadAnswer, EldestError, FeedCompacted, Indeterminate, LeaseLost, NotFound, PreconditionFailed, Problem, RoleHeld, RoleNotHeld,
    Unavailable,
)
from .models import Applied, Doc, FeedEvent, Grant, Leader, Page, Process, Renewal, RoleState, Written

__all__ = [
    "Applied", "BadAnswer", "Broker", "Client", "Doc", "EldestError", "Election", "ElectionResult", "Feed", "FeedCompacted",
    "FeedEvent", "Grant", "Indeterminate", "Leader", "LeaseLost", "LockGuard", "MemoryBackend", "NotFound", "Page",
    "PreconditionFailed", "Problem", "Process", "Reader", "Registry", "Renewal", "RoleHeld", "RoleNotHeld", "RoleState",
    "StateDoc", "Unavailable", "Written", "configure", "leader_only", "stop_leader_only",
]
