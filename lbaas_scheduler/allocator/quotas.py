"""Quotas per tenant and pool.

A tenant's values are counted, not accounted for: nothing can drift. A fence per tenant and pool, moved by every allocation that a
quota applies to, keeps two from counting at the same time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from lbaas_scheduler.allocator.context import Known
from lbaas_scheduler.allocator.core.drivers import Query, Txn
from lbaas_scheduler.allocator.core.states import Allocation, Note
from lbaas_scheduler.allocator.leaves import Leaf
from lbaas_scheduler.errors import QuotaExceeded


def check(txn: Txn, leaves: Sequence[Leaf]) -> None:
    """:raises QuotaExceeded: the new leaves do not fit into what their tenants may have."""
    wanted: Counter[tuple[str, str]] = Counter()
    pools: dict[str, Known] = {}
    for leaf in leaves:
        if leaf.part or not leaf.request.tenant_id or quota(leaf.known, leaf.request.tenant_id) is None:
            continue
        pools[leaf.pool_id] = leaf.known
        wanted[leaf.pool_id, leaf.request.tenant_id] += 1
    for (pool_id, tenant_id), many in wanted.items():
        _check_one(txn, pools[pool_id], tenant_id, many)


def quota(known: Known, tenant_id: str) -> int | None:
    """How many values a tenant may have; None = any number."""
    quotas = known.definition.config["quotas"]
    found = quotas.get(tenant_id, quotas.get("*"))
    return None if found is None else int(found)


def _check_one(txn: Txn, known: Known, tenant_id: str, many: int) -> None:
    topic = f"quota:{known.pool.id}"
    fence = txn.get(Note, topic, tenant_id)
    limit = quota(known, tenant_id)
    used = txn.count(Query(Allocation, "in", (known.pool.id, tenant_id)))
    if limit is not None and used + many > limit:
        raise QuotaExceeded(
            tenant_id=tenant_id, used=used, quota=limit, kind=known.pool.kind, pool=known.pool.label, wanted=many
        )  # fmt: skip
    if fence is None:
        txn.insert(Note(topic, tenant_id))
    else:
        txn.replace(fence, replace(fence.state, version=fence.state.version + 1))
