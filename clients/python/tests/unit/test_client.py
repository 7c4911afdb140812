"""Calls against nodes that fail in every way."""

from __future__ import annotations

import asyncio
from typing import Any
from unittest.mock import patch

from eldest import Applied, Indeterminate, LeaseLost, NotFound, PreconditionFailed, Problem, RoleHeld, RoleNotHeld, Unavailable, aio
from eldest.errors import BadAnswer

from .support import ClusterCase


class Documents(ClusterCase):
    async def test_written_read_listed_and_deleted(self) -> None:
        client = self.client()
        written = await client.put("app/a b", {"n": 1})
        self.assertTrue(written.created)
        doc = await client.get("app/a b")
        self.assertEqual((doc.value, doc.rev), ({"n": 1}, written.rev))
        await client.put("app/b", None)
        self.assertEqual([doc.key async for doc in client.docs("app/")], ["app/a b", "app/b"])
        page = await client.list_docs("app/", limit=1)
        self.assertEqual((len(page.items), page.next), (1, "app/a b"))
        await client.delete("app/a b")
        with self.assertRaises(NotFound):
            await client.get("app/a b")

    async def test_written_and_deleted_in_the_name_of_a_role(self) -> None:
        client = self.client()
        grant = await client.acquire("jobs/\u00e9; 1", "a")
        await client.put("k", 1, if_role=grant)
        self.assertEqual(self.cluster.seen[-1].headers["if-role"], f"jobs%2F%C3%A9%3B%201; token={grant.token}")
        former = (grant.role, grant.token - 1)
        for refused in (client.put("k", 2, if_role=former), client.delete("k", if_role=former)):
            with self.assertRaises(RoleNotHeld) as caught:
                await refused
            self.assertEqual((caught.exception.role, caught.exception.retryable), (grant.role, False))
        self.assertEqual((await client.get("k")).value, 1)
        await client.delete("k", if_role=(grant.role, grant.token))
        asked = len(self.cluster.seen)
        with self.assertRaises(RoleNotHeld):  # a holder that has lost its role has no token
            await client.put("k", 1, if_role=("r", None))
        self.assertEqual(len(self.cluster.seen), asked)

    async def test_who_ends_a_document_with_a_lease_shows_its_secret(self) -> None:
        client = self.client()
        shown = lambda: self.cluster.seen[-1].headers.get("eldest-secret")  # noqa: E731
        grant = await client.acquire("r", "a")
        own = shown()
        self.assertTrue(own)
        await client.put("k", 1, with_role=("r", grant.token))
        self.assertEqual(shown(), own)
        await client.put("k", 1, with_process="p")
        self.assertEqual(shown(), own)
        await client.put("k", 1, with_process="p", secret="its own")
        self.assertEqual(shown(), "its own")
        await client.put("k", 1)
        self.assertIsNone(shown())

    async def test_compare_and_swap(self) -> None:
        client = self.client()
        first = await client.put("k", 1, if_absent=True)
        await client.put("k", 2, if_rev=first.rev)
        with self.assertRaises(PreconditionFailed) as caught:
            await client.put("k", 3, if_rev=first.rev)
        self.assertEqual(caught.exception.current_rev, (await client.get("k")).rev)
        with self.assertRaises(PreconditionFailed):
            await client.put("k", 3, if_absent=True)
        with self.assertRaises(PreconditionFailed):
            await client.delete("k", if_rev=first.rev)

    async def test_commands_and_batches(self) -> None:
        client = self.client()
        self.assertEqual((await client.command("CreateUser", {"name": "ada"}))["payload"], {"name": "ada"})
        applied = await client.batch([("CreateUser", {"name": "b"}), ("PutDoc", {"key": "k", "value": 1})])
        self.assertEqual(len(applied.results), 2)


    async def test_many_commands_at_once(self) -> None:
        client = self.client()
        names = ["Put", "Fly", "Busy", "Lost"] * 600
        told = await client.bulk([(name, {"n": number}) for number, name in enumerate(names)])
        for number, (name, said) in enumerate(zip(names, told, strict=True)):
            if name == "Fly":
                assert isinstance(said, Problem)
                self.assertEqual(said.code, "unknown_command")
            else:
                assert isinstance(said, Applied)
                self.assertEqual(said.results, [{"n": number}])
        self.assertEqual(len(self.cluster.state.replies), 1800)
        # Three chunks, the last one shorter, and each again for the refused commands.
        self.assertEqual(len(self.cluster.calls("POST", "/v1/commands")), 6)
        self.assertEqual(await client.bulk([]), [])

    async def test_what_is_left_of_many_when_the_time_is_over(self) -> None:
        client = self.client(deadline=0.5)
        self.cluster.fail("cut_before", "POST", "/v1/commands", times=1000)
        told = await client.bulk([("Put", {})] * 1025)
        self.assertIsInstance(told[0], Indeterminate)
        self.assertIsInstance(told[1024], Unavailable)

    async def test_a_refusal_of_the_whole_request_removes_no_doubt(self) -> None:
        client = self.client()
        call = client._transport.call

        async def revoked_later(request: Any, **more: Any) -> Any:
            if self.cluster.calls("POST", "/v1/commands"):
                self.cluster.fail("refuse_401", "POST", "/v1/commands")
            return await call(request, **more)

        with patch.object(client._transport, "call", revoked_later):
            told = await client.bulk([("Lost", {}), ("Busy", {})])
        self.assertIsInstance(told[0], Indeterminate)
        assert isinstance(told[1], Problem)
        self.assertEqual(told[1].code, "unauthorized")


