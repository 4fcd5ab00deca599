"""What callers say and get."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from lbaas_scheduler.allocator.core.states import Allocation

CLUSTER = "cluster"

INFRA = "pool"
"""Owner type of what a pool has for itself. Goes with the pool, counts as used, is nobody's to ask for or to release."""


class Owner(NamedTuple):
    """Who has a value: a VIP, a network, a port, an interface of a device."""

    type: str
    id: str


class Selector(NamedTuple):
    """Names a pool.

    :ivar scope: ``cluster``, ``tenant:<id>`` or ``host:<name>``.
    """

    kind: str
    name: str
    scope: str = CLUSTER

    @property
    def label(self) -> str:
        return self.name if self.scope == CLUSTER else f"{self.scope}/{self.name}"


@dataclass(frozen=True, slots=True)
class Request:
    """One value, and what belongs to it.

    :ivar kind: of resource, as installed.
    :ivar pool: name of the pool; "" only with :attr:`within`.
    :ivar slot: tells two values of one owner from one pool apart. The same owner and slot get the same value again.
    :ivar value: as the kind writes it; None = any. 0 is a value.
    :ivar host: on which host; for pools whose local values are per host.
    :ivar children: taken in the same transaction and given back with this one, before it.
    :ivar within: the subnet that an address lies in; allocated by the way unless its owner and slot have it already. It outlives
        the address.
    :ivar options: configuration of the address pool that :attr:`within` brings with it (``gateway``, ``pick``, …).
    """

    kind: str
    owner: Owner
    pool: str = ""
    scope: str = CLUSTER
    slot: str = ""
    tenant_id: str = ""
    value: Any = None
    host: str = ""
    children: tuple[Request, ...] = ()
    within: Request | None = None
    options: Mapping[str, Any] | None = None

    @property
    def selector(self) -> Selector:
        return Selector(self.kind, self.pool, self.scope)


@dataclass(frozen=True, slots=True)
class Grant:
    """What a request got.

    :ivar value: as the kind writes it: 100, "10.0.0.5", "10.0.1.0/24".
    :ivar generation: to be shown when it is released or committed: proves that one speaks of this very state of it.
    :ivar created: False = the owner and slot, or the request id, had it before.
    :ivar children: in the order of the request's; the kind's own dependent values (a VXLAN's local VLAN) come first.
    :ivar within: the subnet of an address that was asked for with one.
    :ivar last_owner: who had a quarantined value: ``type/id/slot``.
    """

    id: str
    kind: str
    value: Any
    generation: int
    status: str
    pool_id: str
    owner: Owner
    slot: str
    part: str = ""
    due_at: datetime | None = None
    created: bool = True
    children: tuple[Grant, ...] = ()
    within: Grant | None = None
    last_owner: str = ""


@dataclass(frozen=True, slots=True)
class Usage:
    """How full a pool is. Derived from the allocations each time; nothing counts along.

    :ivar total: values that the pool can hand out, the taken ones included.
    :ivar used: held and active ones, the pool's own reservations included.
    :ivar allocated: values in use, as a person writes them: ``1-2, 19``.
    :ivar free_ranges: the others; "" when there are too many stretches to print.
    """

    kind: str
    pool: str
    scope: str
    state: str
    total: int
    used: int
    held: int
    quarantined: int
    free: int
    allocated: str
    free_ranges: str


def owner_of(allocation: Allocation) -> Owner:
    return Owner(allocation.owner_type, allocation.owner_id)
