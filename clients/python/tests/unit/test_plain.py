"""The blocking form: the same verbs, from threads."""

from __future__ import annotations

import inspect
import os
import threading
import unittest
from typing import Any
from unittest.mock import patch

import eldest
from eldest import aio

from .fake import FakeCluster, until
from .support import PATIENCE


class Plain(unittest.TestCase):
    def setUp(self) -> None:
        self.cluster = self.enterContext(FakeCluster())
        self.client = self.enterContext(eldest.Client(self.cluster.urls))

    def test_documents_roles_and_processes(self) -> None:
        client = self.client
        written = client.put("app/k", {"n": 1})
        self.assertEqual(client.get("app/k").rev, written.rev)
        self.assertEqual([doc.key for doc in client.docs("app/")], ["app/k"])
        self.assertEqual(len(client.list_docs("app/").items), 1)
        client.delete("app/k", if_rev=written.rev)
        grant = client.acquire("r", "a")
        client.renew("r", "a", grant.token)
        self.assertTrue(client.check("r", grant.token))
        self.assertEqual([state.role for state in client.roles()], ["r"])
        client.release("r", "a", grant.token)
        self.assertEqual(client.elect("r", "b").leader.instance_id, "b")
        self.assertEqual(client.role("r").leader, eldest.Leader("b"))
        client.register("p", "cms")
        self.assertGreater(client.heartbeat("p"), 0)
        self.assertEqual([client.process("p").id], [process.id for process in client.processes()])
        client.unregister("p")
        self.assertEqual(client.command("CreateUser", {"name": "a"})["storage_cmd"], "CreateUser")
        self.assertEqual(len(client.batch([("CreateUser", {"name": "a"})]).results), 1)
        self.assertEqual(client.status()["cluster"], "fake")
        with self.assertRaises(eldest.NotFound):
            client.read("/v1/nothing")

    def test_election_with_listeners_that_block(self) -> None:
        first, second = eldest.Election(self.client, "r"), eldest.Election(self.client, "r", identifier="me")
        told, go_on = threading.Event(), threading.Event()

        @second.on("leader_acquired")
        def acquired(token: int) -> None:
            told.set()
            go_on.wait(PATIENCE)

        first.start()
        second.start()
        self.assertEqual((first.is_leader, second.is_leader, second.identifier), (True, False, "me"))
        first.stop()
        self.assertTrue(told.wait(PATIENCE))
        self.assertTrue(second.wait_until_leader() and second.wait_for_election())
        go_on.set()
        second.stop()
        self.assertEqual(second.status, "stopped")

    def test_a_listener_may_stop_the_election(self) -> None:
        election, stopped = eldest.Election(self.client, "r"), threading.Event()
        election.on("leader_acquired", lambda token: (election.stop(), stopped.set()))
        election.start()
        self.assertTrue(stopped.wait(PATIENCE))

    def test_a_listener_may_be_a_coroutine_and_may_be_taken_off(self) -> None:
        election = eldest.Election(eldest.MemoryBackend(), "r")
        heard: list[Any] = []

        async def acquired(token: int) -> None:
            heard.append(token)

        election.on("leader_acquired", acquired)
        election.once("new_state", heard.append)
        election.on("leader_lost", acquired)
        election.off("leader_lost", acquired)
        token = election.start().token
        election.stop()
        self.assertEqual(heard, [token, "leader"])

    def test_one_shot_and_leader_only(self) -> None:
        with eldest.Election(self.client, "daily-report") as election:
            self.assertTrue(election.is_leader)
            with eldest.Election(self.client, "daily-report") as other:
                self.assertFalse(other.is_leader)

        @eldest.leader_only("aggregation", backend=self.client)
        def aggregate(number: int) -> int:
            return number + 1

        self.assertEqual(aggregate(1), 2)
        with eldest.Election(self.client, "taken"):
            skipped = eldest.leader_only("taken", backend=self.client)(lambda: 1)
            self.assertIsNone(skipped())
        eldest.stop_leader_only()
        self.assertIsNone(self.client.role("aggregation").leader)

    def test_leader_only_with_the_cluster_of_the_environment(self) -> None:
        with patch.dict(os.environ, {"ELDEST_NODES": ",".join(self.cluster.urls)}):
            self.assertEqual(eldest.leader_only("r")(lambda: "ran")(), "ran")
        eldest.stop_leader_only()
        with patch.dict(os.environ, {"ELDEST_NODES": ""}), self.assertRaises(RuntimeError):
            eldest.leader_only("r")(lambda: 1)()
        eldest.configure(self.cluster.urls)
        self.assertEqual(eldest.leader_only("r")(lambda: "ran")(), "ran")
        eldest.stop_leader_only()
        eldest.configure([])

    def test_lock(self) -> None:
        with self.client.lock("l") as guard:
            self.assertTrue(guard.held and guard.token and not guard.lost)
            with self.assertRaises(eldest.RoleHeld), self.client.lock("l"):
                self.fail("two hold it")
            self.assertFalse(guard.wait_lost(0.01))
        self.assertTrue(guard.lost and guard.wait_lost(0))

    def test_registry(self) -> None:
        with eldest.Election(self.client, "r") as election, eldest.Registry(self.client, "cms", election=election) as one:
            removed: list[str] = []
            one.on("slave_removed", removed.append)
            self.assertTrue(self.cluster.has_seen("GET", "/v1/feed"))
            with eldest.Registry(self.client, "cms") as two:
                master = one.master()
                self.assertEqual(master and master.id, election.id)
                self.assertEqual([process.id for process in one.slaves()], [two.id])
                self.assertEqual((one.slave_count(), len(one.all()), len(one.by_role("master"))), (1, 2, 1))
                self.assertTrue(one.slave(two.id) and one.get(two.id) and not one.by_capability("x"))
                two.heartbeat()
            self.assertTrue(until(lambda: removed == [two.id]))

    def test_broker_and_state(self) -> None:
        first, second = eldest.Broker(self.client, "a:1"), eldest.Broker(self.client, "b:1")
        self.assertEqual(first.try_elect().status, "elected")
        self.assertEqual(second.try_elect(), eldest.ElectionResult("other_leader", "a:1"))
        self.assertTrue(first.check_leadership() and first.is_leader and first.token)
        state = eldest.StateDoc(self.client, "queue", default=[])
        self.assertTrue(state.create_if_not_exists([]))
        self.assertEqual(state.update(lambda jobs: [*jobs, 1]), [1])
        value, rev = state.read()
        state.swap([*value, 2], rev)
        mine = eldest.StateDoc(self.client, "queue", broker=first)
        self.assertEqual(mine.update(lambda jobs: [*jobs, 3]), [1, 2, 3])
        with self.client.lock("l") as guard:
            self.client.put("k", 1, if_role=guard)
            self.client.delete("k", if_role=guard)
        with self.cluster.state.changed:
            self.cluster.state.lose(first.role, "expired")
        with self.assertRaises(eldest.RoleNotHeld):
            mine.update(lambda jobs: [])
        self.assertFalse(first.is_leader)
        first.stop()
        self.assertTrue(second.try_elect().leads)
        second.stop()

    def test_feed_and_channels(self) -> None:
        first = self.client.put("a", 1)
        self.client.put("b", 2)
        with self.client.feed(["change"], since=first.rev) as feed:
            self.assertEqual(next(feed).data["key"], "b")
            self.assertEqual(feed.last_id, "2")
        with self.client.listen("c") as channel:
            self.assertEqual(self.client.publish("c", {"job": 17}), 1)
            self.assertEqual(next(channel), {"job": 17})

    def test_closing_a_reader_ends_its_iteration(self) -> None:
        feed = self.client.feed(["change"])
        reading = threading.Thread(target=lambda: list(feed))
        reading.start()
        self.assertTrue(self.cluster.has_seen("GET", "/v1/feed"))
        feed.close()
        reading.join(PATIENCE)
        self.assertFalse(reading.is_alive())

    def test_errors_come_through(self) -> None:
        self.cluster.fail("cut_after", "PUT", "/v1/docs/k", times=1000)
        with eldest.Client(self.cluster.urls, deadline=0.2) as client, self.assertRaises(eldest.Indeterminate):
            client.put("k", 1)

    def test_memory(self) -> None:
        backend = eldest.MemoryBackend()
        lost = threading.Event()
        election = eldest.Election(backend, "r").start()
        election.on("leader_lost", lost.set)
        backend.expire("r")
        self.assertTrue(lost.wait(PATIENCE))
        self.assertTrue(election.wait_until_leader())
        election.set_metadata({"a": 1})
        self.assertEqual((backend.role("r").leader, election.metadata), (eldest.Leader(election.id, None, {"a": 1}), {"a": 1}))
        self.assertEqual((election.elect(), election.leader_id), (election.token, election.id))
        election.stop()

    @unittest.skipUnless(hasattr(os, "fork"), "this system does not fork")
    def test_a_forked_child_has_a_loop_of_its_own(self) -> None:
        child = os.fork()
        if child == 0:
            with eldest.Client(self.cluster.urls) as client:
                client.put("from-the-child", 1)
            os._exit(0)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        self.assertEqual(self.client.get("from-the-child").value, 1)