class Failures(ClusterCase):
    async def write_through(self, kind: Any, times: int = 1) -> None:
        """A write meets the fault, is retried under one key, and is applied once."""
        client = self.client()
        self.cluster.fail(kind, "PUT", "/v1/docs/k", times=times)
        await client.put("k", 1, if_absent=True)
        calls = self.cluster.calls("PUT", "/v1/docs/k")
        self.assertEqual(len(calls), times + 1)
        self.assertEqual(len({call.headers["idempotency-key"] for call in calls}), 1)
        self.assertEqual(len(self.cluster.state.events), 1)

    async def test_a_connection_cut_before_the_write_was_applied(self) -> None:
        await self.write_through("cut_before")

    async def test_a_connection_cut_after_the_write_was_applied(self) -> None:
        await self.write_through("cut_after")

    async def test_refusals_are_tried_again(self) -> None:
        await self.write_through("refuse_503", 2)
        self.cluster.state.docs.clear()
        self.cluster.state.events.clear()
        self.cluster.seen.clear()
        await self.write_through("refuse_429")

    async def test_an_unknown_outcome_that_was_applied(self) -> None:
        await self.write_through("done_504")

    async def test_an_unknown_outcome_that_was_not_applied(self) -> None:
        await self.write_through("lost_504")

    async def test_what_is_not_http_is_an_unknown_outcome(self) -> None:
        await self.write_through("garbage")

    async def test_a_node_that_does_not_answer_is_left_for_another(self) -> None:
        client = self.client(deadline=60)
        self.cluster.fail("hang", "GET", "/v1/docs/k", node=0)
        with self.assertRaises(NotFound):
            await client.get("k")
        self.assertEqual([call.node for call in self.cluster.calls("GET", "/v1/docs/k")], [0, 1])

    async def test_a_node_that_does_not_even_say_that_it_lives_is_given_up(self) -> None:
        client = self.client(deadline=180)
        self.cluster.fail("hang", "PUT", "/v1/docs/k", node=0)
        self.cluster.fail("hang", "GET", "/livez", node=0)
        with patch("eldest._retry.ATTEMPT_TIMEOUT_S", 60):
            await client.put("k", 1)
        calls = self.cluster.calls("PUT", "/v1/docs/k")
        self.assertEqual([call.node for call in calls], [0, 1])
        self.assertEqual(len({call.headers["idempotency-key"] for call in calls}), 1)

    async def test_a_node_that_lives_is_waited_for(self) -> None:
        client = self.client(deadline=180)
        self.cluster.fail("hang", "PUT", "/v1/docs/k", node=0)
        with patch("eldest._retry.ATTEMPT_TIMEOUT_S", 60):
            writing = asyncio.create_task(client.put("k", 1))
            self.assertTrue(await asyncio.to_thread(self.cluster.has_seen, "GET", "/livez", 2))
        self.assertFalse(writing.done())
        self.cluster.hanging.set()
        await writing
        self.assertEqual({call.node for call in self.cluster.calls("GET", "/livez")}, {0})

    async def test_dead_nodes_are_passed_over_and_remembered(self) -> None:
        self.cluster.kill(0)
        self.cluster.kill(1)
        client = self.client()
        await client.put("k", 1)
        await client.put("k", 2)
        self.assertEqual({call.node for call in self.cluster.calls("PUT", "/v1/docs/k")}, {2})

    async def test_a_node_that_dies_between_two_calls(self) -> None:
        client = self.client()
        await client.put("k", 1)
        self.cluster.kill(0)
        await client.put("k", 2)
        self.assertEqual((await client.get("k")).value, 2)

    async def test_the_leader_that_is_named_is_asked(self) -> None:
        self.cluster.fail("refuse_421", "PUT", "/v1/docs/k", node=0)
        client = self.client()
        await client.put("k", 1)
        self.assertEqual([call.node for call in self.cluster.calls("PUT", "/v1/docs/k")], [0, 2])

    async def test_unavailable_means_surely_not_applied(self) -> None:
        client = self.client(deadline=9.0)
        self.cluster.fail("refuse_503", "PUT", "/v1/docs/k", times=1000)
        # An unanswered attempt would rightly be in doubt: each has three seconds, the last one too.
        with patch("eldest._retry.ATTEMPT_LEAST_S", 3.0), self.assertRaises(Unavailable):
            await client.put("k", 1)
        self.assertEqual(self.cluster.state.docs, {})

    async def test_indeterminate_means_maybe_applied(self) -> None:
        client = self.client(deadline=1.0)
        self.cluster.fail("done_504", "PUT", "/v1/docs/k", times=1)
        self.cluster.fail("refuse_503", "PUT", "/v1/docs/k", times=1000)
        with self.assertRaises(Indeterminate):
            await client.put("k", 1)
        self.assertEqual(self.cluster.state.docs["k"][1], 1)

    async def test_no_node_at_all_is_unavailable(self) -> None:
        for node in range(3):
            self.cluster.kill(node)
        with self.assertRaises(Unavailable):
            await self.client(deadline=1.0).put("k", 1)

    async def test_other_problems_come_as_they_are(self) -> None:
        with self.assertRaises(Problem) as caught:
            await self.client().read("/v1/nothing")
        self.assertEqual((caught.exception.code, caught.exception.status, caught.exception.retryable), ("not_found", 404, False))

    async def test_an_answer_of_another_shape_is_told_and_breaks_nothing(self) -> None:
        self.cluster.state.role = lambda role: {"role": 7}  # type: ignore[method-assign, assignment]
        with self.assertRaises(BadAnswer):
            await self.client().role("r")

    async def test_a_message_is_not_sent_twice(self) -> None:
        client = self.client()
        self.cluster.fail("cut_after", "POST", "/v1/channels/c")
        with self.assertRaises(Indeterminate):
            await client.publish("c", 1)
        self.assertEqual(self.cluster.state.messages, [("c", 1)])

    async def test_a_message_that_was_surely_not_sent_is_sent_again(self) -> None:
        self.cluster.fail("refuse_503", "POST", "/v1/channels/c")
        self.assertEqual(await self.client().publish("c", 1), 0)
        self.assertEqual(self.cluster.state.messages, [("c", 1)])

    async def test_wrong_urls_are_told_at_once(self) -> None:
        for url in ("10.0.0.1:9000", "ftp://a", "http://a/v1"):
            with self.assertRaises(ValueError):
                aio.Client([url])
        with self.assertRaises(ValueError):
            aio.Client([])

    async def test_a_closed_client_says_so(self) -> None:
        client = self.client()
        await client.close()
        with self.assertRaises(RuntimeError):
            await client.get("k")

    async def test_connections_are_used_again(self) -> None:
        client = self.client()
        for n in range(20):
            await client.put("k", n)
        idle = client._transport._pool._idle
        self.assertEqual(sum(len(connections) for connections in idle.values()), 1)


