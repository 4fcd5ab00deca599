"""How full pools are, and who has what."""

from __future__ import annotations

from collections import Counter

from lbaas_scheduler.allocator import infra, values
from lbaas_scheduler.allocator.context import Context, Known
from lbaas_scheduler.allocator.core.drivers import Query
from lbaas_scheduler.allocator.core.requests import Grant, Owner, Selector, Usage
from lbaas_scheduler.allocator.core.spans import Spans, listing, listing_of
from lbaas_scheduler.allocator.core.states import Allocation

MOST_STRETCHES = 1_000
"""Stretches of free values that a person may want to read."""


def of(context: Context, known: Known) -> Usage:
    """Derived from the allocations, each time."""
    pool, part = known.pool, known.definition.main
    kind = context.kind(pool.kind)
    states = [state for state in _of_pool(context, pool.id) if not state.part]
    count = Counter(state.status for state in states)
    used = [state.number for state in states if state.status != "quarantined"]
    numbers, step = known.numbers(""), part.numbers.step
    free = numbers.minus(Spans.of(((state.number, state.number) for state in states), step))

    def show(number: int) -> str:
        return str(kind.show(number, part.prefix_len))

    return Usage(
        kind=pool.kind,
        pool=pool.name,
        scope=pool.scope,
        state=pool.state,
        total=numbers.size,
        used=len(used),
        held=count["held"],
        quarantined=count["quarantined"],
        free=free.size,
        allocated=listing(used, show, step),
        free_ranges=listing_of(free, show) if len(free.items) <= MOST_STRETCHES else "",
    )


def grants(context: Context, pool: Selector | None, owner: Owner | None, resting: bool) -> list[Grant]:
    if pool is not None:
        states = _of_pool(context, context.pool(pool, fresh=True).pool.id)
    elif owner is not None:
        states = [stored.state for stored in context.driver.read(Query(Allocation, "own", tuple(owner)))]
    else:
        states = [stored.state for stored in context.driver.read(Query(Allocation))]
    wanted = [
        state
        for state in states
        if (resting or state.status != "quarantined") and (owner is None or (state.owner_type, state.owner_id) == owner)
    ]
    wanted.sort(key=lambda state: (state.kind, state.domain, state.value, state.prefix_len))
    return [values.grant(context, state) for state in wanted]


def _of_pool(context: Context, pool_id: str) -> list[Allocation]:
    """Its customers' values and its own."""
    ids = (pool_id, infra.infra_pool(pool_id))
    return [stored.state for id_ in ids for stored in context.driver.read(Query(Allocation, "in", (id_,)))]
