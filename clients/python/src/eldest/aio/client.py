"""The cluster's API, one method for each call. Each node accepts every call; the client finds one that answers."""

from __future__ import annotations

import asyncio
import json
import ssl
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Any, Self, TypeVar
from urllib.parse import quote, urlencode

from .._bulk import Line, chunks, take
from .._http import Request
from .._lease import steady_now
from ..errors import BadAnswer, EldestError, LeaseLost, NotFound, Problem, RoleNotHeld, Unavailable
from ..models import (
    Applied, Doc, Fields, FeedEvent, Grant, IfRole, Json, Level, Page, Process, Renewal, RoleState, Written,
    doc_of, grant_of, page_of, process_of, role_of,
)
from ._streams import Channel, Feed, tied
from ._ties import HeldBy
from ._transport import DEADLINE_S, Response, Transport
from .lock import LockGuard

__all__ = ["Client"]

T = TypeVar("T")
PAGE_ITEMS = 100
_JSON = {"Content-Type": "application/json"}
_NDJSON = {"Content-Type": "application/x-ndjson"}


class Client:
    """`nodes` are the URLs of all nodes. Every call ends within `deadline` seconds (plus the time that it asks the cluster
    to wait).

    `token` is the admin credential; only `elect` needs it, and only if the cluster has one. `secret` is the secret that
    this client shows for its leases, 1 to 256 ASCII characters; each client draws its own by default.
    """

    def __init__(
        self,
        nodes: Sequence[str],
        *,
        deadline: float = DEADLINE_S,
        token: str | None = None,
        ssl_context: ssl.SSLContext | None = None,
        clock: Callable[[], float] = steady_now,
        secret: str | None = None,
    ) -> None:
        nodes = [nodes] if isinstance(nodes, str) else nodes
        self._shown = {"Eldest-Secret": secret or uuid.uuid4().hex}
        self._secret_is_named = secret is not None
        self._transport = Transport(nodes, token=token, context=ssl_context, deadline=deadline, clock=clock)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        await self.close()

    async def close(self) -> None:
        await self._transport.close()

    def now(self) -> float:
        return self._transport.clock()

    # Documents

    async def get(self, key: str, *, level: Level = "linear") -> Doc:
        """The document, or `NotFound`."""
        answer = await self._read(_doc(key), level=level)
        return Doc(key, _rev_of(answer), answer.json())

    async def put(
        self,
        key: str,
        value: Json,
        *,
        if_rev: str | None = None,
        if_absent: bool = False,
        if_role: IfRole | None = None,
        ttl: float | None = None,
        with_role: tuple[str, int] | None = None,
        with_process: str | None = None,
        secret: str | None = None,
    ) -> Written:
        """Raises `PreconditionFailed` if the document does not have the revision `if_rev`, or exists already
        (`if_absent`).

        The document stays until it is deleted, unless this write says when it ends: when it has not been written or
        renewed for `ttl` seconds, or with the lease of a role (its name and its token) or of a process; `secret` is
        that of a lease that another client was granted. Each write sets this again. `if_role`: write only while that
        role is held under that token, otherwise `RoleNotHeld`; a lock, an election or a broker is one.
        """
        headers = _condition(if_rev, if_absent) | _holder(if_role)
        if with_role is not None or with_process is not None:
            headers |= self._shown if secret is None else {"Eldest-Secret": secret}
        path = _asked(_doc(key), **_ending(ttl, with_role, with_process))
        fields = Fields((await self._write("PUT", path, value, headers=headers)).json())
        return Written(key, fields.text("rev"), fields.true("created"))

    async def renew_doc(self, key: str, *, if_rev: str | None = None) -> float:
        """The number of seconds that a document with a ttl will now live; `NotFound` if it has ended."""
        answer = await self._write("POST", _doc(key) + "?renew=", {}, headers=_condition(if_rev, False))
        return Fields(answer.json()).seconds("expires_in_ms")

    async def delete(self, key: str, *, if_rev: str | None = None, if_role: IfRole | None = None) -> None:
        await self._write("DELETE", _doc(key), headers=_condition(if_rev, False) | _holder(if_role))

    async def list_docs(
        self, prefix: str = "", *, limit: int = PAGE_ITEMS, after: str | None = None, level: Level = "linear"
    ) -> Page[Doc]:
        answer = await self._read("/v1/docs", prefix=prefix, limit=limit, after=after, level=level)
        return page_of(answer.json(), doc_of)

    async def docs(self, prefix: str = "", *, level: Level = "linear") -> AsyncIterator[Doc]:
        """All documents with this prefix, page by page."""
        async for doc in _all(lambda after: self.list_docs(prefix, after=after, level=level)):
            yield doc

    # Commands

    async def command(self, storage_cmd: str, payload: Mapping[str, Json]) -> Json:
        """Applies one command; returns its result."""
        answer = await self._write("POST", "/v1/commands", {"storage_cmd": storage_cmd, "payload": payload})
        return Fields(answer.json()).members.get("result")

    async def batch(self, commands: Sequence[tuple[str, Mapping[str, Json]]]) -> Applied:
        """Applies all of the commands or none."""
        body = [{"storage_cmd": name, "payload": payload} for name, payload in commands]
        fields = Fields((await self._write("POST", "/v1/commands", body)).json())
        return Applied(fields.whole("index"), fields.text("epoch"), fields.items("results"))

    async def bulk(self, commands: Sequence[tuple[str, Mapping[str, Json]]]) -> list[Applied | EldestError]:
        """Applies each command by itself, in order; returns the outcomes in the same order. `results` has one item if it
        is no batch.

        They are no transaction: a refused command does not stop those after it, and one that has to be retried may come
        after some that follow it. They travel a thousand at a time, and each thousand has the time of one call; once
        that has run out, nothing more is sent.
        """
        told: list[Applied | EldestError] = [Unavailable("it was not sent")] * len(commands)
        for chunk in chunks(commands):
            left, backoff, ends = chunk, self._transport.backoff(), self.now() + self._transport.deadline
            while left := await self._send_lines(left, told):
                delay = backoff.delay()
                if self.now() + delay >= ends:
                    for line in left:
                        told[line.place] = line.give_up()
                    return told
                await asyncio.sleep(delay)
        return told

    async def _send_lines(self, lines: list[Line], told: list[Applied | EldestError]) -> list[Line]:
        request = Request("POST", "/v1/commands", _NDJSON, b"".join(line.text for line in lines))
        try:
            # Each line has its key: twice is the same as once.
            answer = (await self._transport.call(request, write=False)).checked()
        except Unavailable as error:
            for line in lines:
                line.unknown, line.last = True, error
            return lines
        except Problem as error:
            # A refusal of the whole request says nothing about an attempt whose answer did not come.
            for line in lines:
                line.last = error
                told[line.place] = line.give_up() if line.unknown else error
            return []
        return take(lines, answer.body, told)

    async def read(self, path: str, *, level: Level | None = None, **query: str | int | None) -> Json:
        """Reads any other path: `read("/v1/users/ada")`, `read("/v1/conflicts", kind="doc")`."""
        return (await self._read(path, level=level, **query)).json()

    async def status(self) -> dict[str, Json]:
        """The cluster as the node that answers sees it."""
        return Fields(await self.read("/v1/status")).members

    # Roles

    async def acquire(
        self,
        role: str,
        instance_id: str,
        *,
        ttl: float = 30.0,
        wait: float = 0.0,
        priority: int = 0,
        address: str | None = None,
        metadata: Json = None,
        deadline: float | None = None,
    ) -> Grant:
        """The role, or `RoleHeld`. A grant that was waited for may be old when it arrives: renew before believing."""
        body = _given(address=address, metadata=metadata, wait_ms=_ms(wait) or None, priority=priority or None)
        body |= {"instance_id": instance_id, "ttl_ms": _ms(ttl)}
        answer = await self._write("POST", _role(role, "acquire"), body, headers=self._shown, wait=wait, deadline=deadline)
        return grant_of(answer.json(), answer.sent_at)

    async def renew(
        self,
        role: str,
        instance_id: str,
        token: int,
        *,
        ttl: float = 30.0,
        deadline: float | None = None,
        tie: int | None = None,
    ) -> Renewal:
        body = {"instance_id": instance_id, "token": token, "ttl_ms": _ms(ttl)} | _given(tie=tie)
        answer = await self._write("POST", _role(role, "renew"), body, headers=self._shown, deadline=deadline)
        fields = Fields(answer.json())
        return Renewal(fields.whole("token"), fields.seconds("expires_in_ms"), answer.sent_at)

    def tie(
        self, role: str, instance_id: str, token: int, *, tie: int, ttl: float = 30.0, grace: float = 1.0
    ) -> AbstractAsyncContextManager[AsyncIterator[Renewal | str]]:
        """Ties the lease to a connection to one node, under a number, for the length of an `async with`.

        When it has been closed for `grace` seconds, the node ends the lease, unless a renewal has named a greater
        number.
        """
        query = {
            "instance_id": instance_id, "token": token, "tie": tie, "ttl_ms": _ms(ttl), "grace_ms": _ms(grace),
        }  # fmt: skip
        path = f"{_role(role, 'tie')}?{urlencode(query, quote_via=quote)}"
        return tied(self._transport, Request("POST", path, self._shown), token)

    async def release(self, role: str, instance_id: str, token: int, *, deadline: float | None = None) -> None:
        body = {"instance_id": instance_id, "token": token}
        await self._once("POST", _role(role, "release"), body, deadline, gone=LeaseLost, headers=self._shown)

    async def elect(
        self, role: str, instance_id: str, *, ttl: float = 30.0, address: str | None = None, metadata: Json = None
    ) -> Grant:
        """Names the holder. Needs the admin credential; the previous holder has lost the role."""
        body = _given(address=address, metadata=metadata) | {"instance_id": instance_id, "ttl_ms": _ms(ttl)}
        answer = await self._write("POST", _role(role, "elect"), body)
        return grant_of(answer.json(), answer.sent_at)

    async def role(self, role: str) -> RoleState:
        """The holder of a role. A role that is not held can be read too; its leader is None."""
        return role_of((await self._read(_role(role))).json())

    async def roles(self, prefix: str = "") -> AsyncIterator[RoleState]:
        """The roles that are held."""

        async def page(after: str | None) -> Page[RoleState]:
            return page_of((await self._read("/v1/roles", prefix=prefix, after=after)).json(), role_of)

        async for role in _all(page):
            yield role

    async def check(self, role: str, token: int) -> bool:
        """Whether that token is the one of the role's holder now."""
        return Fields((await self._read(_role(role, "check"), token=token)).json()).true("valid")

    def lock(
        self,
        name: str,
        *,
        timeout: float = 0.0,
        ttl: float = 30.0,
        priority: int = 0,
        metadata: Json = None,
        held_by: HeldBy = "connection",
    ) -> LockGuard:
        """`async with client.lock("name", timeout=10) as guard:`"""
        return LockGuard(self, name, timeout=timeout, ttl=ttl, priority=priority, metadata=metadata, held_by=held_by)

    # Processes

    async def register(
        self,
        process_id: str,
        identifier: str,
        *,
        role: str | None = None,
        capabilities: Json = None,
        metadata: Json = None,
        ttl: float = 45.0,
        guarded: bool | None = None,
    ) -> Process:
        """Puts the process into the registry; an entry under this id is replaced.

        `guarded`: only a client that shows this client's secret may speak for the process from now on; the default if
        the client was given a secret.
        """
        body = {"identifier": identifier, "ttl_ms": _ms(ttl)} | _given(role=role, capabilities=capabilities, metadata=metadata)
        return process_of((await self._write("PUT", _process(process_id), body, headers=self._shown_if(guarded))).json())

    async def heartbeat(self, process_id: str, *, guarded: bool | None = None) -> float:
        """The number of seconds that the entry will now live; `NotFound` if it no longer exists."""
        answer = await self._write("POST", _process(process_id) + "/heartbeat", {}, headers=self._shown_if(guarded))
        return Fields(answer.json()).seconds("expires_in_ms")

    async def unregister(self, process_id: str, *, guarded: bool | None = None, deadline: float | None = None) -> None:
        headers = self._shown_if(guarded)
        await self._once("DELETE", _process(process_id), None, deadline, gone=NotFound, headers=headers)

    def _shown_if(self, guarded: bool | None) -> dict[str, str] | None:
        return self._shown if (self._secret_is_named if guarded is None else guarded) else None

    async def process(self, process_id: str) -> Process:
        """The entry, or `NotFound`."""
        return process_of((await self._read(_process(process_id))).json())

    async def processes(
        self, *, role: str | None = None, capability: str | None = None, identifier: str | None = None
    ) -> AsyncIterator[Process]:
        async def page(after: str | None) -> Page[Process]:
            filters = {"role": role, "capability": capability, "identifier": identifier, "after": after}
            return page_of((await self._read("/v1/processes", **filters)).json(), process_of)

        async for process in _all(page):
            yield process

    # Channels and the feed

    async def publish(self, channel: str, message: Json) -> int:
        """The number of listeners that got it. After a lost answer it is not sent again: a message comes at most once."""
        request = Request("POST", f"/v1/channels/{_quoted(channel)}", _JSON, _encoded(message))
        answer = await self._transport.call_once(request)
        return Fields(answer.checked().json()).whole("delivered")

    def listen(self, channel: str, *, on_open: Callable[[], None] | None = None) -> Channel:
        """Messages from the moment of `on_open` on."""
        return Channel(self._transport, channel, on_open)

    def feed(
        self, kinds: Collection[str] = (), prefix: str = "", *, since: str | None = None, bookmarks: bool = False
    ) -> Feed:
        """Events after `since`, or from now on. Bookmarks are skipped unless they are asked for."""
        return Feed(self._transport, kinds, prefix, since, bookmarks)

    def watch(
        self,
        kinds: Collection[str],
        prefix: str,
        *,
        on_open: Callable[[], None] | None = None,
        on_break: Callable[[Exception], None] | None = None,
    ) -> Feed:
        return Feed(self._transport, kinds, prefix, None, False, on_open, on_break)

    # Common parts of all calls

    async def _read(self, path: str, **query: str | int | None) -> Response:
        return (await self._transport.call(Request("GET", _asked(path, **query)), write=False)).checked()

    async def _write(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        headers: Mapping[str, str] | None = None,
        deadline: float | None = None,
        wait: float = 0.0,
    ) -> Response:
        encoded = b"" if method == "DELETE" else _encoded(body)
        request = Request(method, path, {**(_JSON if encoded else {}), **(headers or {})}, encoded)
        return (await self._transport.call(request, write=True, deadline=deadline, wait=wait)).checked()

    async def _once(
        self,
        method: str,
        path: str,
        body: Any,
        deadline: float | None,
        gone: type[Exception],
        *,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        """Removes something. If it is gone after an attempt with an unknown outcome, that attempt has removed it."""
        encoded = b"" if body is None else _encoded(body)
        request = Request(method, path, {**(_JSON if encoded else {}), **(headers or {})}, encoded)
        answer = await self._transport.call(request, write=True, deadline=deadline)
        if answer.status >= 300 and not (answer.after_unknown and isinstance(answer.problem(), gone)):
            raise answer.problem()


def _quoted(name: str) -> str:
    return quote(name, safe="")


def _asked(path: str, **query: str | int | None) -> str:
    told = {name: value for name, value in query.items() if value is not None and value != ""}
    return path + ("?" + urlencode(told, quote_via=quote) if told else "")


def _ending(ttl: float | None, role: tuple[str, int] | None, process: str | None) -> dict[str, str | int | None]:
    if role is not None and process is not None:
        raise ValueError("a document ends with one lease: that of a role, or that of a process")
    name, token = (None, None) if role is None else (f"role/{role[0]}", role[1])
    ends_with = f"process/{process}" if process is not None else name
    return {"ttl_ms": None if ttl is None else _ms(ttl), "with": ends_with, "token": token}


def _doc(key: str) -> str:
    return f"/v1/docs/{_quoted(key)}"


def _role(role: str, verb: str = "") -> str:
    return f"/v1/roles/{_quoted(role)}" + (f"/{verb}" if verb else "")


def _process(process_id: str) -> str:
    return f"/v1/processes/{_quoted(process_id)}"


def _encoded(value: Json) -> bytes:
    """Raises `ValueError` for values that JSON does not have: NaN, the infinities."""
    return json.dumps(value, allow_nan=False, separators=(",", ":")).encode()


def _ms(seconds: float) -> int:
    return round(seconds * 1000)


def _given(**members: Json) -> dict[str, Json]:
    return {name: value for name, value in members.items() if value is not None}


def _condition(if_rev: str | None, if_absent: bool) -> dict[str, str]:
    if if_rev is not None and if_absent:
        raise ValueError("a document that is absent has no revision")
    if if_absent:
        return {"If-None-Match": "*"}
    return {} if if_rev is None else {"If-Match": f'"{if_rev}"'}


def _holder(if_role: IfRole | None) -> dict[str, str]:
    """The header that names the role. A holder that has lost its role, such as an election, has no token any more."""
    if if_role is None:
        return {}
    role, token = if_role if isinstance(if_role, tuple) else (if_role.role, if_role.token)
    if token is None:
        raise RoleNotHeld("role_not_held", 412, f"{role} is not held here any more", members={"role": role})
    return {"If-Role": f"{_quoted(role)}; token={token:d}"}


def _rev_of(answer: Response) -> str:
    tag = answer.headers.get("etag", "")
    if len(tag) < 3 or not (tag.startswith('"') and tag.endswith('"')):
        raise BadAnswer("a document without a revision")
    return tag[1:-1]


async def _all(page: Callable[[str | None], Awaitable[Page[T]]]) -> AsyncIterator[T]:
    after: str | None = None
    while True:
        found = await page(after)
        for item in found.items:
            yield item
        if found.next is None:
            return
        after = found.next
