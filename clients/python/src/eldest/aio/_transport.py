"""Calls that find a node that answers, within a deadline; and answers without an end."""

from __future__ import annotations

import asyncio
import random
import ssl
import time
import uuid
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

from .._http import Head, Request
from .._json import loads
from .._lease import steady_now
from .._retry import ATTEMPT_TIMEOUT_S, MAYBE_APPLIED, NOT_APPLIED, After, Attempt, Backoff, Course, NodeRing
from ..errors import BadAnswer, EldestError, Unavailable, problem
from ._connection import Address, Connection, Lost, NotConnected, Pool

DEADLINE_S = 10.0
#: A node may first have to catch up with the node that a reader comes from: that takes up to 10 s, like a call.
STREAM_HEAD_TIMEOUT_S = 15.0
#: If a node owes an answer for this long, it is asked whether it is alive. If it does not say so within the same time
#: again, the attempt ends.
SIGN_OF_LIFE_S = 0.5
#: The cluster sends a sign of life after every 5 s of silence: a stream that is silent for three times that long is
#: dead.
SILENCE_MOST_S = 15.0

_IDEMPOTENCY_KEY = "Idempotency-Key"


@dataclass(frozen=True, slots=True)
class Response:
    status: int
    headers: Mapping[str, str]
    body: bytes
    #: When the answered attempt was sent; the first attempt, if the answer is a replay of that one's.
    sent_at: float
    #: An earlier attempt of this call may have been applied.
    after_unknown: bool

    def json(self) -> Any:
        try:
            return loads(self.body)
        except ValueError as error:
            raise BadAnswer(f"the body of an answer {self.status} is not JSON: {self.body[:80]!r}") from error

    def checked(self) -> Response:
        """Returns itself, or raises the problem that it is."""
        if self.status < 300:
            return self
        raise self.problem()

    def problem(self) -> EldestError:
        return problem(self.status, _document(self.body))


def _document(body: bytes) -> object:
    try:
        return loads(body)
    except ValueError:
        return None


