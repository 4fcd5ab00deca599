"""What is to be done with a VIP, and what is known of it already."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass

from lbaas_scheduler.domain.deployments import Deployment, Version
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
    order: tuple[Version, bool]
    ticket: int


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
        known = self._get(change.vip_id)
        if known is not None and change.order < known.order:
            return False
        self._put(change.vip_id, change.order, ticket)
        return True

    def adopt(self, desired: Iterable[Desired], as_of: int) -> None:
        """Take over a server's list that was read after ticket ``as_of``: the truth for all but later casts."""
        wanted = {line.vip_id: (line.version, line.operation is Operation.REMOVE) for line in desired}
        for vip_id, order in wanted.items():
            known = self._get(vip_id)
            if known is None or known.ticket <= as_of or known.order < order:
                self._put(vip_id, order, known.ticket if known else as_of)
        gone = [vip_id for vip_id, entry in self._live.items() if vip_id not in wanted and entry.ticket <= as_of]
        for vip_id in gone:
            del self._live[vip_id]

    def touched_since(self, vip_id: str, ticket: int) -> bool:
        """Whether a cast on the VIP came after ``ticket``."""
        known = self._get(vip_id)
        return known is not None and known.ticket > ticket

    def _get(self, vip_id: str) -> _Entry | None:
        return self._live.get(vip_id) or self._dead.get(vip_id)

    def _put(self, vip_id: str, order: tuple[Version, bool], ticket: int) -> None:
        self._live.pop(vip_id, None)
        self._dead.pop(vip_id, None)
        if not order[1]:
            self._live[vip_id] = _Entry(order, ticket)
            return
        self._dead[vip_id] = _Entry(order, ticket)
        if len(self._dead) > MAX_TOMBSTONES:
            self._dead.popitem(last=False)
