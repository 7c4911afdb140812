"""The examples of the documents exist, and run."""

from __future__ import annotations

import contextlib
import io
import re
import unittest
from pathlib import Path
from typing import Any

import eldest
from eldest.aio.election import EVENTS

from .fake import FakeCluster

PACKAGE = Path(__file__).resolve().parents[2]
DOCS = PACKAGE.parents[1] / "docs"


class Documents(unittest.TestCase):
    def test_every_test_that_is_named_exists(self) -> None:
        for document in DOCS.glob("coming-from*.md"):
            for file, name in re.findall(r"((?:unit|cluster)/\w+\.py)::(\w+)", document.read_text()):
                with self.subTest(f"{file}::{name}"):
                    self.assertIn(f"def {name}(", (PACKAGE / "tests" / file).read_text())

    def test_the_readme_runs(self) -> None:
        first, second = re.findall(r"```python\n(.*?)```", (PACKAGE / "README.md").read_text(), re.DOTALL)[:2]
        with FakeCluster() as cluster, contextlib.redirect_stdout(io.StringIO()) as printed:
            scope: dict[str, Any] = {}
            exec(re.sub(r"\[\"http.*?\]", repr(cluster.urls), first), scope)
            scope["client"].close()
            exec(second, scope)
            scope["asyncio"].run(scope["main"](cluster.urls))
        self.assertRegex(printed.getvalue(), r"^I lead \d+\ncleaning up .*\n(down tools\n)?writing the report\nonly on the leader\n$")

    def test_the_readme_names_every_event_and_error(self) -> None:
        readme = (PACKAGE / "README.md").read_text()
        public = {name: getattr(eldest, name) for name in eldest.__all__}
        errors = [name for name, what in public.items() if isinstance(what, type) and issubclass(what, Exception)]
        for name in (*EVENTS, *errors):
            self.assertIn(f"`{name}", readme)