class SameVerbs(unittest.TestCase):
    """Both forms have the same verbs, names and defaults."""

    #: The asyncio form alone has these: they make a backend of it, or only an event loop needs them.
    ALONE = {"Client": {"now", "watch", "tie"}, "Election": {"role_was_acquired", "role_was_lost", "look_again", "emit", "told"}}
    PARAMETERS_ALONE = {"clock", "deadline", "on_open", "instance_id", "tie"}

    def verbs(self, kind: type) -> set[str]:
        return {name for name in dir(kind) if not name.startswith("_")} - {"aio"}

    def test_both_forms_have_the_same_verbs_and_defaults(self) -> None:
        for name in ("Client", "Election", "Registry", "Broker", "StateDoc"):
            plain, asynchronous = getattr(eldest, name), getattr(aio, name)
            alone = self.ALONE.get(name, set()) | {"emit", "told"}
            self.assertEqual(self.verbs(asynchronous) - alone, self.verbs(plain), name)
            for verb in self.verbs(plain) | {"__init__"}:
                self.same_parameters(name, verb, getattr(plain, verb), getattr(asynchronous, verb))

    def same_parameters(self, name: str, verb: str, plain: Any, asynchronous: Any) -> None:
        if isinstance(plain, property):
            return
        one, other = (self.parameters(function) for function in (plain, asynchronous))
        self.assertEqual(one, {key: value for key, value in other.items() if key in one}, f"{name}.{verb}")
        self.assertLessEqual(set(other) - set(one), self.PARAMETERS_ALONE, f"{name}.{verb}")

    def parameters(self, function: Any) -> dict[str, Any]:
        return {name: p.default for name, p in inspect.signature(function).parameters.items()}
