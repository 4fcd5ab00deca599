"""What a fake device can be told to do wrong, through its ``extra``.

=================== ====================================== ==============================================================
key                 value                                  effect
=================== ====================================== ==============================================================
``fail``            name of a call, or a list              the call raises DriverError
``crash``           as ``fail``                            the call raises RuntimeError, as a bug would
``hang``            as ``fail``                            the call sleeps ``hang_seconds`` before it goes on
``hang_seconds``    number ≥ 0, default 5                  how long; without ``hang`` every call of the driver hangs
``latency_seconds`` number ≥ 0                             every call of the driver takes at least that long
``lie``             as ``fail``                            the call answers untruly, see below
``fail_vips``       list of ids                            ``apply`` fails for these VIPs, for no others
``stuck_vips``      list of ids                            ``remove`` fails for these VIPs, for no others
``fail_members``    list of ids                            ``apply`` reports these members as failed, their VIP as good
``down_members``    list of ids                            ``read_stats`` shows these members as down
``counters``        {counter: integer}                     what ``read_stats`` shows for each VIP; default 0
``offline``         boolean                                ``get_status`` says offline; calls of the driver fail
``reject``          text                                   ``is_good`` says no, for this reason
``weight``          0..100                                 what ``weigh`` says; default 50
=================== ====================================== ==============================================================

Calls: ``apply``, ``remove``, ``list_deployed``, ``read_stats`` (driver); ``is_good``, ``weigh``, ``select``,
``get_status`` (handler). Lies: ``apply`` and ``remove`` succeed without doing anything; ``list_deployed`` and
``read_stats`` know no VIP; ``is_good`` returns a text; ``weigh`` claims 10⁹; ``select`` returns a device that nobody
offered; ``get_status`` claims to be online.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from lbaas_scheduler.errors import DriverError, InvalidRequest

DRIVER_CALLS = frozenset({"apply", "remove", "list_deployed", "read_stats"})
HANDLER_CALLS = frozenset({"is_good", "weigh", "select", "get_status"})
CALLS = DRIVER_CALLS | HANDLER_CALLS
COUNTERS = frozenset({"bytes_in", "bytes_out", "active_connections", "total_connections"})


@dataclass(frozen=True, slots=True)
class Faults:
    """A device's ``extra``, checked."""

    fail: frozenset[str] = frozenset()
    crash: frozenset[str] = frozenset()
    hang: frozenset[str] = frozenset()
    hang_seconds: float = 5.0
    latency_seconds: float = 0.0
    lie: frozenset[str] = frozenset()
    fail_vips: frozenset[str] = frozenset()
    stuck_vips: frozenset[str] = frozenset()
    fail_members: frozenset[str] = frozenset()
    down_members: frozenset[str] = frozenset()
    counters: Mapping[str, int] = field(default_factory=dict)
    offline: bool = False
    reject: str = ""
    weight: float = 50.0

    def delay(self, call: str) -> float:
        """Seconds that ``call`` takes."""
        latency = self.latency_seconds if call in DRIVER_CALLS else 0.0
        return latency + (self.hang_seconds if call in self.hang else 0.0)

    def strike(self, call: str) -> None:
        """Raise what ``call`` was told to raise.

        :raises DriverError: told to fail, or offline.
        :raises RuntimeError: told to crash.
        """
        if call in self.crash:
            raise RuntimeError(f"{call} of a fake device was told to crash")
        if call in self.fail:
            raise DriverError(f"The fake device was told to fail at {call}.")
        if self.offline and call in DRIVER_CALLS:
            raise DriverError("The fake device is offline.")


def parse(extra: Mapping[str, Any]) -> Faults:
    """Read a device's ``extra``.

    :raises InvalidRequest: names the key that is wrong and what would be right; never repeats its value.
    """
    unknown = sorted(set(extra) - set(_READERS))
    if unknown:
        raise InvalidRequest(f"extra: unknown key {unknown[0]!r}; known are {', '.join(sorted(_READERS))}.")
    values: dict[str, Any] = {key: _READERS[key](key, value) for key, value in extra.items()}
    if "hang_seconds" in values and "hang" not in values:
        values["hang"] = DRIVER_CALLS
    return Faults(**values)


def _calls(key: str, value: object) -> frozenset[str]:
    names = _ids(key, [value] if isinstance(value, str) else value)
    if not names <= CALLS:
        raise InvalidRequest(f"extra.{key} must name calls out of {', '.join(sorted(CALLS))}.")
    return names


def _ids(key: str, value: object) -> frozenset[str]:
    if not isinstance(value, list | tuple) or not all(isinstance(item, str) for item in value):
        raise InvalidRequest(f"extra.{key} must be a list of strings.")
    return frozenset(value)


def _number(key: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < float("inf"):
        raise InvalidRequest(f"extra.{key} must be a number that is not negative.")
    return float(value)


def _weight(key: str, value: object) -> float:
    weight = _number(key, value)
    if weight > 100:
        raise InvalidRequest(f"extra.{key} must be between 0 and 100.")
    return weight


def _flag(key: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise InvalidRequest(f"extra.{key} must be true or false.")
    return value


def _text(key: str, value: object) -> str:
    if not isinstance(value, str):
        raise InvalidRequest(f"extra.{key} must be a text.")
    return value


def _counters(key: str, value: object) -> Mapping[str, int]:
    if not isinstance(value, Mapping) or not set(value) <= COUNTERS:
        raise InvalidRequest(f"extra.{key} must be an object with keys out of {', '.join(sorted(COUNTERS))}.")
    if not all(type(count) is int and count >= 0 for count in value.values()):
        raise InvalidRequest(f"extra.{key} must hold integers that are not negative.")
    return dict(value)


_READERS: Mapping[str, Callable[[str, object], object]] = {
    "fail": _calls,
    "crash": _calls,
    "hang": _calls,
    "hang_seconds": _number,
    "latency_seconds": _number,
    "lie": _calls,
    "fail_vips": _ids,
    "stuck_vips": _ids,
    "fail_members": _ids,
    "down_members": _ids,
    "counters": _counters,
    "offline": _flag,
    "reject": _text,
    "weight": _weight,
}
