"""Giving back: by allocation, by owner, by value, by pool; always children before their parents, in one transaction."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

from lbaas_scheduler.allocator import infra, values
from lbaas_scheduler.allocator.context import Context, Known
from lbaas_scheduler.allocator.core.drivers import Query, Stored, Txn
from lbaas_scheduler.allocator.core.requests import Grant, Owner, Selector
from lbaas_scheduler.allocator.core.states import Allocation, Pool, hexed
from lbaas_scheduler.allocator.core.tries import until_done
from lbaas_scheduler.errors import (
    DependencyInUse,
    InvalidRequest,
    NotAllocated,
    NotAuthorized,
    OutOfRange,
    StaleGeneration,
)

BATCH = 10
"""Allocations in one transaction where there is no need for more: fits into every store's."""


def release(
    context: Context,
    allocation_id: str,
    generation: int | None = None,
    *,
    force: bool = False,
    missing_ok: bool = False,
    actor: str = "",
) -> int:
    """Give one allocation back, with its children.

    :param generation: from the grant; None = whatever it is by now.
    :param force: release what depends on it, too: the addresses of a subnet.
    :returns: how many values came back; 0 = it was not allocated, and ``missing_ok``.
    """

    def attempt() -> int:
        try:
            root = values.by_id(context, allocation_id)
        except NotAllocated:
            if missing_ok:
                return 0
            raise
        if generation is not None and root.state.generation != generation:
            raise StaleGeneration(resource="Allocation", id=allocation_id)
        if root.state.owner_type == infra.INFRA:
            raise InvalidRequest(f"{context.show(root.state)} belongs to its pool; redefine the pool", id=allocation_id)
        return _release(context, [root], force=force, actor=actor)

    return until_done(attempt, "a release")


def release_many(context: Context, ids: Iterable[str], *, actor: str = "") -> int:
    """Give several back in one transaction; what is not allocated any more is left out."""

    def attempt() -> int:
        found = context.driver.read(Query(Allocation, "id", among=wanted)) if wanted else []
        roots = [stored for stored in found if stored.state.id in wanted and stored.state.status != "quarantined"]
        return _release(context, roots, force=False, actor=actor)

    wanted = tuple(ids)
    return until_done(attempt, "a release")


def release_owner(context: Context, owner: Owner, *, force: bool = False, actor: str = "") -> int:
    """Give back whatever an owner has. Each tree in its own transaction where the store cannot do all at once.

    :returns: how many values came back; 0 = it had none.
    """

    def attempt() -> int:
        found = context.driver.read(Query(Allocation, "own", (owner.type, owner.id)))
        ids = {stored.state.id for stored in found}
        roots = [stored for stored in found if stored.state.parent_id not in ids]
        if context.driver.max_operations is None:
            return _release(context, roots, force=force, actor=actor)
        return sum(_release(context, [root], force=force, actor=actor) for root in roots)

    return until_done(attempt, "a release")


def release_value(
    context: Context, selector: Selector, value: Any, owner: Owner, *, missing_ok: bool = False, actor: str = ""
) -> int:
    """Give back by value, for callers who kept nothing else.

    :raises OutOfRange: the pool has no such value, and nobody got it from there.
    :raises NotAuthorized: it is somebody else's.
    :raises NotAllocated: nobody has it.
    """

    def attempt() -> int:
        known = context.pool(selector)
        kind = context.kind(selector.kind)
        number = kind.parse_returned(known.definition, value)
        part = known.definition.main
        stored = context.driver.get(Allocation, part.domain, hexed(number), part.prefix_len)
        facts = {"kind": selector.kind, "pool": selector.label, "value": value}
        if stored is None or stored.state.pool_id != known.pool.id or stored.state.status == "quarantined":
            if number not in part.numbers:
                raise OutOfRange(**facts)
            if missing_ok:
                return 0
            raise NotAllocated(f"{value} of {selector.kind} pool '{selector.label}' is not allocated", **facts)
        if (stored.state.owner_type, stored.state.owner_id) != owner:
            raise NotAuthorized(
                reason=f"{value} of {selector.kind} pool '{selector.label}' is not {owner.type} {owner.id}'s", **facts
            )
        _check_pair(context, stored, value)
        return _release(context, [stored], force=False, actor=actor)

    return until_done(attempt, "a release")


def commit(context: Context, allocation_id: str, generation: int | None = None, *, actor: str = "") -> Grant:
    """Make a hold final, with its children. One that is final already is fine."""

    def attempt() -> Grant:
        root = values.by_id(context, allocation_id)
        if generation is not None and root.state.generation != generation:
            raise StaleGeneration(resource="Allocation", id=allocation_id)
        txn = context.driver.begin()
        family = []
        for stored in values.families(context, [root]):
            state = stored.state
            if state.status == "held":
                state = replace(state, status="active", due_at=None, generation=state.generation + 1)
                txn.replace(stored, state)
                known = context.pool_of(state.pool_id, fresh=False)
                txn.log(context.event("commit", actor, _pool(known, state), state))
            family.append(state)
        txn.commit()
        return values.planted(context, allocation_id, family)

    return until_done(attempt, "a commit")


