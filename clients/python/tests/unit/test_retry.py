"""A call's way over the nodes, and its end."""

from __future__ import annotations

import random
import unittest

from eldest import Indeterminate, Unavailable
from eldest._retry import BACKOFF_FIRST_S, BACKOFF_MOST_S, After, Backoff, Course, NodeRing

NODES = ["http://a:1", "http://b:1", "http://c:1"]


def course(*, write: bool = True, deadline: float = 10.0, wait: float = 0.0) -> tuple[Course, NodeRing]:
    ring = NodeRing(NODES)
    return Course(ring, random.Random(7), 0.0, deadline, wait, write), ring


class Retry(unittest.TestCase):
    def asked(self, run: Course, now: float = 0.0) -> str:
        attempt = run.next(now)
        assert attempt is not None
        return attempt.node

    def test_dead_nodes_are_passed_over_at_once_but_each_only_once(self) -> None:
        run, _ = course()
        delays = []
        for node in NODES:
            self.assertEqual(self.asked(run), node)
            delays.append(run.failed(0.0, node, After.NOT_SENT, "refused"))
        self.assertEqual(delays[:2], [0.0, 0.0])
        self.assertGreaterEqual(delays[2] or 0, BACKOFF_FIRST_S / 2)
        self.assertEqual(self.asked(run), NODES[0])

    def test_pauses_double_up_to_a_second_and_are_random(self) -> None:
        backoff = Backoff(random.Random(7))
        delays = [backoff.delay() for _ in range(10)]
        for number, delay in enumerate(delays):
            most = min(BACKOFF_FIRST_S * 2**number, BACKOFF_MOST_S)
            self.assertTrue(most / 2 <= delay <= most)
        self.assertGreater(len(set(delays[-4:])), 1)

    def test_a_refusal_waits_before_it_is_tried_elsewhere(self) -> None:
        run, _ = course()
        self.assertGreater(run.failed(0.0, NODES[0], After.NOT_APPLIED, "503") or 0, 0)
        self.assertEqual(self.asked(run), NODES[1])

    def test_the_leader_that_a_node_names_is_asked_next(self) -> None:
        run, ring = course()
        self.assertEqual(run.failed(0.0, NODES[0], After.NOT_APPLIED, "421", leader=NODES[2] + "/"), 0.0)
        self.assertEqual(self.asked(run), NODES[2])
        run.answered(NODES[2])
        self.assertEqual(ring.preferred, NODES[2])

    def test_nodes_that_name_each_other_are_not_asked_in_a_circle(self) -> None:
        run, _ = course()
        delays = [run.failed(0.0, NODES[at % 2], After.NOT_APPLIED, "421", leader=NODES[(at + 1) % 2]) for at in range(3)]
        self.assertEqual(delays[:2], [0.0, 0.0])
        self.assertGreater(delays[2] or 0, 0)

    def test_a_leader_that_the_client_was_not_given_is_not_asked(self) -> None:
        run, _ = course()
        run.failed(0.0, NODES[0], After.NOT_APPLIED, "421", leader="http://elsewhere:1")
        self.assertEqual(self.asked(run), NODES[1])

    def test_a_write_is_surely_not_applied_if_no_attempt_may_have_been(self) -> None:
        run, _ = course()
        run.failed(0.0, NODES[0], After.NOT_SENT, "refused")
        run.failed(0.0, NODES[1], After.NOT_APPLIED, "503")
        self.assertIsInstance(run.give_up(), Unavailable)

    def test_one_unknown_attempt_makes_the_outcome_unknown_whatever_follows(self) -> None:
        run, _ = course()
        run.failed(0.0, NODES[0], After.UNKNOWN, "cut")
        run.failed(0.0, NODES[1], After.NOT_APPLIED, "503")
        self.assertIsInstance(run.give_up(), Indeterminate)

    def test_a_read_is_never_of_unknown_outcome(self) -> None:
        run, _ = course(write=False)
        run.failed(0.0, NODES[0], After.UNKNOWN, "cut")
        self.assertIsInstance(run.give_up(), Unavailable)

    def test_the_deadline_ends_it(self) -> None:
        run, _ = course(deadline=1.0)
        self.assertIsNone(run.next(1.0))
        self.assertIsNone(run.failed(0.99, NODES[0], After.NOT_APPLIED, "503"))

    def test_an_attempt_leaves_time_for_others_and_for_what_it_waits(self) -> None:
        for options, timeout in (({}, 3.0), ({"deadline": 0.9}, 0.3), ({"wait": 5.0}, 8.0)):
            attempt = course(**options)[0].next(0.0)  # type: ignore[arg-type]
            assert attempt is not None
            self.assertAlmostEqual(attempt.timeout, timeout)

    def test_a_failure_does_not_turn_away_from_the_node_that_another_call_has_found(self) -> None:
        run, ring = course()
        ring.prefer(NODES[2])
        run.failed(0.0, NODES[0], After.NOT_SENT, "refused")
        self.assertEqual(ring.preferred, NODES[2])
