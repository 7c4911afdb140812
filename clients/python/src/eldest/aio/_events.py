"""Listeners. However slow they are, and even if they fail, they do not hold up the emitter."""

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

#: If a listener is this far behind, the oldest events are dropped. An event is only a notice: the state itself can be
#: asked for at any time (`is_leader`).
WAITING_MOST = 1024

#: The emitters that the running code is a listener of: it must not wait for itself.
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
        """Waits until every event so far has been delivered; returns at once if a listener calls it."""
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
            return  # removed meanwhile
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
    """Whether the event was set in time."""
    try:
        async with asyncio.timeout(timeout):
            return await event.wait()
    except TimeoutError:
        return False
