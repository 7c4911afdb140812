"""Listeners. Whatever they do, and however long it takes them, it does not hold up what tells them."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections import deque
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from typing import Any, TypeVar, overload

Listener = TypeVar("Listener", bound=Callable[..., Any])

log = logging.getLogger("eldest")

#: A listener that is this far behind is told no more of what is oldest. What counts can be asked for at any
#: time (`is_leader`); an event is word of it.
WAITING_MOST = 1024

#: The emitters of whose listeners the running code is one: such a listener must not wait for itself.
_telling: ContextVar[frozenset[int]] = ContextVar("eldest_telling", default=frozenset())


class Emitter:
    """Named events; listeners are functions or coroutine functions, called one after the other, in order."""

    def __init__(self, names: Iterable[str]) -> None:
        self._names = frozenset(names)
        self._listeners: dict[str, list[tuple[Callable[..., Any], bool]]] = {}
        self._waiting: deque[tuple[str, tuple[Any, ...]]] = deque(maxlen=WAITING_MOST)
        self._teller: asyncio.Task[None] | None = None

    @overload
    def on(self, event: str) -> Callable[[Listener], Listener]: ...
    @overload
    def on(self, event: str, listener: Listener) -> Listener: ...
    def on(self, event: str, listener: Any = None) -> Any:
        """Also as a decorator: `@election.on("leader_lost")`."""
        return self._add(event, listener, once=False)

    @overload
    def once(self, event: str) -> Callable[[Listener], Listener]: ...
    @overload
    def once(self, event: str, listener: Listener) -> Listener: ...
    def once(self, event: str, listener: Any = None) -> Any:
        return self._add(event, listener, once=True)

    def off(self, event: str, listener: Callable[..., Any]) -> None:
        self._listeners[event] = [entry for entry in self._of(event) if entry[0] != listener]

    def emit(self, event: str, *args: Any) -> None:
        self._of(event)
        self._waiting.append((event, args))
        if self._teller is None or self._teller.done():
            self._teller = asyncio.get_running_loop().create_task(self._tell())

    async def told(self) -> None:
        """Until every event so far has been told; at once when a listener asks."""
        while self._teller is not None and not self._teller.done() and id(self) not in _telling.get():
            await asyncio.wait([self._teller])

    def _of(self, event: str) -> list[tuple[Callable[..., Any], bool]]:
        if event not in self._names:
            raise ValueError(f"no event is called {event!r}; there are {', '.join(sorted(self._names))}")
        return self._listeners.setdefault(event, [])

    def _add(self, event: str, listener: Any, once: bool) -> Any:
        listeners = self._of(event)
        if listener is None:
            return lambda listener: self._add(event, listener, once)
        self._listeners[event] = [*listeners, (listener, once)]
        return listener

    async def _tell(self) -> None:
        _telling.set(_telling.get() | {id(self)})
        while self._waiting:
            event, args = self._waiting.popleft()
            for entry in self._of(event):
                await self._tell_one(event, entry, args)

    async def _tell_one(self, event: str, entry: tuple[Callable[..., Any], bool], args: tuple[Any, ...]) -> None:
        listener, once = entry
        if entry not in self._of(event):
            return  # taken off meanwhile
        if once:
            self.off(event, listener)
        try:
            told = listener(*args)
            if inspect.isawaitable(told):
                await told
        except Exception as error:
            log.exception("a listener of %s failed", event)
            if event != "error" and "error" in self._names:
                self.emit("error", error)


async def within(timeout: float, event: asyncio.Event) -> bool:
    """Whether it was set in time."""
    try:
        async with asyncio.timeout(timeout):
            return await event.wait()
    except TimeoutError:
        return False
