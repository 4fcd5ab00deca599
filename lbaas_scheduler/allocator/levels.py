"""How full many pools are, for monitoring: counted and never read, and no more pools than somebody can look at."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, zip_longest

from lbaas_scheduler.allocator import infra
from lbaas_scheduler.allocator.context import Context, Known
from lbaas_scheduler.allocator.core.drivers import Query
from lbaas_scheduler.allocator.core.states import Allocation, Pool
from lbaas_scheduler.errors import LBaaSError

MOST_POOLS = 200
"""Pools that are shown."""

MOST_COUNTED = 100
"""Pools that are shown where each costs some requests of its own."""

MOST_LOOKED_AT = 2_000
"""Pools among which those that are shown are chosen."""

Tally = Mapping[tuple[str, str], int]
"""(Id of a pool, status) → how many values of the pool's main part; its own ones under its id with a ``#``."""


@dataclass(frozen=True, slots=True)
class Level:
    """As :class:`~lbaas_scheduler.allocator.core.requests.Usage`, without any listing."""

    kind: str
    scope: str
    pool: str
    state: str
    total: int
    used: int
    held: int
    quarantined: int


def read(context: Context, tally: Tally | None = None, most: int = MOST_POOLS) -> list[Level]:
    """The fullest pools, where ``tally`` was counted in one go; else some of each kind, the first ones by scope and name."""
    if tally is None:
        chosen = islice(_of_all_kinds(list(_understood(context))), min(most, MOST_COUNTED))
        return [_level(known, _counted(context, known)) for known in chosen]
    found = [_level(known, _of(tally, known.pool.id)) for known in _understood(context)]
    fullest = sorted(found, key=lambda level: -(level.used + level.quarantined) / max(1, level.total))
    return fullest[:most]


def _of_all_kinds(pools: Sequence[Known]) -> Iterator[Known]:
    """The first pool of each kind, then the second ones: there may be thousands for addresses, and one for VLANs."""
    by_kind: dict[str, list[Known]] = {}
    for known in pools:
        by_kind.setdefault(known.pool.kind, []).append(known)
    for turn in zip_longest(*by_kind.values()):
        yield from (known for known in turn if known is not None)


def _understood(context: Context) -> Iterator[Known]:
    for stored in context.driver.read(Query(Pool, limit=MOST_LOOKED_AT)):
        try:
            yield context.understand(stored)
        except LBaaSError:
            # Of a kind that is not installed here, or spoilt: what :mod:`.checks` is there to tell.
            continue


def _level(known: Known, count: Mapping[str, int]) -> Level:
    pool = known.pool
    return Level(
        kind=pool.kind,
        scope=pool.scope,
        pool=pool.name,
        state=pool.state,
        total=known.numbers("").size,
        used=count.get("active", 0) + count.get("held", 0),
        held=count.get("held", 0),
        quarantined=count.get("quarantined", 0),
    )


def _of(tally: Tally, pool_id: str) -> Counter[str]:
    ids = (pool_id, infra.infra_pool(pool_id))
    return Counter({status: sum(tally.get((id_, status), 0) for id_ in ids) for status in ("active", "held", "quarantined")})


def _counted(context: Context, known: Known) -> Counter[str]:
    """A few counts, whatever the pool's size. Where values bring others along, which lie in the same index, they are read."""
    driver, pool_id = context.driver, known.pool.id
    if len(known.definition.parts) > 1:
        return Counter(
            stored.state.status for stored in driver.read(Query(Allocation, "in", (pool_id,))) if not stored.state.part
        )
    own = driver.count(Query(Allocation, "in", (infra.infra_pool(pool_id),)))
    held, quarantined = (driver.count(Query(Allocation, "due", (pool_id, status))) for status in ("held", "quarantined"))
    active = driver.count(Query(Allocation, "in", (pool_id,))) - held - quarantined
    return Counter({"active": active + own, "held": held, "quarantined": quarantined})
