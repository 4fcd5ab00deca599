"""What a pool has for itself: its gateway and reserved values, and the address pools of allocated subnets."""

from __future__ import annotations

from dataclasses import replace

from lbaas_scheduler.allocator.context import Context, Known, new_id, normalised
from lbaas_scheduler.allocator.core.drivers import Stored, Txn
from lbaas_scheduler.allocator.core.requests import INFRA, Request
from lbaas_scheduler.allocator.core.resource import Definition
from lbaas_scheduler.allocator.core.states import Allocation, Pool, hexed

__all__ = ["INFRA", "define_within", "infra_pool", "reserve"]


def infra_pool(pool_id: str) -> str:
    """Under which pool id a pool's own values are kept: apart from its customers', so that "is it empty?" is one look."""
    return f"{pool_id}#"


def reserve(context: Context, txn: Txn, pool: Pool, definition: Definition, numbers: dict[int, str]) -> None:
    """Allocate a pool's own values."""
    part = definition.main
    for number, what in numbers.items():
        txn.insert(
            Allocation(
                id=new_id(),
                kind=pool.kind,
                domain=part.domain,
                value=hexed(number),
                prefix_len=part.prefix_len,
                pool_id=infra_pool(pool.id),
                owner_type=INFRA,
                owner_id=pool.id,
                slot=what if what == "gateway" else f"{what}-{number:x}",
                created_at=context.now(),
            )
        )


def define_within(
    context: Context, txn: Txn, pool_id: str, subnet: Allocation, scope: str, cidr: str, request: Request, actor: str
) -> Known:
    """The address pool of an allocated subnet. Its domain is the subnet's own, so no other pool can be in its way."""
    draft = Pool(pool_id, request.kind, scope, subnet.id, "", {}, parent_allocation_id=subnet.id)
    definition = normalised(context.kind(draft.kind), draft, {**(request.options or {}), "cidr": cidr})
    pool = replace(draft, domain=definition.main.domain, config=definition.config)
    txn.insert(pool)
    reserve(context, txn, pool, definition, dict(definition.reserved))
    txn.log(context.event("define", actor, pool))
    return Known(Stored(pool, 0), definition)
