"""What is to be done with a VIP, and what is known of it already."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, replace

from lbaas_scheduler.domain.deployments import Deployment, Result, Version
from lbaas_scheduler.rpc.server_api import Desired, Operation

MAX_TOMBSTONES = 1024
"""Per device. A create that is late by more than this many deletes on one device is caught by the next resync instead."""


@dataclass(frozen=True, slots=True)
class Change:
    """One VIP's way to a new state. ``deployment`` is set for, and only for, an apply.

    ``orphan``: found on the device but wanted by nobody; the outcome interests no server.
    """

    vip_id: str
    version: Version
    operation: Operation
    deployment: Deployment | None = None
    orphan: bool = False

    @classmethod
    def apply(cls, deployment: Deployment) -> Change:
        return cls(deployment.vip.id, deployment.version, Operation.APPLY, deployment)

    @classmethod
    def remove(cls, vip_id: str, version: Version, orphan: bool = False) -> Change:
        return cls(vip_id, version, Operation.REMOVE, orphan=orphan)

    @property
    def order(self) -> tuple[Version, bool]:
        """Newest last. At one version a removal outranks an apply, so that no copy of a cast raises the dead."""
        return self.version, self.operation is Operation.REMOVE


@dataclass(frozen=True, slots=True)
class _Entry:
    """``result``: what came of it, once something came of it."""

    order: tuple[Version, bool]
    ticket: int
    result: Result | None = None


class Ledger:
    """The newest state known of each VIP of one device: the judge of what is stale.

    *Tickets* are numbers that grow with every cast; by them a resync tells what came after it began. Not safe for threads.
    """

    def __init__(self) -> None:
        self._live: dict[str, _Entry] = {}
        self._dead: OrderedDict[str, _Entry] = OrderedDict()

    def __len__(self) -> int:
        return len(self._live) + len(self._dead)

    def record(self, change: Change, ticket: int) -> bool:
        """Take note of a change. False: it is older than what is known, and must be dropped."""
        if self.is_stale(change):
            return False
        self._put(change.vip_id, _Entry(change.order, ticket))
        return True

    def is_stale(self, change: Change) -> bool:
        """Whether something newer than ``change`` is known of its VIP."""
        known = self._get(change.vip_id)
        return known is not None and change.order < known.order

    def note(self, change: Change, result: Result) -> None:
        """Remember what came of a change, if it is still the newest."""
        known = self._get(change.vip_id)
        if known is not None and known.order == change.order:
            self._store(change.vip_id, replace(known, result=result))

    def last_result(self, vip_id: str) -> Result | None:
        """What came of the newest change of a VIP. None: nothing yet, or it is known from a server's list alone."""
        known = self._get(vip_id)
        return None if known is None else known.result

    def adopt(self, desired: Iterable[Desired], as_of: int) -> None:
        """Take over a server's list that was read after ticket ``as_of``: the truth for all but later casts."""
        wanted = {line.vip_id: (line.version, line.operation is Operation.REMOVE) for line in desired}
        for vip_id, order in wanted.items():
            known = self._get(vip_id)
            if known is None or known.ticket <= as_of or known.order < order:
                result = known.result if known is not None and known.order == order else None
                self._put(vip_id, _Entry(order, known.ticket if known else as_of, result))
        gone = [vip_id for vip_id, entry in self._live.items() if vip_id not in wanted and entry.ticket <= as_of]
        for vip_id in gone:
            del self._live[vip_id]

    def touched_since(self, vip_id: str, ticket: int) -> bool:
        """Whether a cast on the VIP came after ``ticket``."""
        known = self._get(vip_id)
        return known is not None and known.ticket > ticket

    def _get(self, vip_id: str) -> _Entry | None:
        return self._live.get(vip_id) or self._dead.get(vip_id)

    def _put(self, vip_id: str, entry: _Entry) -> None:
        self._live.pop(vip_id, None)
        self._dead.pop(vip_id, None)
        self._store(vip_id, entry)
        if len(self._dead) > MAX_TOMBSTONES:
            self._dead.popitem(last=False)

    def _store(self, vip_id: str, entry: _Entry) -> None:
        (self._dead if entry.order[1] else self._live)[vip_id] = entry