def in_use(context: Context, pool_id: str) -> int:
    """How many values of a pool its customers have; a VXLAN's local VLAN does not count extra."""
    found = context.driver.read(Query(Allocation, "in", (pool_id,)))
    return sum(1 for stored in found if stored.state.status != "quarantined" and not stored.state.part)


def release_pool(context: Context, known: Known, actor: str) -> int:
    """Give back whatever a pool handed out."""
    released = 0
    while True:
        found = context.driver.read(Query(Allocation, "in", (known.pool.id,)))
        used = {stored.state.id: stored for stored in found if stored.state.status != "quarantined"}
        roots = [stored for stored in used.values() if stored.state.parent_id not in used]
        if not roots:
            return released
        for root in roots:
            released += release(context, root.state.id, force=True, missing_ok=True, actor=actor)


def sweep(context: Context, known: Known, actor: str) -> int:
    """Forget values of a pool whose quarantine is over."""
    due = Query(Allocation, "due", (known.pool.id, "quarantined"), hi=context.now())
    return _delete_batches(context, context.driver.read(due), known, "sweep", actor)


def purge(context: Context, known: Known, actor: str) -> int:
    """Forget all quarantined values of a pool that is about to go."""
    resting = Query(Allocation, "due", (known.pool.id, "quarantined"))
    return _delete_batches(context, context.driver.read(resting), known, "purge", actor)


def _delete_batches(context: Context, found: list[Stored[Allocation]], known: Known, op: str, actor: str) -> int:
    for start in range(0, len(found), BATCH):
        txn = context.driver.begin()
        for stored in found[start : start + BATCH]:
            txn.delete(stored)
            txn.log(context.event(op, actor, known.pool, stored.state))
        txn.commit()
    return len(found)


def _release(context: Context, roots: list[Stored[Allocation]], *, force: bool, actor: str) -> int:
    txn = context.driver.begin()
    leaving = {stored.state.id: stored for stored in values.families(context, roots)}
    for stored in leaving.values():
        if stored.state.kind == "subnet":
            _drop_dependents(context, txn, stored.state, force, actor)
    for stored in leaving.values():
        _let_go(context, txn, stored, actor)
    txn.commit()
    return len(leaving)


def _drop_dependents(context: Context, txn: Txn, subnet: Allocation, force: bool, actor: str) -> None:
    """The address pool of a subnet goes with it."""
    for stored in txn.read(Query(Pool, "sub", (subnet.id,))):
        known = context.understand(stored)
        count = in_use(context, known.pool.id)
        if count and not force:
            raise DependencyInUse(value=context.show(subnet), count=count)
        # Not with this transaction: it has to see that nothing is left.
        release_pool(context, known, actor)
        purge(context, known, actor)
        for own in txn.read(Query(Allocation, "in", (infra.infra_pool(known.pool.id),))):
            txn.delete(own)
        txn.require_none(Query(Allocation, "in", (known.pool.id,)))
        txn.delete(stored)
        txn.log(context.event("undefine", actor, known.pool))


def _let_go(context: Context, txn: Txn, stored: Stored[Allocation], actor: str) -> None:
    state = stored.state
    known = context.pool_of(state.pool_id, fresh=False)
    config: Mapping[str, Any] = known.definition.config if known else {}
    rest, pick = config.get("quarantine_seconds", 0), config.get("pick", "")
    # A definition from memory may know nothing of a part that was added since.
    part = known.definition.parts.get(state.part) if known else None
    in_range = part is not None and state.number in part.numbers
    if in_range and (rest or pick == "longest_free"):
        txn.replace(stored, quarantined(context, state, rest))
    else:
        txn.delete(stored)
        if pick == "lowest":
            context.windows.came_back((state.pool_id, state.domain), state.number)
    txn.log(context.event("release", actor, _pool(known, state), state))


def quarantined(context: Context, state: Allocation, seconds: int) -> Allocation:
    """Ownerless: its owner may get another value from the pool at once, so the slot becomes one that nobody can ask for."""
    return replace(
        state,
        owner_type=infra.INFRA,
        owner_id=state.pool_id,
        slot=f"#{state.id}",
        tenant_id="",
        parent_id="",
        status="quarantined",
        last_owner=f"{state.owner_type}/{state.owner_id}/{state.slot}",
        generation=state.generation + 1,
        due_at=context.now() + timedelta(seconds=seconds),
    )


def _pool(known: Known | None, state: Allocation) -> Pool:
    """For the audit trail; of a pool that is gone only the id is known."""
    return known.pool if known else Pool(state.pool_id, state.kind, "", "", state.domain, {})


def _check_pair(context: Context, stored: Stored[Allocation], value: Any) -> None:
    if isinstance(value, Mapping):
        locals_ = {kid.state.number for kid in values.kids(context, stored.state.id) if kid.state.part}
        if value.get("vlan") not in locals_:
            raise NotAllocated(f"vxlan {value.get('vxlan')} has no local vlan {value.get('vlan')}", value=dict(value))
