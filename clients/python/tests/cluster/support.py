"""A real cluster, whose nodes the environment names. Names are new in each run, so that runs do not meet."""

from __future__ import annotations

import os
import unittest
import uuid
from typing import Any

from eldest import aio

from ..unit.support import PATIENCE, Heard

__all__ = ["PATIENCE", "Heard", "RealCluster", "nodes"]


def nodes() -> list[str]:
    return [url for url in os.environ.get("ELDEST_NODES", "").split(",") if url]


@unittest.skipUnless(nodes(), "ELDEST_NODES names no cluster")
class RealCluster(unittest.IsolatedAsyncioTestCase):
    def name(self, what: str = "t") -> str:
        return f"py/{what}/{uuid.uuid4()}"

    def client(self, urls: list[str] | None = None, **options: Any) -> aio.Client:
        client = aio.Client(urls or nodes(), token=os.environ.get("ELDEST_ADMIN_TOKEN"), **options)
        self.addAsyncCleanup(client.close)
        return client

    def clients(self) -> list[aio.Client]:
        """One client for each node, which asks this node first."""
        urls = nodes()
        return [self.client(urls[at:] + urls[:at]) for at in range(len(urls))]
