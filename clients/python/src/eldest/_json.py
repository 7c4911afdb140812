"""JSON as it comes from a cluster."""

from __future__ import annotations

import json
from typing import Any


def loads(text: str | bytes) -> Any:
    """As `json.loads`, but for whole numbers of more digits than Python converts: they are `inf`, as `1e400` is.

    A cluster takes no such number any more, and gives back what it took before it refused them. One of them must not keep a reader from
    what comes with it.
    """
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        raise
    except ValueError:
        return json.loads(text, parse_int=_whole)


def _whole(digits: str) -> int | float:
    try:
        return int(digits)
    except ValueError:
        return float(digits)
