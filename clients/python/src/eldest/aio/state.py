"""One JSON document with several writers, none of which overwrites another's change."""

from __future__ import annotations

import asyncio
import inspect
import random
from collections.abc import Awaitable, Callable

from .._retry import Backoff
from ..errors import NotFound, PreconditionFailed, RoleNotHeld
from ..models import Json, Written
from .broker import Broker
from .client import Client

__all__ = ["StateDoc", "UPDATE_TRIES"]

#: Each failure means that another writer succeeded; so many in a row mean a document that is too busy for this.
UPDATE_TRIES = 16


class StateDoc:
    """`default` is the value that `update` begins with if the document does not exist yet.

    With a `broker`, every write is made in its name: a broker that was replaced, and does not know it yet, changes
    nothing.
    """

    def __init__(self, client: Client, key: str, *, default: Json = None, broker: Broker | None = None) -> None:
        self._client = client
        self.key = key
        self._default = default
        self._broker = broker

    async def read(self) -> tuple[Json, str | None]:
        """The value and its revision; the default and None if the document does not exist."""
        try:
            doc = await self._client.get(self.key)
        except NotFound:
            return self._default, None
        return doc.value, doc.rev

    async def create_if_not_exists(self, value: Json) -> bool:
        """Whether this call has created it."""
        try:
            await self.swap(value, None)
        except PreconditionFailed:
            return False
        return True

    async def swap(self, value: Json, rev: str | None) -> Written:
        """Writes if the document still has that revision (None: if it does not exist); otherwise raises `PreconditionFailed`."""
        broker = self._broker
        holder = None if broker is None else (broker.role, broker.token)
        try:
            return await self._client.put(self.key, value, if_rev=rev, if_absent=rev is None, if_role=holder)
        except RoleNotHeld:
            if broker is not None and holder is not None:
                broker.refused(holder[1])
            raise

    async def update(self, change: Callable[[Json], Json | Awaitable[Json]]) -> Json:
        """Reads, changes and swaps until no other change comes between; returns the value written.

        `change` may be called several times, and must do nothing but return the new value. `PreconditionFailed` after
        16 tries.
        """
        backoff = Backoff(random.Random())
        for tries_left in reversed(range(UPDATE_TRIES)):
            value, rev = await self.read()
            changed = change(value)
            if inspect.isawaitable(changed):
                changed = await changed
            try:
                await self.swap(changed, rev)
                return changed
            except PreconditionFailed:
                if not tries_left:
                    raise
            await asyncio.sleep(backoff.delay())
        raise AssertionError("the last try returns or raises")
