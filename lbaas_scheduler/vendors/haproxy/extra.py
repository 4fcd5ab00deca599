"""What a HAProxy device's ``extra`` may hold. Read by the handler at registration and by the driver at each change."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lbaas_scheduler.errors import InvalidRequest

LIMITS = {"maxconn": (1, 10_000_000), "nbthread": (1, 64)}
KEYS = (*LIMITS, "netns")


@dataclass(frozen=True, slots=True)
class Extra:
    """``maxconn``: connections of the whole device at once; ``nbthread``: threads of its worker; ``netns``: whether it is in a
    network namespace of its own. None = the agent's default."""

    maxconn: int | None = None
    nbthread: int | None = None
    netns: bool | None = None

    @classmethod
    def parse(cls, extra: Mapping[str, Any]) -> Extra:
        """:raises InvalidRequest: names the key."""
        unknown = sorted(set(extra) - set(KEYS))
        if unknown:
            raise InvalidRequest(
                f"extra: unknown key(s) {', '.join(map(repr, unknown))}; a haproxy device knows {', '.join(sorted(KEYS))}."
            )
        netns = extra.get("netns")
        if netns is not None and not isinstance(netns, bool):
            raise InvalidRequest("extra.netns: expected true or false.")
        return cls(**{key: _integer(key, value) for key, value in extra.items() if key in LIMITS}, netns=netns)


def _integer(key: str, value: Any) -> int:
    low, high = LIMITS[key]
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise InvalidRequest(f"extra.{key}: expected a whole number from {low} to {high}.")
    return value
