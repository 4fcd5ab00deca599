"""The audit: what must hold across all pools and allocations, looked at from the rows alone.

Nothing in this package should ever break one of these rules; a restored backup, a row edited by hand or a bug may.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

from lbaas_scheduler.allocator import infra
from lbaas_scheduler.allocator.context import Context, Known
from lbaas_scheduler.allocator.core.drivers import Query
from lbaas_scheduler.allocator.core.states import Allocation, Claim, Pool
from lbaas_scheduler.errors import LBaaSError


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong.

    :ivar rule: ``out_of_range``, ``no_pool``, ``no_parent``, ``cycle``, ``wrong_domain``, ``expired_hold``, ``missing_part``,
        ``overlap``, ``lost_claim``, ``bad_definition``.
    :ivar repair: whether :func:`~lbaas_scheduler.allocator.reconcile.reconcile` puts it right by itself.
    """

    rule: str
    text: str
    allocation_id: str = ""
    pool_id: str = ""
    repair: bool = False

    def __str__(self) -> str:
        return f"{self.rule}: {self.text}"


@dataclass(frozen=True, slots=True)
class _Everything:
    """One reading of the store."""

    allocations: Mapping[str, Allocation]
    pools: Mapping[str, Known]
    claims: tuple[Claim, ...]


def run(context: Context) -> list[Finding]:
    """All findings, ordered by rule."""
    broken: list[Finding] = []
    everything = _read(context, broken)
    found = [*broken, *_of_claims(everything)]
    for allocation in everything.allocations.values():
        found += _of_allocation(context, everything, allocation)
    return sorted(found, key=lambda finding: (finding.rule, finding.text))


def _read(context: Context, broken: list[Finding]) -> _Everything:
    pools: dict[str, Known] = {}
    for stored in context.driver.read(Query(Pool)):
        try:
            pools[stored.state.id] = context.understand(stored)
        except LBaaSError as error:
            text = f"{stored.state.kind} pool '{stored.state.label}': {error.message}"
            broken.append(Finding("bad_definition", text, pool_id=stored.state.id))
    allocations = {stored.state.id: stored.state for stored in context.driver.read(Query(Allocation))}
    claims = tuple(stored.state for stored in context.driver.read(Query(Claim)))
    return _Everything(allocations, pools, claims)


def _of_allocation(context: Context, everything: _Everything, state: Allocation) -> Iterator[Finding]:
    known = everything.pools.get(state.pool_id.rstrip("#"))
    value = context.show(state) if state.kind in context.kinds else state.number
    label = f"{state.kind} {value} of {state.owner_type} {state.owner_id}"

    def finding(rule: str, text: str, *, repair: bool = False) -> Finding:
        return Finding(rule, f"{label} {text}", state.id, state.pool_id.rstrip("#"), repair)

    if known is None:
        yield finding("no_pool", f"comes from pool {state.pool_id}, which is gone", repair=True)
    else:
        yield from _of_range(known, state, finding)
    if state.parent_id and state.parent_id not in everything.allocations:
        yield finding("no_parent", f"hangs on {state.parent_id}, which is gone", repair=True)
    elif _is_in_cycle(everything.allocations, state):
        yield finding("cycle", "hangs on itself")
    if state.status == "held" and state.due_at is not None and state.due_at < context.now():
        yield finding("expired_hold", f"is held since its time was over at {state.due_at.isoformat()}", repair=True)


def _of_range(known: Known, state: Allocation, finding: Callable[..., Finding]) -> Iterator[Finding]:
    part = known.definition.parts.get(state.part)
    if part is None:
        yield finding("missing_part", f"belongs to part '{state.part}', which its pool does not have")
        return
    if "{host}" not in part.domain and part.domain != state.domain:
        yield finding("wrong_domain", f"lies in {state.domain} and not in {part.domain}")
    is_own = state.owner_type == infra.INFRA
    numbers = part.numbers if is_own else known.numbers(state.part)
    if state.number not in numbers and state.status != "quarantined":
        yield finding("out_of_range", f"is outside of pool '{known.pool.label}' by now")


def _is_in_cycle(allocations: Mapping[str, Allocation], state: Allocation) -> bool:
    seen = {state.id}
    parent = state.parent_id
    while parent in allocations:
        if parent in seen:
            return True
        seen.add(parent)
        parent = allocations[parent].parent_id
    return False


def _of_claims(everything: _Everything) -> Iterator[Finding]:
    by_domain: dict[str, list[Claim]] = {}
    for claim in everything.claims:
        if claim.pool_id not in everything.pools:
            yield Finding(
                "lost_claim", f"{claim.domain} is claimed for pool {claim.pool_id}, which is gone", pool_id=claim.pool_id
            )
        elif claim.role == "alloc":
            by_domain.setdefault(claim.domain, []).append(claim)
    for domain, claims in by_domain.items():
        claims.sort(key=lambda claim: claim.lo)
        for one, other in pairwise(claims):
            if other.lo <= one.hi and other.pool_id != one.pool_id:
                names = " and ".join(f"'{everything.pools[claim.pool_id].pool.label}'" for claim in (one, other))
                yield Finding("overlap", f"pools {names} overlap in {domain}", pool_id=other.pool_id)
