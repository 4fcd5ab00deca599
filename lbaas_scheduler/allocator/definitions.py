"""Defining, resizing and removing pools: rare, and checked against everything else in their domains.

Each reads what it needs, moves the fence of every domain it touches, and commits once. Who was overtaken starts again from
reading.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from lbaas_scheduler.allocator import claims, infra, releases
from lbaas_scheduler.allocator.context import Context, Known, new_id, normalised
from lbaas_scheduler.allocator.core.drivers import Collision, Query, Stored, Txn
from lbaas_scheduler.allocator.core.requests import Selector
from lbaas_scheduler.allocator.core.resource import Definition
from lbaas_scheduler.allocator.core.spans import Spans, listing
from lbaas_scheduler.allocator.core.states import Allocation, Pool, hexed
from lbaas_scheduler.allocator.core.tries import until_done
from lbaas_scheduler.allocator.texts import check_selector
from lbaas_scheduler.errors import AlreadyDefined, DependencyInUse, InvalidConfig, PoolBusy, ValueInUse

T = TypeVar("T")


def define(context: Context, selector: Selector, config: Mapping[str, Any], actor: str = "") -> Pool:
    """Make a pool. The same definition again is fine.

    :raises AlreadyDefined: there is one with another definition.
    :raises InvalidConfig: says what is wrong.
    :raises Overlap: another pool of a domain has some of the values.
    """
    kind = context.kind(selector.kind)
    check_selector(selector)
    draft = Pool(new_id(), selector.kind, selector.scope, selector.name, "", {})
    definition = normalised(kind, draft, config)
    pool = replace(draft, domain=definition.main.domain, config=definition.config)

    def attempt() -> Pool:
        present = context.find(selector, fresh=True)
        if present is not None:
            if present.definition.config == definition.config:
                return present.pool
            raise AlreadyDefined(id=selector.label, kind=selector.kind)
        txn = context.driver.begin()
        kind.check(txn, pool, definition)
        claims.move(context, txn, pool, None, definition)
        txn.insert(pool)
        infra.reserve(context, txn, pool, definition, dict(definition.reserved))
        txn.log(context.event("define", actor, pool, note=_text(definition)))
        txn.commit()
        return pool

    return _repeat(context, selector, attempt)


def redefine(context: Context, selector: Selector, config: Mapping[str, Any], *, drain: bool = False, actor: str = "") -> Pool:
    """Give a pool another definition while it is in use.

    :param drain: keep values that are in use outside of the new range until they are released; else they are a reason to refuse.
    :raises ValueInUse: names them.
    :raises PoolBusy: what is to change cannot change while anything is in use.
    """
    kind = context.kind(selector.kind)

    def attempt() -> Pool:
        known = context.pool(selector, fresh=True)
        definition = normalised(kind, known.pool, config)
        if definition.config == known.pool.config:
            return known.pool
        pool = replace(
            known.pool, domain=definition.main.domain, config=definition.config, generation=known.pool.generation + 1
        )  # fmt: skip
        releases.sweep(context, known, actor)
        txn = context.driver.begin()
        _check_moves(context, txn, known, definition)
        _check_shrinks(context, txn, known, definition, drain)
        kind.check(txn, pool, definition)
        claims.move(context, txn, pool, known.definition, definition)
        _move_reserved(context, txn, pool, known.definition, definition)
        txn.replace(known.stored, pool)
        txn.log(context.event("redefine", actor, pool, note=_text(definition)))
        txn.commit()
        context.windows.forget((pool.id, pool.domain))
        return pool

    return _repeat(context, selector, attempt)


def undefine(context: Context, selector: Selector, *, drain: bool = False, force: bool = False, actor: str = "") -> bool:
    """Remove a pool.

    :param drain: if it is in use, let it hand out nothing more; :func:`~lbaas_scheduler.allocator.reconcile.reconcile` removes
        it with its last allocation.
    :param force: release whatever is in use first, children before their parents.
    :returns: whether it is gone.
    :raises PoolBusy: it is in use.
    """

    def attempt() -> bool:
        known = context.pool(selector, fresh=True)
        count = releases.in_use(context, known.pool.id)
        if count and force:
            releases.release_pool(context, known, actor)
        elif count and drain:
            return _drain(context, known, actor)
        elif count:
            raise PoolBusy(kind=known.pool.kind, pool=known.pool.label, count=count)
        releases.purge(context, known, actor)
        txn = context.driver.begin()
        _remove(context, txn, known, actor)
        txn.commit()
        context.pools.forget(selector)
        return True

    return _repeat(context, selector, attempt)


def _remove(context: Context, txn: Txn, known: Known, actor: str) -> None:
    pool = known.pool
    if pool.carved:
        raise DependencyInUse(value=f"{pool.kind} pool '{pool.label}'", count=len(pool.carved))
    claims.move(context, txn, pool, known.definition, None)
    for stored in txn.read(Query(Allocation, "in", (infra.infra_pool(pool.id),))):
        txn.delete(stored)
    txn.require_none(Query(Allocation, "in", (pool.id,)))
    txn.delete(known.stored)
    txn.log(context.event("undefine", actor, pool))


def _drain(context: Context, known: Known, actor: str) -> bool:
    if known.pool.state != "draining":
        pool = replace(known.pool, state="draining", generation=known.pool.generation + 1)
        txn = context.driver.begin()
        txn.replace(known.stored, pool)
        txn.log(context.event("drain", actor, pool))
        txn.commit()
    return False


def _check_moves(context: Context, txn: Txn, known: Known, definition: Definition) -> None:
    """A value in use cannot get another domain or length."""
    old = known.definition
    names = old.parts.keys() | definition.parts.keys()
    if all(_place(old, name) == _place(definition, name) for name in names):
        return
    count = releases.in_use(context, known.pool.id)
    if count:
        kind = context.kind(known.pool.kind)
        text = f"Unable to update {known.pool.kind} pool '{known.pool.label}' due to existing {count} {kind.plural}"
        raise PoolBusy(text, kind=known.pool.kind, pool=known.pool.label, count=count)
    txn.require_none(Query(Allocation, "in", (known.pool.id,)))


def _place(definition: Definition, name: str) -> tuple[Any, ...] | None:
    part = definition.parts.get(name)
    return None if part is None else (part.domain, part.prefix_len, part.numbers.step, part.role)


def _check_shrinks(context: Context, txn: Txn, known: Known, definition: Definition, drain: bool) -> None:
    for name, part in known.definition.parts.items():
        after = definition.parts.get(name)
        if after is None or after.domain != part.domain:
            continue
        removed = part.numbers.minus(after.numbers)
        if not removed:
            continue
        outside = Spans.of(known.pool.carved).overlap(removed) if not name else None
        if outside:
            raise InvalidConfig(kind=known.pool.kind, reason="a pool that was carved out of this one would lie outside of it")
        if not drain:
            _refuse_used(context, txn, known, name, removed)


def _refuse_used(context: Context, txn: Txn, known: Known, name: str, removed: Spans) -> None:
    part = known.part(name)
    kind = context.kind(known.pool.kind)
    of_pool = [stored.state for stored in txn.read(Query(Allocation, "in", (known.pool.id,))) if stored.state.part == name]
    # On which hosts a value of each host may be taken meanwhile cannot be known: all that are in use count.
    by_host = "{host}" in part.domain
    used = [state.number for state in of_pool if by_host or state.number in removed]
    if used:
        text = listing(used, lambda number: str(kind.show(number, part.prefix_len)), part.numbers.step)
        raise ValueInUse(
            f"{text} of {known.pool.kind} pool '{known.pool.label}' would be outside but is in use; release it, or drain",
            kind=known.pool.kind, pool=known.pool.label, value=text,
        )  # fmt: skip
    if by_host:
        txn.require_none(Query(Allocation, "in", (known.pool.id,)))
        return
    taken = set(known.definition.reserved) if not name else _of_others(txn, part.domain, removed)
    for span in removed.minus(Spans.of((number, number) for number in taken)).items:
        txn.require_none(Query(Allocation, prefix=(part.domain,), lo=hexed(span.lo), hi=hexed(span.hi)))


def _of_others(txn: Txn, domain: str, removed: Spans) -> set[int]:
    """Numbers that other pools of a shared domain have there: fenced, so that none becomes ours before the commit."""
    span = Query(Allocation, prefix=(domain,), lo=hexed(removed.items[0].lo), hi=hexed(removed.items[-1].hi))
    others = [stored for stored in txn.read(span) if stored.state.number in removed]
    for stored in others:
        txn.require(stored)
    return {stored.state.number for stored in others}


def _move_reserved(context: Context, txn: Txn, pool: Pool, old: Definition, new: Definition) -> None:
    moved = old.main.domain != new.main.domain or old.main.prefix_len != new.main.prefix_len
    kept = {} if moved else {number: what for number, what in new.reserved.items() if old.reserved.get(number) == what}
    by_number: dict[int, Stored[Allocation]] = {
        stored.state.number: stored for stored in txn.read(Query(Allocation, "in", (infra.infra_pool(pool.id),)))
    }
    for number, stored in by_number.items():
        if number not in kept:
            txn.delete(stored)
    infra.reserve(context, txn, pool, new, {number: what for number, what in new.reserved.items() if number not in kept})


def _text(definition: Definition) -> str:
    return ", ".join(f"{word}={value}" for word, value in definition.config.items() if value not in ("", {}, []))[:255]


def _repeat(context: Context, selector: Selector, attempt: Callable[[], T]) -> T:
    def afresh() -> T:
        try:
            return attempt()
        finally:
            context.pools.forget(selector)

    what = f"a definition of {selector.kind} pool '{selector.label}'"
    return until_done(afresh, what, lambda collision: _refuse_taken(context, collision))


def _refuse_taken(context: Context, collision: Collision) -> None:
    """A value that a pool wants for itself may be somebody's already: trying again would not help."""
    for clash in collision.clashes:
        state = clash.state
        if isinstance(state, Allocation) and state.owner_type == infra.INFRA and clash.reason == "":
            holder = context.driver.get(Allocation, *state.key())
            if holder is not None and holder.state.owner_type != infra.INFRA:
                value = context.show(state)
                text = f"{state.slot} {value} is in use by {holder.state.owner_type} {holder.state.owner_id}"
                raise ValueInUse(text, kind=state.kind, value=value)
