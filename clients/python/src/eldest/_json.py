"""JSON as it comes from a cluster."""

from __future__ import annotations

import json
from typing import Any


def loads(text: str | bytes) -> Any:
    """Like `json.loads`, except that an integer with more digits than Python converts becomes `inf`, as `1e400` does.

    A cluster no longer accepts such numbers, but still returns those that it accepted before. One of them must not keep
    a reader from the data that comes with it.
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