class Transport:
    def __init__(
        self,
        urls: Sequence[str],
        *,
        token: str | None,
        context: ssl.SSLContext | None,
        deadline: float,
        clock: Callable[[], float] = steady_now,
    ) -> None:
        for url in urls:
            Address.of(url)  # raises here if a URL is wrong
        self.ring = NodeRing(urls)
        self.clock = clock
        self.deadline = deadline
        self._pool = Pool(context, time.monotonic)
        self._rng = random.Random()
        self._common = {"Accept": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})

    def backoff(self) -> Backoff:
        return Backoff(self._rng)

    async def close(self) -> None:
        await self._pool.close()

    async def call(
        self, request: Request, *, write: bool, deadline: float | None = None, wait: float = 0.0
    ) -> Response:
        """The final answer, with any status. `wait` is how long the cluster was asked to wait before it answers."""
        headers = self._common | dict(request.headers)
        if write:
            headers.setdefault(_IDEMPOTENCY_KEY, uuid.uuid4().hex)
        course = Course(self.ring, self._rng, time.monotonic(), deadline or self.deadline, wait, write)
        # A call that waits has time.
        watched = not wait and len(self.ring) > 1
        return await self._run(course, replace(request, headers=headers), again=True, watched=watched)

    async def _run(self, course: Course, request: Request, *, again: bool, watched: bool = False) -> Response:
        """`again`: whether an attempt may follow one that may have been applied. `watched`: an attempt ends if its node
        stands still."""
        sending = _Sending(self.clock)
        while (attempt := course.next(time.monotonic())) is not None:
            outcome = await self._attempt(attempt, request, sending, watched)
            if isinstance(outcome, Response):
                course.answered(attempt.node)
                return replace(outcome, after_unknown=course.unknown)
            delay = course.failed(time.monotonic(), attempt.node, outcome.after, outcome.why, outcome.leader)
            if delay is None or (course.unknown and not again):
                break
            await asyncio.sleep(delay)
        raise course.give_up()

    async def call_once(self, request: Request) -> Response:
        """For calls that must not be done twice and have no key: retried only if surely not sent or not done."""
        course = Course(self.ring, self._rng, time.monotonic(), self.deadline, 0.0, write=True)
        return await self._run(course, replace(request, headers=self._common | dict(request.headers)), again=False)

    async def _attempt(self, attempt: Attempt, request: Request, sending: _Sending, watched: bool) -> Response | _Failed:
        sending.sent = False
        try:
            async with asyncio.timeout(attempt.timeout):
                exchange = self._exchange(attempt.node, request, sending)
                return await (self._while_it_lives(attempt.node, exchange) if watched else exchange)
        except NotConnected as error:
            return _Failed(After.NOT_SENT, error)
        except Lost as error:
            return _Failed(After.UNKNOWN, error)
        except TimeoutError:
            after = After.UNKNOWN if sending.sent else After.NOT_SENT
            return _Failed(after, f"{attempt.node} did not answer within {attempt.timeout:.1f} s")

    async def _while_it_lives(self, node: str, exchange: Coroutine[Any, Any, Response | _Failed]) -> Response | _Failed:
        """A machine that stands still accepts calls and answers none: raises `Lost` when it does not answer /livez either."""
        answer = asyncio.create_task(exchange)
        try:
            while not (await asyncio.wait({answer}, timeout=SIGN_OF_LIFE_S))[0]:
                sign = asyncio.create_task(self._sign_of_life(node))
                await asyncio.wait({answer, sign}, return_when=asyncio.FIRST_COMPLETED)
                if not sign.done():
                    sign.cancel()
                elif not sign.result() and not answer.done():
                    raise Lost(f"{node} does not answer /livez")
            return answer.result()
        finally:
            # The connection of the call is closed before anything else is done.
            answer.cancel()
            await asyncio.wait({answer})

    async def _sign_of_life(self, node: str) -> bool:
        connection: Connection | None = None
        try:
            async with asyncio.timeout(SIGN_OF_LIFE_S):
                connection = await self._pool.take(node)
                await connection.exchange(Request("GET", "/livez"))
                await connection.whole_body()
        except (NotConnected, Lost, TimeoutError):
            return False
        finally:
            if connection is not None:
                self._pool.give_back(node, connection)
        return True

    async def _exchange(self, node: str, request: Request, sending: _Sending) -> Response | _Failed:
        connection = await self._pool.take(node)
        try:
            sending.now()
            head = await connection.exchange(request)
            body = await connection.whole_body()
        finally:
            self._pool.give_back(node, connection)
        if head.status in NOT_APPLIED | MAYBE_APPLIED:
            return _refused(head, body)
        replayed = head.headers.get("idempotency-replayed") == "true"
        sent_at = sending.first if replayed else sending.last
        return Response(head.status, head.headers, body, sent_at, after_unknown=False)

    @asynccontextmanager
    async def line(self, request: Request) -> AsyncIterator[tuple[float, AsyncIterator[bytes]]]:
        """A stream to a node other than the one that answers calls, and when it was asked for. `Unavailable` if it surely
        was not opened."""
        node = self.ring.beside()
        headers = self._common | {"Accept": "text/event-stream"} | dict(request.headers)
        try:
            connection = await self._pool.take(node)
        except NotConnected as error:
            raise Unavailable(f"nothing was opened: {error}") from error
        try:
            sent_at = self.clock()
            async with asyncio.timeout(ATTEMPT_TIMEOUT_S):
                head = await connection.exchange(replace(request, headers=headers))
                if head.status != 200:
                    raise problem(head.status, _document(await connection.whole_body()))
            yield sent_at, _pieces(connection)
        except Lost as error:
            raise StreamBroken(str(error)) from error
        finally:
            self._pool.give_back(node, connection)

    @asynccontextmanager
    async def stream(self, node: str, request: Request) -> AsyncIterator[AsyncIterator[bytes]]:
        """The body of an endless answer of that node. Raises `StreamBroken`, or the problem that the node answers with."""
        request = replace(request, headers=self._common | {"Accept": "text/event-stream"} | dict(request.headers))
        connection: Connection | None = None
        try:
            async with asyncio.timeout(STREAM_HEAD_TIMEOUT_S):
                connection = await self._pool.take(node)
                head = await connection.exchange(request)
                if head.status != 200:
                    body = await connection.whole_body()
                    raise problem(head.status, _document(body))
            yield _pieces(connection)
        except (NotConnected, Lost, TimeoutError) as error:
            raise StreamBroken(str(error) or f"{node} was silent") from error
        finally:
            if connection is not None:
                self._pool.give_back(node, connection)


class StreamBroken(EldestError):
    """A stream ended before its reader did. The reader goes on at another node."""


async def _pieces(connection: Connection) -> AsyncIterator[bytes]:
    while True:
        async with asyncio.timeout(SILENCE_MOST_S):
            piece = await connection.piece()
        if not piece:
            return
        yield piece


class _Sending:
    """When a call's attempts were sent, by the clock of leases."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._first: float | None = None
        self.last = 0.0
        self.sent = False

    def now(self) -> None:
        self.sent = True
        self.last = self._clock()
        if self._first is None:
            self._first = self.last

    @property
    def first(self) -> float:
        return self.last if self._first is None else self._first


@dataclass(frozen=True, slots=True)
class _Failed:
    after: After
    why: BaseException | str
    leader: str | None = None


def _refused(head: Head, body: bytes) -> _Failed:
    why = problem(head.status, _document(body))
    after = After.NOT_APPLIED if head.status in NOT_APPLIED else After.UNKNOWN
    leader = why.leader_url if head.status == 421 else None
    return _Failed(after, why, leader)
