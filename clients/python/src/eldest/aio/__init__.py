"""Eldest for asyncio. The plain, blocking form of the same verbs is `eldest` itself."""

from ..backend import Backend
from ..errors import (
    BadAnswer, EldestError, FeedCompacted, Indeterminate, LeaseLost, NotFound, PreconditionFailed, Problem, RoleHeld, RoleNotHeld,
    Unavailable,
)
from ..memory import MemoryBackend
from ..models import Applied, Doc, FeedEvent, Grant, Leader, Page, Process, Renewal, RoleState, Written
from ._leader_only import configure, leader_only, stop_leader_only
from ._streams import Channel, Feed
from .broker import Broker, ElectionResult
from .client import Client
from .election import Election
from .lock import LockGuard
from .registry import Registry
from .state import StateDoc

__all__ = [
    "Applied", "Backend", "BadAnswer", "Broker", "Channel", "Client", "Doc", "EldestError", "Election", "ElectionResult",
    "Feed", "FeedCompacted", "FeedEvent", "Grant", "Indeterminate", "Leader", "LeaseLost", "LockGuard", "MemoryBackend",
    "NotFound", "Page", "PreconditionFailed", "Problem", "Process", "Registry", "Renewal", "RoleHeld", "RoleNotHeld", "RoleState",
    "StateDoc", "Unavailable", "Written", "configure", "leader_only", "stop_leader_only",
]
