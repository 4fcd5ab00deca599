"""Which pool has which stretch of a domain: refused is what overlaps, whoever's it is."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from lbaas_scheduler.allocator.context import Context, Known
from lbaas_scheduler.allocator.core.drivers import Query, Stored, Txn
from lbaas_scheduler.allocator.core.requests import Selector
from lbaas_scheduler.allocator.core.resource import Definition
from lbaas_scheduler.allocator.core.spans import Spans
from lbaas_scheduler.allocator.core.states import Allocation, Claim, Domain, Pool, hexed
from lbaas_scheduler.errors import InvalidConfig, NotDefined, Overlap, ValueInUse


def move(context: Context, txn: Txn, pool: Pool, old: Definition | None, new: Definition | None) -> None:
    """Replace the claims of a pool's old definition by those of the new one; None = there is none.

    :raises Overlap: somebody else has some of it.
    """
    if pool.parent_allocation_id:
        return  # alone in its domain
    _carve(context, txn, pool, old, new)
    before, after = claims_of(pool, old), claims_of(pool, new)
    for domain in sorted({claim.domain for claim in before | after}):
        _fence(txn, domain)
        present = txn.read(Query(Claim, prefix=(domain,)))
        for claim in sorted((claim for claim in after if claim.domain == domain), key=lambda claim: claim.lo):
            _refuse_overlap(context, txn, pool, claim, (stored.state for stored in present))
        for stored in present:
            if stored.state in before - after:
                txn.delete(stored)
        for claim in after - before:
            if claim.domain == domain:
                txn.insert(claim)


def claims_of(pool: Pool, definition: Definition | None) -> set[Claim]:
    if definition is None:
        return set()
    return {
        Claim(part.domain, hexed(span.lo), hexed(span.hi), pool.id, part.role)
        for part in definition.parts.values()
        for span in part.claims.items
    }


def _fence(txn: Txn, name: str) -> None:
    stored = txn.get(Domain, name)
    if stored is None:
        txn.insert(Domain(name))
    else:
        txn.replace(stored, replace(stored.state, version=stored.state.version + 1))


def _refuse_overlap(context: Context, txn: Txn, pool: Pool, claim: Claim, others: Iterable[Claim]) -> None:
    for other in others:
        if other.pool_id == pool.id or other.hi < claim.lo or claim.hi < other.lo:
            continue
        owner = txn.first(Pool, "uid", other.pool_id)
        if owner is None or may_overlap(pool, claim, owner.state, other):
            continue
        kind = context.kind(owner.state.kind)
        prefix_len = -1 if owner.state.kind != "subnet" else 128
        at = max(int(claim.lo, 16), int(other.lo, 16))
        raise Overlap(
            what="the range",
            kind=pool.kind,
            pool=pool.label,
            kind_of_other=owner.state.kind,
            other=owner.state.label,
            at=str(kind.show(at, prefix_len)).removesuffix("/128"),
            domain=claim.domain,
        )


def may_overlap(pool: Pool, claim: Claim, owner: Pool, other: Claim) -> bool:
    """Local VLANs are shared, and a pool lies inside the one it was carved out of."""
    if claim.role == other.role == "local":
        return True
    if claim.role == "child" and other.role == "alloc":
        return bool(pool.config.get("parent") == owner.name and pool.scope == owner.scope)
    if claim.role == "alloc" and other.role == "child":
        return bool(owner.config.get("parent") == pool.name and pool.scope == owner.scope)
    return False


def _carve(context: Context, txn: Txn, pool: Pool, old: Definition | None, new: Definition | None) -> None:
    """Take from the parent what the child gets, and give back what it had."""
    names = {str(definition.config.get("parent", "")) for definition in (old, new) if definition is not None} - {""}
    for name in sorted(names):
        parent = context.find(Selector(pool.kind, name, pool.scope), fresh=True)
        if parent is None:
            raise NotDefined(kind=pool.kind, id=Selector(pool.kind, name, pool.scope).label)
        lost = _carved_from(name, old)
        taken = _carved_from(name, new)
        if taken.minus(parent.definition.main.numbers):
            reason = f"it does not lie inside of its parent '{parent.pool.label}'"
            raise InvalidConfig(kind=pool.kind, reason=reason)
        _refuse_used(context, txn, parent, taken.minus(lost))
        carved = Spans.of([*Spans.of(parent.pool.carved).minus(lost).items, *taken.items])
        changed = replace(
            parent.pool, carved=tuple((span.lo, span.hi) for span in carved.items), generation=parent.pool.generation + 1
        )  # fmt: skip
        txn.replace(parent.stored, changed)
        context.windows.forget((parent.pool.id, parent.pool.domain))
        context.pools.forget(Selector(pool.kind, name, pool.scope))


def _carved_from(name: str, definition: Definition | None) -> Spans:
    if definition is None or definition.config.get("parent") != name:
        return Spans()
    return definition.main.numbers


def _refuse_used(context: Context, txn: Txn, parent: Known, spans: Spans) -> None:
    for span in spans.items:
        query = Query(Allocation, prefix=(parent.pool.domain,), lo=hexed(span.lo), hi=hexed(span.hi), limit=1)
        used: list[Stored[Allocation]] = txn.read(query)
        if used:
            value = context.show(used[0].state)
            text = f"{value} of {parent.pool.kind} pool '{parent.pool.label}' is in use and cannot be carved out"
            raise ValueInUse(text, kind=parent.pool.kind, pool=parent.pool.label, value=value)
        txn.require_none(query)
