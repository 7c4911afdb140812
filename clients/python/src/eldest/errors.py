"""The errors that a call can end with.

`Problem` and its kinds are answers of the cluster. `Unavailable` and `Indeterminate` mean that the deadline passed
without an answer: the first means *surely not applied*, the second *maybe applied*.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class EldestError(Exception):
    """The base of all errors of this library."""


class Problem(EldestError):
    """The cluster refused. Tell problems apart by `code`: codes never change their meaning."""

    def __init__(
        self, code: str, status: int, detail: str = "", *, retryable: bool = False, members: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(f"{code} ({status}): {detail}" if detail else f"{code} ({status})")
        self.code = code
        self.status = status
        self.detail = detail
        self.retryable = retryable
        #: All members of the problem document, including those of its code.
        self.members: Mapping[str, Any] = members or {}

    @property
    def request_id(self) -> str | None:
        return _text(self.members.get("request_id"))

    @property
    def leader_url(self) -> str | None:
        """The leader's URL, if the node that answered knew one."""
        leader = self.members.get("leader_node")
        return _text(leader.get("url")) if isinstance(leader, dict) else None


class NotFound(Problem):
    """There is no such document, process, user, election or route."""


class PreconditionFailed(Problem):
    """The document does not have the revision that the write depended on."""

    @property
    def current_rev(self) -> str | None:
        """Its revision now; None if it does not exist."""
        return _text(self.members.get("current_rev"))


class RoleNotHeld(Problem):
    """The write was in the name of a role, and its token is not, or no longer, the role's: nothing was written, and
    nothing will be."""

    @property
    def role(self) -> str | None:
        return _text(self.members.get("role"))


class RoleHeld(Problem):
    """Another instance has the role. `outcome` is `other_leader`, or `conflict`: the role was free when the call came."""

    @property
    def outcome(self) -> str:
        return "conflict" if self.members.get("outcome") == "conflict" else "other_leader"

    @property
    def leader_id(self) -> str | None:
        """The instance that has it."""
        return self._of_leader("instance_id")

    @property
    def leader_address(self) -> str | None:
        """The address that this instance gave."""
        return self._of_leader("address")

    @property
    def expires_in(self) -> float | None:
        """Seconds until its lease ends, unless it renews."""
        left = self.members.get("expires_in_ms")
        return left / 1000 if isinstance(left, (int, float)) else None

    def _of_leader(self, member: str) -> str | None:
        leader = self.members.get("leader")
        return _text(leader.get(member)) if isinstance(leader, dict) else None


class LeaseLost(Problem):
    """The token is not, or no longer, that of the role's holder."""


class FeedCompacted(Problem):
    """The events after the given id are no longer kept. Read your copy again, then go on from now."""

    @property
    def oldest(self) -> str | None:
        """The oldest id that the node which answered can go on from."""
        return _text(self.members.get("oldest"))


class BadAnswer(EldestError):
    """The answer is not one of this cluster: it is from another server, or a proxy's page."""


class Unavailable(EldestError):
    """No node could answer before the deadline. A write was *surely not applied*."""


class Indeterminate(EldestError):
    """A write may or may not have been applied: an attempt's answer was lost, and the deadline passed."""


_KINDS: dict[str, type[Problem]] = {
    "not_found": NotFound,
    "precondition_failed": PreconditionFailed,
    "role_held": RoleHeld,
    "role_not_held": RoleNotHeld,
    "lease_lost": LeaseLost,
    "feed_compacted": FeedCompacted,
}


def problem(status: int, document: object) -> Problem:
    """The problem of an answer, of the kind that its code names."""
    members: dict[str, Any] = document if isinstance(document, dict) else {}
    code = _text(members.get("code")) or "unknown"
    detail = _text(members.get("detail")) or _text(members.get("title")) or ""
    retryable = members.get("retryable") is True
    return _KINDS.get(code, Problem)(code, status, detail, retryable=retryable, members=members)


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
