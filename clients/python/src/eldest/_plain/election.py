"""An election, blocking. It goes on in the background while the program does other things, or blocks."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any, ParamSpec, Self, TypeVar

from .. import aio
from ..aio._leader_only import nodes_of_environment
from ..aio._ties import HeldBy
from ..aio.election import CHECK_EVERY_S, WAIT_FOR_ELECTION_S, Status
from ..models import Json
from ._portal import portal
from ._sides import Plain
from .client import Client
from .events import Events

P = ParamSpec("P")
R = TypeVar("R")


class Election(Events):
    """`start()` takes part until `stop()`; a `with` tries once, and gives the role back at the end."""

    def __init__(
        self,
        backend: Plain,
        role: str,
        *,
        instance_id: str | None = None,
        identifier: str | None = None,
        ttl: float = 30.0,
        renew_every: float | None = None,
        check_every: float = CHECK_EVERY_S,
        priority: int = 0,
        metadata: Json = None,
        address: str | None = None,
        changes: str | None = None,
        watch: bool = True,
        held_by: HeldBy = "connection",
    ) -> None:
        self.aio = aio.Election(
            backend.aio,
            role,
            instance_id=instance_id,
            identifier=identifier,
            ttl=ttl,
            renew_every=renew_every,
            check_every=check_every,
            priority=priority,
            metadata=metadata,
            address=address,
            changes=changes,
            watch=watch,
            held_by=held_by,
        )
        super().__init__(self.aio)
        self.role = role
        self.id = self.aio.id
        self.identifier = self.aio.identifier

    @property
    def is_leader(self) -> bool:
        """Judged by the clock, at the moment of the call; from any thread, and never blocks."""
        return self.aio.is_leader

    @property
    def token(self) -> int | None:
        return self.aio.token

    @property
    def status(self) -> Status:
        return self.aio.status

    @property
    def leader_id(self) -> str | None:
        return self.aio.leader_id

    @property
    def metadata(self) -> Json:
        return self.aio.metadata

    def set_metadata(self, metadata: Json) -> None:
        portal.run(self.aio.set_metadata(metadata))

    def start(self) -> Self:
        portal.run(self.aio.start())
        return self

    def stop(self) -> None:
        portal.run(self.aio.stop())

    def elect(self, instance_id: str | None = None) -> int:
        return portal.run(self.aio.elect(instance_id))

    def wait_for_election(self, timeout: float = WAIT_FOR_ELECTION_S) -> bool:
        return portal.run(self.aio.wait_for_election(timeout))

    def wait_until_leader(self, timeout: float = WAIT_FOR_ELECTION_S) -> bool:
        return portal.run(self.aio.wait_until_leader(timeout))

    def __enter__(self) -> Self:
        portal.run(self.aio.__aenter__())
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()


_joined: dict[tuple[int, str], Election] = {}
_joining = threading.Lock()
_client: list[Client] = []


def leader_only(
    role: str | Election, *, backend: Plain | None = None, **options: Any
) -> Callable[[Callable[P, R]], Callable[P, R | None]]:
    """The function runs if this process leads `role` at the moment of the call; otherwise it is skipped and returns None.

    The first call joins the election, and waits until it is decided; from then on this process takes part until
    `stop_leader_only()`. `options` are those of `Election`; instead of a role you can pass your own election.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R | None]:
        @functools.wraps(function)
        def guarded(*args: P.args, **kwargs: P.kwargs) -> R | None:
            election = role if isinstance(role, Election) else _join(role, backend, options)
            return function(*args, **kwargs) if election.is_leader else None

        return guarded

    return decorate


def stop_leader_only() -> None:
    """Gives back all roles that `leader_only` has joined elections for."""
    with _joining:
        elections = list(_joined.values())
        _joined.clear()
        clients, _client[:] = list(_client), []
    for election in elections:
        election.stop()
    for client in clients:
        client.close()


def _join(role: str, backend: Plain | None, options: dict[str, Any]) -> Election:
    with _joining:
        if backend is None:
            if not _client:
                _client.append(Client(nodes_of_environment()))
            backend = _client[0]
        election = _joined.get((id(backend), role))
        if election is None:
            election = _joined[id(backend), role] = Election(backend, role, **options).start()
        return election
