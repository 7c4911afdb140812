"""A fake cluster in this process: HTTP nodes over one state, which can fail in every way that a network can."""

from __future__ import annotations

import json
import re
import socket
import threading
import time
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal, cast
from urllib.parse import parse_qsl, unquote, urlsplit

from .fake_state import Answer, State, problem

Kind = Literal["cut_before", "cut_after", "refuse_503", "refuse_429", "refuse_421", "refuse_401", "lost_504", "done_504", "hang", "hang_after", "garbage"]

#: A node sends signs of life into silences like a real one, only sooner.
SILENCE_S = 0.2


@dataclass
class Fault:
    kind: Kind
    method: str
    path: str
    node: int | None
    times: int

    def meets(self, node: int, method: str, path: str) -> bool:
        return self.times > 0 and method == self.method and self.path in path and self.node in (None, node)


@dataclass
class Seen:
    node: int
    method: str
    path: str
    headers: dict[str, str]
    body: bytes


def raw(text: str) -> str:
    """JSON text, sent unchanged."""
    return f"raw {text.encode().hex()}"


def dumps(value: Any) -> str:
    return re.sub(r'"raw ([0-9a-f]+)"', lambda found: bytes.fromhex(found[1]).decode(), json.dumps(value))


class FakeCluster:
    """`with FakeCluster() as cluster:`; `cluster.urls` are the URLs of its nodes."""

    def __init__(self, nodes: int = 3) -> None:
        self.state = State()
        self.seen: list[Seen] = []
        self.faults: list[Fault] = []
        self.hanging = threading.Event()
        self.servers = [_Server(self, number) for number in range(nodes)]
        self.urls = [f"http://127.0.0.1:{server.server_port}" for server in self.servers]

    def __enter__(self) -> FakeCluster:
        for server in self.servers:
            threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.hanging.set()
        for number in range(len(self.servers)):
            self.kill(number)

    def kill(self, node: int) -> None:
        """The node's connections are cut, and its port is closed."""
        server = self.servers[node]
        if not server.dead:
            server.dead = True
            server.shutdown()
            server.server_close()
            with self.state.changed:
                self.state.changed.notify_all()

    def fail(self, kind: Kind, method: str, path: str, *, node: int | None = None, times: int = 1) -> Fault:
        fault = Fault(kind, method, path, node, times)
        self.faults.append(fault)
        return fault

    def calls(self, method: str, path: str) -> list[Seen]:
        return [seen for seen in self.seen if seen.method == method and path in seen.path]

    def has_seen(self, method: str, path: str, times: int = 1, within: float = 60.0) -> bool:
        """Waits for that many calls of the kind."""
        with self.state.changed:
            return self.state.changed.wait_for(lambda: len(self.calls(method, path)) >= times, within)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, cluster: FakeCluster, number: int) -> None:
        super().__init__(("127.0.0.1", 0), _Node)
        self.cluster = cluster
        self.number = number
        self.dead = False

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that disconnect are part of the tests."""


class _Node(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_GET(self) -> None:
        self.take()

    do_PUT = do_POST = do_DELETE = do_GET

    def take(self) -> None:
        server = cast(_Server, self.server)
        self.cluster, self.state = server.cluster, server.cluster.state
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        seen = Seen(server.number, self.command, self.path, {n.lower(): v for n, v in self.headers.items()}, body)
        with self.state.changed:
            self.cluster.seen.append(seen)
            fault = next((f for f in self.cluster.faults if f.meets(server.number, self.command, self.path)), None)
            if fault is not None:
                fault.times -= 1
            self.state.changed.notify_all()
        if server.dead:
            self.close_connection = True
        elif fault is None:
            self.answer(*self.ask(seen))
        else:
            self.fail(fault.kind, seen)

    def fail(self, kind: Kind, seen: Seen) -> None:
        if kind in ("cut_after", "done_504", "hang_after"):
            self.ask(seen)
        if kind.startswith("cut"):
            self.close_connection = True
        elif kind.startswith("hang"):
            self.cluster.hanging.wait(30)
            self.close_connection = True
        elif kind == "garbage":
            self.wfile.write(b"SMTP ready\r\n\r\n")
            self.close_connection = True
        else:
            status = int(kind[-3:])
            code = {503: "no_leader", 429: "too_many_requests", 421: "not_leader", 401: "unauthorized", 504: "outcome_unknown"}[status]
            leader = {"id": 3, "url": self.cluster.urls[-1]} if status == 421 else None
            self.answer(*problem(status, code, leader_node=leader), {})

    def ask(self, seen: Seen) -> tuple[int, Any, dict[str, str]]:
        """Acts like the cluster: a call with a key that was answered gets the same answer again."""
        key = seen.headers.get("idempotency-key")
        split = urlsplit(seen.path)
        parts = [unquote(part) for part in split.path.strip("/").split("/")]
        query = dict(parse_qsl(split.query))
        with self.state.changed:
            if key is not None and key in self.state.replies and "roles" not in parts:
                status, body, headers = self.state.replies[key]
                return status, body, headers | {"Idempotency-Replayed": "true"}
            status, body, headers = self.route(seen, parts, query)
            if key is not None and status < 300:
                self.state.replies[key] = (status, body, headers)
            return status, body, headers

    def route(self, seen: Seen, parts: list[str], query: dict[str, str]) -> tuple[int, Any, dict[str, str]]:
        if parts == ["livez"]:
            return 200, {}, {}
        lines = seen.headers.get("content-type") == "application/x-ndjson"
        body = json.loads(seen.body) if seen.body and not lines else None
        match (seen.method, parts[1], parts[2:]):
            case ("POST", "roles", [role, "acquire"]):
                return (*self.state.acquire(role, body, self.caller_has_gone), {})
            case ("POST", "roles", [role, "tie"]):
                return self.tie(role, query)
            case ("POST", "roles", [role, verb]):
                acts = {"renew": self.state.renew, "release": self.state.release, "elect": self.state.elect}
                return (*acts[verb](role, body), {})
            case ("GET", "roles", rest):
                return (*self.roles(rest, query), {})
            case (_, "processes", rest):
                return (*self.processes(seen.method, rest, body, query), {})
            case (_, "docs", rest):
                return self.docs(seen, rest, body, query)
            case ("GET", "feed", []):
                return self.stream(lambda: self.feed(seen, query))
            case ("GET", "channels", [name]):
                return self.stream(lambda: self.listen(name))
            case ("POST", "channels", [name]):
                self.state.messages.append((name, body))
                self.state.changed.notify_all()
                return 200, {"delivered": self.state.listeners.get(name, 0)}, {}
            case ("POST", "commands", []) if lines:
                return 200, b"".join(self.line(json.loads(line)) for line in seen.body.splitlines()), {}
            case ("POST", "commands", []):
                return 200, {"index": 1, "epoch": "1.1", "results" if isinstance(body, list) else "result": body}, {}
            case ("GET", "status", []):
                return 200, {"cluster": "fake"}, {}
        return (*problem(404, "not_found"), {})

    def line(self, line: dict[str, Any]) -> bytes:
        """`Fly` is no command, `Busy` is refused once and `Lost` is unknown once; all else is applied, once for each key."""
        key, name = line["idempotency_key"], line["storage_cmd"]
        said: dict[str, Any] = {"index": len(self.state.replies) + 1, "epoch": "1.1", "result": line["payload"]}
        if name == "Fly":
            said = problem(400, "unknown_command")[1]
        elif key in self.state.replies:
            said = self.state.replies[key][1]
        else:
            self.state.replies[key] = (200, said, {})
            if name == "Busy":
                said = problem(503, "no_leader")[1]
            elif name == "Lost":
                said = problem(504, "outcome_unknown")[1]
        return json.dumps(said).encode() + b"\n"

    def roles(self, rest: list[str], query: dict[str, str]) -> Answer:
        match rest:
            case []:
                held = [self.state.role(role) for role in sorted(self.state.roles) if role.startswith(query.get("prefix", ""))]
                return 200, {"items": held, "next": None}
            case [role]:
                return 200, self.state.role(role)
            case [role, "check"]:
                token = self.state.role(role)["token"]
                return 200, {"valid": str(token) == query["token"], "token": token}
        return problem(404, "not_found")

    def processes(self, method: str, rest: list[str], body: Any, query: dict[str, str]) -> Answer:
        match (method, rest):
            case ("GET", []):
                return 200, {"items": self.state.list_processes(query), "next": None}
            case ("GET", [name]):
                self.state.expire()
                return (200, self.state.shown(name)) if name in self.state.processes else problem(404, "not_found")
            case ("PUT", [name]):
                return self.state.register(name, body)
            case ("POST", [name, "heartbeat"]):
                return self.state.heartbeat(name)
            case ("DELETE", [name]):
                return self.state.unregister(name)
        return problem(404, "not_found")

    def docs(self, seen: Seen, rest: list[str], body: Any, query: dict[str, str]) -> tuple[int, Any, dict[str, str]]:
        if_match, if_role = seen.headers.get("if-match"), seen.headers.get("if-role")
        match (seen.method, rest):
            case ("GET", []):
                return 200, self.page(query), {}
            case ("GET", [key]) if key in self.state.docs:
                rev, value = self.state.docs[key]
                return 200, value, {"ETag": f'"{rev}"'}
            case ("PUT", [key]):
                return (*self.state.put(key, body, if_match, "if-none-match" in seen.headers, if_role), {})
            case ("DELETE", [key]):
                return (*self.state.delete(key, if_match, if_role), {})
        return (*problem(404, "not_found"), {})

    def page(self, query: dict[str, str]) -> dict[str, Any]:
        keys = [key for key in sorted(self.state.docs) if key.startswith(query.get("prefix", "")) and key > query.get("after", "")]
        limit = int(query.get("limit", "100"))
        items = [{"key": key, "rev": str(self.state.docs[key][0]), "value": self.state.docs[key][1]} for key in keys[:limit]]
        return {"items": items, "next": keys[limit - 1] if len(keys) > limit else None}

    def caller_has_gone(self) -> bool:
        try:
            return not self.connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        except BlockingIOError:
            return False
        except OSError:
            return True

    # Streams

    def stream(self, run: Any) -> tuple[int, dict[str, Any], dict[str, str]]:
        return -1, {"run": run}, {}

    def answer(self, status: int, body: Any, headers: dict[str, str]) -> None:
        if status == -1:
            body["run"]()
            return
        data = body if isinstance(body, bytes) else dumps(body).encode()
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(data))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def begin(self) -> None:
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.close_connection = True

    def piece(self, text: str) -> None:
        data = text.encode()
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        self.wfile.flush()

    def feed(self, seen: Seen, query: dict[str, str]) -> None:
        since = seen.headers.get("last-event-id")
        if since is not None and int(since) < self.state.feed_kept_from:
            return self.answer(*problem(410, "feed_compacted", oldest=str(self.state.feed_kept_from)), {})
        with self.state.changed:
            at = self.state.index if since is None else int(since)
        self.begin()
        self.piece(_event("bookmark", {"id": str(at), "kind": "bookmark"}))
        kinds = query["kinds"].split(",") if "kinds" in query else None
        while not cast(_Server, self.server).dead:
            with self.state.changed:
                self.state.changed.wait_for(lambda: self.state.index > at or cast(_Server, self.server).dead, SILENCE_S)
                self.state.expire()
                fresh = [event for event in self.state.events if event[0] > at]
                at = self.state.index
            for _, kind, data in fresh:
                if (kinds is None or kind in kinds) and _named(data).startswith(query.get("prefix", "")):
                    self.piece(_event(kind, data))
            self.piece(_event("bookmark", {"id": str(at), "kind": "bookmark"}))

    def tie(self, role: str, query: dict[str, str]) -> tuple[int, dict[str, Any], dict[str, str]]:
        status, body = self.state.renew(role, {"instance_id": query["instance_id"], "token": int(query["token"])})
        return (status, body, {}) if status != 200 else self.stream(lambda: self.tied(body))

    def tied(self, body: dict[str, Any]) -> None:
        """Stays open until the server ends: only real nodes act on its end."""
        self.begin()
        self.piece(_event("tied", {"kind": "tied", **body}))
        while not cast(_Server, self.server).dead:
            with self.state.changed:
                self.state.changed.wait_for(lambda: cast(_Server, self.server).dead, SILENCE_S)
            self.piece(":\n\n")

    def listen(self, name: str) -> None:
        with self.state.changed:
            at = len(self.state.messages)
            self.state.listeners[name] = self.state.listeners.get(name, 0) + 1
        try:
            self.begin()
            self.piece(":\n\n")
            while not cast(_Server, self.server).dead:
                with self.state.changed:
                    self.state.changed.wait_for(lambda: len(self.state.messages) > at or cast(_Server, self.server).dead, SILENCE_S)
                    fresh, at = self.state.messages[at:], len(self.state.messages)
                for to, message in fresh:
                    if to == name:
                        self.piece(f"event: message\ndata: {dumps(message)}\n\n")
                self.piece(":\n\n")
        finally:
            with self.state.changed:
                self.state.listeners[name] -= 1


def _event(kind: str, data: dict[str, Any]) -> str:
    return f"id: {data['id']}\nevent: {kind}\ndata: {dumps(data)}\n\n"


def _named(data: dict[str, Any]) -> str:
    return str(data.get("key") or data.get("process") or data.get("role") or "")


def until(condition: Any, within: float = 60.0) -> bool:
    """For plain threads: checks again until it is true."""
    ends = time.monotonic() + within
    while time.monotonic() < ends:
        if condition():
            return True
        time.sleep(0.005)
    return bool(condition())
