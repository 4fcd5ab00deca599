"""What a device's ``extra`` may say: ``{"concurrency": 2}`` = worker threads of this device, in place of [envoy] concurrency."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lbaas_scheduler.errors import InvalidRequest

MAX_CONCURRENCY = 128


def concurrency(extra: Mapping[str, Any], default: int) -> int:
    """:raises InvalidRequest: names the key that is wrong and what would be right."""
    unknown = sorted(set(extra) - {"concurrency"})
    if unknown:
        raise InvalidRequest(f"extra: unknown key {unknown[0]!r}; an Envoy device knows 'concurrency' only.")
    value = extra.get("concurrency", default)
    if type(value) is not int or not 1 <= value <= MAX_CONCURRENCY:
        raise InvalidRequest(f"extra.concurrency must be an integer from 1 to {MAX_CONCURRENCY}.")
    return value
