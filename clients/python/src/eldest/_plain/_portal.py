"""The one event loop, in a daemon thread, on which the whole blocking form runs.

So renewals go on while the program blocks, and the logic is exactly that of the asyncio form.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import os
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from typing import Any, TypeVar

T = TypeVar("T")


class Portal:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None

    def loop(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                threading.Thread(target=self._loop.run_forever, name="eldest", daemon=True).start()
            return self._loop

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Blocks until it is done; an interrupt cancels it."""
        loop = self.loop()
        if _running() is loop:
            work.close()
            raise RuntimeError("the blocking form cannot be used on its own event loop; use eldest.aio there")
        future = asyncio.run_coroutine_threadsafe(work, loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def call(self, function: Callable[[], T]) -> T:
        async def on_the_loop() -> T:
            return function()

        return self.run(on_the_loop())

    def iterate(self, items: AsyncIterator[T]) -> Iterator[T]:
        while True:
            try:
                item = self.run(_next(items))
            except StopAsyncIteration:
                return
            yield item

    def forget(self) -> None:
        """In a forked child the thread is gone: objects made before the fork must not be used there."""
        self._lock = threading.Lock()
        self._loop = None


portal = Portal()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=portal.forget)


async def _next(items: AsyncIterator[T]) -> T:
    return await anext(items)


def _running() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def in_a_thread(listener: Callable[..., Any]) -> Callable[..., Coroutine[Any, Any, None]]:
    """The listener, run where it may block; a coroutine function gets its own loop there."""

    async def told(*args: Any) -> None:
        context = contextvars.copy_context()
        await asyncio.get_running_loop().run_in_executor(None, context.run, _tell, listener, args)

    return told


def _tell(listener: Callable[..., Any], args: tuple[Any, ...]) -> None:
    result = listener(*args)
    if inspect.iscoroutine(result):
        asyncio.run(result)
