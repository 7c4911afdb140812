"""The state of a fake cluster: what all its nodes share. One lock; waits are conditions."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

#: The time in which a waiter notices that its caller has gone.
LOOK_AGAIN_S = 0.05

Answer = tuple[int, dict[str, Any]]


def problem(status: int, code: str, **members: Any) -> Answer:
    retryable = status in (421, 429, 503, 504) or code == "role_held"
    return status, {"status": status, "code": code, "detail": code, "retryable": retryable, **members}


@dataclass
class Held:
    leader: dict[str, Any]
    token: int
    ttl_ms: int
    until: float

    def left_ms(self) -> int:
        return max(0, int((self.until - time.monotonic()) * 1000))


@dataclass
class State:
    changed: threading.Condition = field(default_factory=threading.Condition)
    roles: dict[str, Held] = field(default_factory=dict)
    waiters: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    processes: dict[str, dict[str, Any]] = field(default_factory=dict)
    docs: dict[str, tuple[int, Any]] = field(default_factory=dict)
    events: list[tuple[int, str, dict[str, Any]]] = field(default_factory=list)
    messages: list[tuple[str, Any]] = field(default_factory=list)
    listeners: dict[str, int] = field(default_factory=dict)
    replies: dict[str, tuple[int, dict[str, Any], dict[str, str]]] = field(default_factory=dict)
    token: int = 0
    index: int = 0
    seat: int = 0
    #: No answer names a longer time than this, for any ttl.
    lease_most_ms: int | None = None
    #: The answer to a call that waited comes this long after its grant.
    grant_delay: float = 0.0
    feed_kept_from: int = 0

    def tell(self, kind: str, **members: Any) -> None:
        self.index += 1
        self.events.append((self.index, kind, {"id": str(self.index), "kind": kind, **members}))
        self.changed.notify_all()

    def expire(self) -> None:
        for role, held in list(self.roles.items()):
            if held.until <= time.monotonic():
                self.lose(role, "expired")
        for name, entry in list(self.processes.items()):
            if entry["until"] <= time.monotonic():
                del self.processes[name]
                self.tell("process_removed", process=name, identifier=entry["identifier"], role=entry["role"], reason="expired")

    def lose(self, role: str, reason: str) -> None:
        held = self.roles.pop(role)
        self.tell("role_lost", role=role, instance_id=held.leader["instance_id"], token=held.token, reason=reason)

    def grant(self, role: str, leader: dict[str, Any], ttl_ms: int) -> Held:
        self.token = max(self.token + 1, time.time_ns() // 1000)
        held = self.roles[role] = Held(leader, self.token, ttl_ms, time.monotonic() + ttl_ms / 1000)
        self.tell("role_acquired", role=role, instance_id=leader["instance_id"], token=held.token)
        return held

    # Roles

    def acquire(self, role: str, body: dict[str, Any], gone: Callable[[], bool] = lambda: False) -> Answer:
        leader = {name: body.get(name) for name in ("instance_id", "address", "metadata")}
        ttl_ms, seat = body.get("ttl_ms", 30000), (-body.get("priority", 0), self.next_seat())
        ends = time.monotonic() + body.get("wait_ms", 0) / 1000
        queue = self.waiters.setdefault(role, [])
        queue.append(seat)
        try:
            return self._acquire_in_turn(role, leader, ttl_ms, seat, ends, gone)
        finally:
            queue.remove(seat)
            self.changed.notify_all()

    def _acquire_in_turn(self, role: str, leader: dict[str, Any], ttl_ms: int, seat: tuple[int, int], ends: float, gone: Callable[[], bool]) -> Answer:
        waited = False
        while True:
            self.expire()
            held = self.roles.get(role)
            if waited and gone():  # a caller that has gone is granted nothing
                return self.refused(role, held)
            if held is not None and held.leader["instance_id"] == leader["instance_id"]:
                held.leader, held.ttl_ms, held.until = leader, ttl_ms, time.monotonic() + ttl_ms / 1000
                return self.granted("already_leader", role, held)
            if held is None and min(self.waiters[role]) == seat:
                held = self.grant(role, leader, ttl_ms)
                if waited and self.grant_delay:
                    self.changed.wait_for(lambda: False, self.grant_delay)
                return self.granted("elected", role, held)
            left = ends - time.monotonic()
            if left <= 0:
                return self.refused(role, held)
            waited = True
            self.changed.wait(min([left, LOOK_AGAIN_S] + [other.left_ms() / 1000 + 0.001 for other in self.roles.values()]))

    def next_seat(self) -> int:
        self.seat += 1
        return self.seat

    def granted(self, outcome: str, role: str, held: Held) -> Answer:
        return 200, {"outcome": outcome, "role": role, "leader": held.leader, "token": held.token, "expires_in_ms": self.left(held)}

    def left(self, held: Held) -> int:
        return held.left_ms() if self.lease_most_ms is None else min(held.left_ms(), self.lease_most_ms)

    def refused(self, role: str, held: Held | None) -> Answer:
        if held is None:
            return problem(409, "role_held", outcome="conflict", role=role, leader=None, token=None, expires_in_ms=None)
        return problem(
            409, "role_held", outcome="other_leader", role=role, leader=held.leader, token=held.token, expires_in_ms=held.left_ms()
        )

    def own(self, role: str, body: dict[str, Any]) -> Held | None:
        self.expire()
        held = self.roles.get(role)
        mine = held is not None and (held.leader["instance_id"], held.token) == (body["instance_id"], body["token"])
        return held if mine else None

    def renew(self, role: str, body: dict[str, Any]) -> Answer:
        held = self.own(role, body)
        if held is None:
            return problem(410, "lease_lost", role=role, leader=None, token=None)
        held.ttl_ms = body.get("ttl_ms", held.ttl_ms)
        held.until = time.monotonic() + held.ttl_ms / 1000
        return 200, {"role": role, "token": held.token, "expires_in_ms": self.left(held)}

    def release(self, role: str, body: dict[str, Any]) -> Answer:
        held = self.own(role, body)
        if held is None:
            return problem(410, "lease_lost", role=role, leader=None, token=None)
        self.lose(role, "released")
        return 200, {"role": role, "token": held.token, "released": True}

    def elect(self, role: str, body: dict[str, Any]) -> Answer:
        self.expire()
        if role in self.roles:
            self.lose(role, "replaced")
        leader = {name: body.get(name) for name in ("instance_id", "address", "metadata")}
        return self.granted("elected", role, self.grant(role, leader, body.get("ttl_ms", 30000)))

    def role(self, role: str) -> dict[str, Any]:
        self.expire()
        held = self.roles.get(role)
        empty = dict.fromkeys(("leader", "token", "ttl_ms", "acquired_at", "expires_in_ms"))
        there = {} if held is None else {
            "leader": held.leader, "token": held.token, "ttl_ms": held.ttl_ms, "expires_in_ms": held.left_ms(),
            "acquired_at": "2026-01-02T03:04:05Z",
        }
        return {"role": role, **empty, **there, "waiting": len(self.waiters.get(role, []))}

    # Processes

    def register(self, name: str, body: dict[str, Any]) -> Answer:
        self.expire()
        before = self.processes.get(name)
        ttl_ms = body.get("ttl_ms", 45000)
        self.processes[name] = {
            "id": name, "identifier": body["identifier"], "role": body.get("role"), "capabilities": body.get("capabilities"),
            "metadata": body.get("metadata"), "channel": f"worker:slave:{name}", "ttl_ms": ttl_ms,
            "registered_at": "2026-01-02T03:04:05Z", "last_seen": "2026-01-02T03:04:05Z", "expires_in_ms": ttl_ms,
            "until": time.monotonic() + ttl_ms / 1000,
        }
        members = {"process": name, "identifier": body["identifier"], "role": body.get("role")}
        said = ("role", "capabilities", "metadata", "identifier")
        if before is None:
            self.tell("process_registered", **members)
        elif any(before[member] != self.processes[name][member] for member in said):
            self.tell("process_changed", **members, previous_role=before["role"])
        return (201 if before is None else 200), self.shown(name)

    def shown(self, name: str) -> dict[str, Any]:
        return {member: value for member, value in self.processes[name].items() if member != "until"}

    def heartbeat(self, name: str) -> Answer:
        self.expire()
        if name not in self.processes:
            return problem(404, "not_found")
        entry = self.processes[name]
        entry["until"] = time.monotonic() + entry["ttl_ms"] / 1000
        return 200, {"id": name, "expires_in_ms": entry["ttl_ms"]}

    def unregister(self, name: str) -> Answer:
        self.expire()
        if name not in self.processes:
            return problem(404, "not_found")
        entry = self.processes.pop(name)
        self.tell("process_removed", process=name, identifier=entry["identifier"], role=entry["role"], reason="removed")
        return 200, {"id": name}

    def list_processes(self, query: dict[str, str]) -> list[dict[str, Any]]:
        self.expire()
        wanted = {name: query[name] for name in ("role", "identifier") if name in query}
        entries = [self.shown(name) for name in sorted(self.processes)]
        entries = [entry for entry in entries if all(entry[name] == value for name, value in wanted.items())]
        capability = query.get("capability")
        return entries if capability is None else [entry for entry in entries if _can(entry["capabilities"], capability)]

    # Documents

    def former(self, if_role: str | None) -> Answer | None:
        """The refusal of a write that names a role under a token that is not, or no longer, the role's."""
        if if_role is None:
            return None
        name, token = if_role.rsplit("; token=", 1)
        held = self.role(role := unquote(name))["token"]
        return None if str(held) == token else problem(412, "role_not_held", role=role)

    def put(self, key: str, value: Any, if_match: str | None, if_absent: bool, if_role: str | None) -> Answer:
        at = self.docs.get(key)
        if (former := self.former(if_role)) is not None:
            return former
        current = None if at is None else str(at[0])
        if (if_absent and at is not None) or (if_match is not None and if_match != f'"{current}"'):
            return problem(412, "precondition_failed", current_rev=current)
        self.tell("change", table="doc", key=key, rev=str(self.index + 1), op="put", value=value)
        self.docs[key] = (self.index, value)
        return (201 if at is None else 200), {"key": key, "rev": str(self.index), "created": at is None}

    def delete(self, key: str, if_match: str | None, if_role: str | None) -> Answer:
        at = self.docs.get(key)
        if (former := self.former(if_role)) is not None:
            return former
        if at is None:
            return problem(404, "not_found")
        if if_match is not None and if_match != f'"{at[0]}"':
            return problem(412, "precondition_failed", current_rev=str(at[0]))
        del self.docs[key]
        self.tell("change", table="doc", key=key, rev=str(self.index + 1), op="delete", value=None)
        return 200, {"key": key}


def _can(capabilities: Any, wanted: str) -> bool:
    if isinstance(capabilities, list):
        return wanted in capabilities
    return isinstance(capabilities, dict) and capabilities.get(wanted) not in (None, False)
