"""The cluster's answers, as values. Durations are seconds; `Json` is any JSON value."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, Literal, Protocol, TypeVar

from .errors import BadAnswer

Json = Any
T = TypeVar("T")
Level = Literal["linear", "leader", "local"]


class Holder(Protocol):
    """A grant of a role: a lock, an election and a broker are one. Without a token the grant is over."""

    @property
    def role(self) -> str: ...
    @property
    def token(self) -> int | None: ...


#: The holder in whose name a document is written: a role and its token, or an object with both.
IfRole = tuple[str, int | None] | Holder


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    items: list[T]
    #: The start of the next page (`after`); None on the last one.
    next: str | None


@dataclass(frozen=True, slots=True)
class Doc:
    key: str
    rev: str
    value: Json


@dataclass(frozen=True, slots=True)
class Written:
    key: str
    rev: str
    created: bool


@dataclass(frozen=True, slots=True)
class Applied:
    """The results of commands: `results` has one item for each command."""

    index: int
    epoch: str
    results: list[Json]


@dataclass(frozen=True, slots=True)
class Leader:
    """The instance that has a role."""

    instance_id: str
    address: str | None = None
    metadata: Json = None


@dataclass(frozen=True, slots=True)
class Grant:
    outcome: Literal["elected", "already_leader"]
    role: str
    leader: Leader
    token: int
    expires_in: float
    #: When the request was sent, by the backend's own clock: a lease is counted from here.
    sent_at: float


@dataclass(frozen=True, slots=True)
class Renewal:
    token: int
    expires_in: float
    sent_at: float


@dataclass(frozen=True, slots=True)
class RoleState:
    """A role in the cluster; `leader` and `token` are None if it is not held."""

    role: str
    leader: Leader | None
    token: int | None
    ttl: float | None = None
    acquired_at: str | None = None
    expires_in: float | None = None
    waiting: int | None = None


@dataclass(frozen=True, slots=True)
class Process:
    """An entry of the registry. Messages for it go to `channel`."""

    id: str
    identifier: str
    role: str | None
    capabilities: Json
    metadata: Json
    channel: str
    ttl: float | None
    registered_at: str | None
    last_seen: str | None
    expires_in: float | None


@dataclass(frozen=True, slots=True)
class FeedEvent:
    """An event of the feed; `data` has all its members."""

    kind: str
    id: str | None
    data: Mapping[str, Json]


class Fields:
    """The members of an answer, each checked when it is read."""

    def __init__(self, document: object, what: str = "an answer") -> None:
        if not isinstance(document, dict):
            raise BadAnswer(f"{what} is not an object")
        self.members: dict[str, Any] = document
        self._what = what

    def text(self, name: str) -> str:
        return self._of(name, str)

    def text_or_none(self, name: str) -> str | None:
        value = self.members.get(name)
        return None if value is None else self.text(name)

    def whole(self, name: str) -> int:
        value = self._of(name, int)
        if isinstance(value, bool):
            raise BadAnswer(f"{name} of {self._what} is not a number")
        return value

    def whole_or_none(self, name: str) -> int | None:
        return None if self.members.get(name) is None else self.whole(name)

    def seconds(self, name: str) -> float:
        return self.whole(name) / 1000

    def seconds_or_none(self, name: str) -> float | None:
        return None if self.members.get(name) is None else self.seconds(name)

    def stamp_or_none(self, name: str) -> str | None:
        """A time, for people: nothing is computed with it."""
        value = self.members.get(name)
        return None if value is None else str(value)

    def true(self, name: str) -> bool:
        return self._of(name, bool)

    def items(self, name: str = "items") -> list[Any]:
        value: list[Any] = self._of(name, list)
        return value

    def _of(self, name: str, kind: type[T]) -> T:
        value = self.members.get(name)
        if not isinstance(value, kind):
            raise BadAnswer(f"{name} of {self._what} is missing, or not of its type")
        return value


def leader_of(document: object) -> Leader:
    fields = Fields(document, "a leader")
    return Leader(fields.text("instance_id"), fields.text_or_none("address"), fields.members.get("metadata"))


def grant_of(document: object, sent_at: float) -> Grant:
    fields = Fields(document, "a grant")
    outcome = fields.text("outcome")
    if outcome not in ("elected", "already_leader"):
        raise BadAnswer(f"a grant with the outcome {outcome!r}")
    return Grant(
        "elected" if outcome == "elected" else "already_leader",
        fields.text("role"),
        leader_of(fields.members.get("leader")),
        fields.whole("token"),
        fields.seconds("expires_in_ms"),
        sent_at,
    )


def role_of(document: object) -> RoleState:
    fields = Fields(document, "a role")
    leader = fields.members.get("leader")
    return RoleState(
        fields.text("role"),
        None if leader is None else leader_of(leader),
        fields.whole_or_none("token"),
        fields.seconds_or_none("ttl_ms"),
        fields.stamp_or_none("acquired_at"),
        fields.seconds_or_none("expires_in_ms"),
        fields.whole_or_none("waiting"),
    )


def process_of(document: object) -> Process:
    fields = Fields(document, "a process")
    return Process(
        fields.text("id"),
        fields.text("identifier"),
        fields.text_or_none("role"),
        fields.members.get("capabilities"),
        fields.members.get("metadata"),
        fields.text("channel"),
        fields.seconds_or_none("ttl_ms"),
        fields.stamp_or_none("registered_at"),
        fields.stamp_or_none("last_seen"),
        fields.seconds_or_none("expires_in_ms"),
    )


def doc_of(document: object) -> Doc:
    fields = Fields(document, "a document")
    return Doc(fields.text("key"), fields.text("rev"), fields.members.get("value"))


def page_of(document: object, item: Callable[[object], T]) -> Page[T]:
    fields = Fields(document, "a page")
    return Page([item(entry) for entry in fields.items()], fields.text_or_none("next"))
