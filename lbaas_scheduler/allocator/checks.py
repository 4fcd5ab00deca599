"""The audit: what must hold across all pools and allocations, looked at from the rows alone.

Nothing in this package should ever break one of these rules; a restored backup, a row edited by hand or a bug may.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from lbaas_scheduler.allocator import infra
from lbaas_scheduler.allocator.claims import claims_of, may_overlap
from lbaas_scheduler.allocator.context import Context, Known
from lbaas_scheduler.allocator.core.drivers import Query
from lbaas_scheduler.allocator.core.states import Allocation, Claim, Event, Pool
from lbaas_scheduler.errors import LBaaSError

EVENTS = 10_000
"""Of the audit trail that are compared with the rows."""

ENDS = ("release", "sweep", "purge")
"""What is done with a value last."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong.

    :ivar rule: ``out_of_range``, ``no_pool``, ``no_parent``, ``cycle``, ``wrong_domain``, ``expired_hold``, ``missing_part``,
        ``duplicate``, ``overlap``, ``no_claim``, ``lost_claim``, ``no_subnet``, ``bad_definition``, ``lost``, ``released``.
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
    """All findings about what is there, ordered by rule."""
    broken: list[Finding] = []
    everything = _read(context, broken)
    found = [*broken, *_of_pools(everything), *_of_claims(everything), *_of_values(context, everything)]
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


def _of_pools(everything: _Everything) -> Iterator[Finding]:
    for known in everything.pools.values():
        pool, subnet = known.pool, known.pool.parent_allocation_id
        if subnet and subnet not in everything.allocations:
            yield Finding("no_subnet", f"{pool.kind} pool '{pool.label}' lies in {subnet}, which is gone", pool_id=pool.id)
        if not subnet:
            for claim in claims_of(pool, known.definition) - set(everything.claims):
                text = f"{pool.kind} pool '{pool.label}' has no claim on its part of {claim.domain}"
                yield Finding("no_claim", text, pool_id=pool.id)


def _of_values(context: Context, everything: _Everything) -> Iterator[Finding]:
    """A key cannot repeat; a prefix may lie in another one."""
    last: dict[str, tuple[int, Allocation]] = {}
    for state in sorted(everything.allocations.values(), key=lambda state: state.value):
        known = everything.pools.get(state.pool_id.rstrip("#"))
        if known is None or state.part not in known.definition.parts or state.status == "quarantined":
            continue
        end, other = last.get(state.domain, (-1, state))
        if state.number <= end:
            text = f"{state.kind} {context.show(state)} and {context.show(other)} overlap in {state.domain}"
            yield Finding("duplicate", text, state.id, known.pool.id)
        last[state.domain] = max(
            (end, other), (state.number + known.part(state.part).numbers.step - 1, state), key=lambda it: it[0]
        )


def _of_claims(everything: _Everything) -> Iterator[Finding]:
    by_domain: dict[str, list[Claim]] = {}
    for claim in everything.claims:
        if claim.pool_id not in everything.pools:
            yield Finding(
                "lost_claim", f"{claim.domain} is claimed for pool {claim.pool_id}, which is gone", pool_id=claim.pool_id
            )
        else:
            by_domain.setdefault(claim.domain, []).append(claim)
    for domain, claims in by_domain.items():
        claims.sort(key=lambda claim: claim.lo)
        reaching: list[Claim] = []
        for other in claims:
            reaching = [one for one in reaching if one.hi >= other.lo]
            for one in reaching:
                pools = [everything.pools[claim.pool_id].pool for claim in (one, other)]
                if one.pool_id != other.pool_id and not may_overlap(pools[0], one, pools[1], other):
                    names = " and ".join(f"'{pool.label}'" for pool in pools)
                    yield Finding("overlap", f"pools {names} overlap in {domain}", pool_id=other.pool_id)
            reaching.append(other)


def of_history(context: Context) -> list[Finding]:
    """What the audit trail says otherwise than the rows: an id is given once and given back once.

    Looks at the last :data:`EVENTS` events. What is so at the second look, too, did not just happen in between.
    """
    found = _contradictions(context)
    again = _contradictions(context) if found else {}
    return sorted((found[id_] for id_ in found.keys() & again.keys()), key=lambda finding: (finding.rule, finding.text))


def _contradictions(context: Context) -> dict[str, Finding]:
    """By id of the allocation."""
    given: dict[str, Event] = {}
    ended: set[str] = set()
    for stored in context.driver.read(Query(Event, limit=EVENTS, reverse=True)):
        event = stored.state
        if event.op in ENDS:
            ended.add(event.allocation_id)
        if event.allocation_id:
            given[event.allocation_id] = event
    # After the events: what is given back is gone by then.
    there = {stored.state.id: stored.state for stored in context.driver.read(Query(Allocation))}
    found = {}
    for id_, event in given.items():
        state = there.get(id_)
        if state is None and id_ not in ended:
            found[id_] = Finding("lost", f"{_shown(context, event)} was never given back, and is not there", id_, event.pool_id)
        elif state is not None and id_ in ended and state.status != "quarantined":
            found[id_] = Finding("released", f"{_shown(context, event)} was given back, and is there", id_, event.pool_id)
    return found


def _shown(context: Context, event: Event) -> str:
    number = int(event.value, 16)
    value = context.kinds[event.kind].show(number, event.prefix_len) if event.kind in context.kinds else number
    return f"{event.kind} {value} of {event.owner_type} {event.owner_id}"