class Roles(ClusterCase):
    async def test_acquire_renew_check_and_release(self) -> None:
        client = self.client()
        grant = await client.acquire("r", "a", address="a:1", metadata={"zone": 1})
        self.assertEqual((grant.outcome, grant.leader.address, grant.leader.metadata), ("elected", "a:1", {"zone": 1}))
        again = await client.acquire("r", "a")
        self.assertEqual((again.outcome, again.token), ("already_leader", grant.token))
        self.assertGreater((await client.renew("r", "a", grant.token)).expires_in, 0)
        self.assertTrue(await client.check("r", grant.token))
        self.assertFalse(await client.check("r", grant.token - 1))
        self.assertEqual([state.role async for state in client.roles()], ["r"])
        await client.release("r", "a", grant.token)
        self.assertIsNone((await client.role("r")).leader)
        with self.assertRaises(LeaseLost):
            await client.renew("r", "a", grant.token)

    async def test_a_role_that_is_held_says_by_whom(self) -> None:
        client = self.client()
        await client.acquire("r", "a", address="a:1")
        with self.assertRaises(RoleHeld) as caught:
            await client.acquire("r", "b")
        held = caught.exception
        self.assertEqual((held.outcome, held.leader_id, held.leader_address), ("other_leader", "a", "a:1"))
        self.assertGreater(held.expires_in or 0, 0)

    async def test_the_operator_names_the_holder(self) -> None:
        client = self.client(token="secret")
        first = await client.acquire("r", "a")
        second = await client.elect("r", "b")
        self.assertGreater(second.token, first.token)
        self.assertEqual(self.cluster.calls("POST", "/elect")[0].headers["authorization"], "Bearer secret")
        with self.assertRaises(LeaseLost):
            await client.release("r", "a", first.token)

    async def test_a_release_whose_answer_was_lost_has_released(self) -> None:
        client = self.client()
        grant = await client.acquire("r", "a")
        self.cluster.fail("cut_after", "POST", "/release")
        await client.release("r", "a", grant.token)
        with self.assertRaises(LeaseLost):
            await client.release("r", "a", grant.token)

    async def test_time_is_counted_from_the_attempt_that_was_answered(self) -> None:
        times = iter(range(100))
        client = self.client(clock=lambda: float(next(times)))
        self.cluster.fail("refuse_503", "POST", "/acquire", times=2)
        self.assertEqual((await client.acquire("r", "a")).sent_at, 2.0)


class Processes(ClusterCase):
    async def test_registered_found_prolonged_and_removed(self) -> None:
        client = self.client()
        entry = await client.register("p", "cms", role="slave", capabilities={"detect": True, "off": False})
        self.assertEqual((entry.channel, entry.ttl), ("worker:slave:p", 45.0))
        self.assertEqual([p.id async for p in client.processes(capability="detect")], ["p"])
        self.assertEqual([p.id async for p in client.processes(capability="off")], [])
        self.assertEqual(await client.heartbeat("p"), 45.0)
        self.cluster.fail("cut_after", "DELETE", "/v1/processes/p")
        await client.unregister("p")
        with self.assertRaises(NotFound):
            await client.heartbeat("p")
