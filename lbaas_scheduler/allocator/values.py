"""Allocations as callers see them."""

from __future__ import annotations

from collections.abc import Sequence

from lbaas_scheduler.allocator.context import Context
from lbaas_scheduler.allocator.core.drivers import Query, Stored
from lbaas_scheduler.allocator.core.requests import Grant, Selector, owner_of
from lbaas_scheduler.allocator.core.states import Allocation, RequestLog, hexed
from lbaas_scheduler.errors import InvalidRequest, NotAllocated


def grant(
    context: Context,
    allocation: Allocation,
    children: Sequence[Grant] = (),
    *,
    created: bool = False,
    within: Grant | None = None,
) -> Grant:
    return Grant(
        id=allocation.id,
        kind=allocation.kind,
        value=context.show(allocation),
        generation=allocation.generation,
        status=allocation.status,
        pool_id=allocation.pool_id,
        owner=owner_of(allocation),
        slot=allocation.slot,
        part=allocation.part,
        due_at=allocation.due_at,
        created=created,
        children=tuple(children),
        within=within,
        last_owner=allocation.last_owner,
    )


def by_id(context: Context, allocation_id: str) -> Stored[Allocation]:
    """:raises NotAllocated: it is not, or not any more."""
    if not isinstance(allocation_id, str):
        raise InvalidRequest(f"The id of an allocation is a text, not {allocation_id!r:.80}")
    found = context.driver.first(Allocation, "id", allocation_id)
    if found is None or found.state.status == "quarantined":
        raise NotAllocated(id=allocation_id[:80])
    return found


def holder(context: Context, selector: Selector, value: object) -> Grant | None:
    known = context.pool(selector)
    number, part = context.kind(selector.kind).parse(known.definition, value), known.definition.main
    found = context.driver.get(Allocation, part.domain, hexed(number), part.prefix_len)
    return None if found is None or found.state.status == "quarantined" else grant(context, found.state)


def kids(context: Context, allocation_id: str) -> list[Stored[Allocation]]:
    return context.driver.read(Query(Allocation, "kid", (allocation_id,)))


def families(context: Context, roots: Sequence[Stored[Allocation]]) -> list[Stored[Allocation]]:
    """Allocations and all that hangs on them, children before their parents. One read for each generation."""
    generations, parents = [list(roots)], {stored.state.id for stored in roots}
    known: set[str] = set()
    while parents:
        found = context.driver.read(Query(Allocation, "kid", among=tuple(parents)))
        # Not twice: what hangs on itself by a damaged row must not keep this from ending.
        generations.append([stored for stored in found if stored.state.parent_id in parents and stored.state.id not in known])
        known |= {stored.state.id for stored in generations[-1]}
        # Nothing hangs on what a kind added itself.
        parents = {stored.state.id for stored in generations[-1] if not stored.state.part}
    return [stored for generation in reversed(generations) for stored in generation]


def tree(context: Context, root: Stored[Allocation]) -> Grant:
    """An allocation with its children."""
    return planted(context, root.state.id, [stored.state for stored in families(context, [root])])


def planted(context: Context, root_id: str, family: Sequence[Allocation]) -> Grant:
    """The tree of some allocations that were read or written already; children come before their parents."""
    grown: dict[str, list[Grant]] = {}
    for state in family:
        children = sorted(grown.pop(state.id, []), key=lambda child: (not child.part, child.id))
        grown.setdefault(state.parent_id if state.id != root_id else "", []).append(grant(context, state, children))
    return grown[""][-1]


def answer(context: Context, request_id: str) -> list[Grant] | None:
    """What a request with this id got; None = it is unknown by now.

    :raises NotAllocated: it was released since; a request id is used once.
    """
    logged = context.driver.get(RequestLog, request_id)
    if logged is None:
        return None
    try:
        return [tree(context, by_id(context, allocation_id)) for allocation_id in logged.state.result]
    except NotAllocated as error:
        text = f"Request id '{request_id}' was answered with {error.details['id']}, which was given back since; take another id"
        raise NotAllocated(text, **error.details) from error
