"""Listeners of the blocking form. They run in a separate thread, one after the other, and may block."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, overload

from ..aio._events import Emitter
from ._portal import in_a_thread

Listener = TypeVar("Listener", bound=Callable[..., Any])


class Events:
    def __init__(self, emitter: Emitter) -> None:
        self._emitter = emitter
        self._wrapped: list[tuple[str, Callable[..., Any], Callable[..., Any]]] = []

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

    def _add(self, event: str, listener: Any, once: bool) -> Any:
        if listener is None:
            return lambda listener: self._add(event, listener, once)
        wrapped = in_a_thread(listener)
        (self._emitter.once if once else self._emitter.on)(event, wrapped)
        self._wrapped.append((event, listener, wrapped))
        return listener

    def off(self, event: str, listener: Callable[..., Any]) -> None:
        for entry in [entry for entry in self._wrapped if entry[:2] == (event, listener)]:
            self._wrapped.remove(entry)
            self._emitter.off(event, entry[2])
