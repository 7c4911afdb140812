"""Functions that run only where this process leads."""

from __future__ import annotations

import asyncio
import functools
import os
from collections.abc import Awaitable, Callable
from typing import Any, ParamSpec, TypeVar
from weakref import WeakKeyDictionary

from ..backend import Backend
from .client import Client
from .election import Election

__all__ = ["NODES_VARIABLE", "configure", "leader_only", "nodes_of_environment", "stop_leader_only"]

P = ParamSpec("P")
R = TypeVar("R")

NODES_VARIABLE = "ELDEST_URL"
#: The former name of the same variable.
OLDER_VARIABLE = "ELDEST_NODES"

#: One election for each role, backend and event loop: all functions of a role run in the same process.
_elections: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[tuple[int, str], asyncio.Task[Election]]] = WeakKeyDictionary()
_clients: WeakKeyDictionary[asyncio.AbstractEventLoop, Client] = WeakKeyDictionary()
_nodes: list[str] = []


def configure(nodes: list[str]) -> None:
    """Sets the cluster for functions that name none; without it, `ELDEST_URL` or `ELDEST_NODES` in the environment names it."""
    _nodes[:] = nodes


def nodes_of_environment() -> list[str]:
    named = os.environ.get(NODES_VARIABLE) or os.environ.get(OLDER_VARIABLE) or ""
    nodes = _nodes or [url for url in named.split(",") if url]
    if not nodes:
        raise RuntimeError(f"name the cluster: eldest.configure([...]), a client, or {NODES_VARIABLE}=http://a:9000,http://b:9000")
    return nodes


def leader_only(
    role: str | Election, *, backend: Backend | None = None, **options: Any
) -> Callable[[Callable[P, Awaitable[R]]], Callable[P, Awaitable[R | None]]]:
    """The function runs if this process leads `role` at the moment of the call; otherwise it is skipped and returns None.

    The first call joins the election, and waits until it is decided; from then on this process takes part until
    `stop_leader_only()`. `options` are those of `Election`; instead of a role you can pass your own election.
    """

    def decorate(function: Callable[P, Awaitable[R]]) -> Callable[P, Awaitable[R | None]]:
        @functools.wraps(function)
        async def guarded(*args: P.args, **kwargs: P.kwargs) -> R | None:
            election = role if isinstance(role, Election) else await _joined(role, backend, options)
            return await function(*args, **kwargs) if election.is_leader else None

        return guarded

    return decorate


async def stop_leader_only() -> None:
    """Gives back all roles that `leader_only` has joined elections for on this event loop."""
    loop = asyncio.get_running_loop()
    for joining in _elections.pop(loop, {}).values():
        await (await joining).stop()
    if (client := _clients.pop(loop, None)) is not None:
        await client.close()


async def _joined(role: str, backend: Backend | None, options: dict[str, Any]) -> Election:
    loop = asyncio.get_running_loop()
    if backend is None:
        backend = _clients.get(loop) or _clients.setdefault(loop, Client(nodes_of_environment()))
    joined = _elections.setdefault(loop, {})
    joining = joined.get((id(backend), role))
    if joining is None:
        joining = joined[id(backend), role] = loop.create_task(Election(backend, role, **options).start())
    return await asyncio.shield(joining)
