"""From ``show stat`` to a VIP's counters and its members' health.

A reload starts a worker whose counters are at zero, while the old one goes on counting for the connections it still has. A VIP's
counters are therefore sums over all workers there were: what each living worker says now, plus the last word of those that have
gone. They never go back. What an old worker counts between the last reading and its end is lost.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from lbaas_scheduler.domain.deployments import MemberHealth, VipStats
from lbaas_scheduler.vendors.haproxy.files import DeviceFiles

Row = Mapping[str, str]
Counters = dict[str, list[int]]
"""VIP id → bytes in, bytes out, total connections."""

PAST = "past"
_FILE = "counters"


class Ledger:
    """Counters of a device's workers, by process id. Kept on disk over restarts of the agent; the loss of it is no fault."""

    def __init__(self, files: DeviceFiles) -> None:
        self.files = files
        self.workers = _saved(files.read_json(_FILE))

    def record(self, readings: Mapping[int, Sequence[Row]], known: Collection[str]) -> bool:
        """Take the rows of all living workers. Those not named have ended.

        :param known: ids of the VIPs that are on the device. An old worker goes on naming others, as long as they are in use.
        :returns: whether it is worth saving: what the current worker counted can be read again, what others did perhaps not.
        """
        ended = False
        living = {str(pid): _counters(rows) for pid, rows in readings.items()}
        for pid in [pid for pid in self.workers if pid != PAST]:
            if pid not in living or _restarted(self.workers[pid], living[pid]):
                self._fold(self.workers.pop(pid))
                ended = True
        for pid, counters in living.items():
            # A worker about to end names its VIPs no more; what it said last stands.
            self.workers.setdefault(pid, {}).update(counters)
        for pid, counters in self.workers.items():
            self.workers[pid] = {vip_id: values for vip_id, values in counters.items() if vip_id in known}
        return ended or len(living) > 1

    def total(self, vip_id: str) -> tuple[int, int, int]:
        of_workers = [counters[vip_id] for counters in self.workers.values() if vip_id in counters]
        received, sent, connections = (sum(column) for column in zip(*of_workers, [0, 0, 0], strict=True))
        return received, sent, connections

    def save(self) -> None:
        self.files.write(_FILE, json.dumps(self.workers))

    def drop(self, vip_ids: set[str]) -> None:
        """The VIPs are gone: should one come back, it counts from zero."""
        for counters in self.workers.values():
            for vip_id in vip_ids:
                counters.pop(vip_id, None)

    def _fold(self, counters: Counters) -> None:
        past = self.workers.setdefault(PAST, {})
        for vip_id, values in counters.items():
            past[vip_id] = [old + new for old, new in zip(past.get(vip_id, [0, 0, 0]), values, strict=True)]


def _saved(document: Any) -> dict[str, Counters]:
    try:
        return {
            pid: {vip_id: [int(received), int(sent), int(total)] for vip_id, (received, sent, total) in counters.items()}
            for pid, counters in document.items()
        }
    except (AttributeError, TypeError, ValueError):
        return {}


def _restarted(before: Counters, now: Counters) -> bool:
    """A process id that came back: another worker's counters."""
    return any(new < old for vip_id in now.keys() & before.keys() for new, old in zip(now[vip_id], before[vip_id], strict=True))


def _counters(rows: Sequence[Row]) -> Counters:
    return {row["pxname"]: [_int(row, "bin"), _int(row, "bout"), _int(row, "stot")] for row in rows if _frontend(row)}


def active(rows: Sequence[Row]) -> dict[str, int]:
    """VIP id → connections that one worker has open now."""
    return {row["pxname"]: _int(row, "scur") for row in rows if _frontend(row)}


def members(rows: Sequence[Row]) -> dict[str, dict[str, MemberHealth]]:
    """VIP id → member id → health, from the current worker's rows."""
    found: dict[str, dict[str, MemberHealth]] = {}
    for row in rows:
        if row["svname"] not in ("FRONTEND", "BACKEND"):
            vip_id = row["pxname"].partition(".")[0]
            found.setdefault(vip_id, {})[row["svname"]] = _health(row)
    return found


def vip_stats(
    vip_id: str, ledger: Ledger, connections: Sequence[Mapping[str, int]], health: Mapping[str, Mapping[str, MemberHealth]]
) -> VipStats:
    received, sent, total = ledger.total(vip_id)
    return VipStats(received, sent, sum(one.get(vip_id, 0) for one in connections), total, health.get(vip_id, {}))


def _health(row: Row) -> MemberHealth:
    """Status is "UP", "UP 1/3" (failing, still used), "DOWN", "DOWN 1/2" (recovering), "DRAIN", "MAINT", "no check", …"""
    status, check = row["status"], row.get("check_status", "").removeprefix("* ")
    up: bool | None = None
    if status.startswith("DOWN"):
        up = False
    elif status.startswith(("UP", "DRAIN", "NOLB")) and check not in ("", "INI", "UNK"):
        up = True
    detail = " ".join(filter(None, (check, row.get("last_chk", ""))))
    return MemberHealth(up, _int(row, "chkfail"), detail)


def _frontend(row: Row) -> bool:
    return row["svname"] == "FRONTEND"


def _int(row: Row, column: str) -> int:
    return int(row.get(column) or 0)
