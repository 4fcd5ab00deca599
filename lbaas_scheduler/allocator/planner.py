"""A tree of requests becomes one transaction.

Nothing is read that need not be: the plan assumes that the pool is as this process remembers it, that the owner has no value
yet, and that the next value of the window is free. The store refuses what is wrong and names it; only that is planned anew.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Sequence

from lbaas_scheduler.allocator import quotas, values
from lbaas_scheduler.allocator.context import Context
from lbaas_scheduler.allocator.core.drivers import Clash, Collision, Txn
from lbaas_scheduler.allocator.core.requests import Grant, Request
from lbaas_scheduler.allocator.core.states import Allocation, Note, Pool, RequestLog
from lbaas_scheduler.allocator.leaves import Leaf, Place, Terms, asked_twice, place_of
from lbaas_scheduler.errors import Contention, LBaaSError

TRIES = 10
FRESH_AFTER = 3
"""Collisions after which nothing that is remembered is trusted."""

FIRST_PAUSE_SECONDS = 0.001
DEADLINE_SECONDS = 30.0


class Planner:
    """Serves one call of ``allocate_many``."""

    def __init__(self, context: Context, requests: Sequence[Request], terms: Terms) -> None:
        self._context = context
        self._terms = terms
        self.collisions = 0
        self._planned: dict[Place, Leaf] = {}
        self._roots = [self._leaf(request, None) for request in requests]

    def run(self) -> list[Grant]:
        """:raises Contention: others were faster, :data:`TRIES` times."""
        try:
            return self._run()
        except LBaaSError:
            for leaf in reversed(list(self._leaves())):
                leaf.put_back()
            raise

    def _run(self) -> list[Grant]:
        give_up_at = time.monotonic() + DEADLINE_SECONDS
        for turn in range(TRIES):
            try:
                self._commit()
            except Collision as collision:
                self.collisions += 1
                answered = self._learn(collision.clashes)
                if answered is not None:
                    return answered
            else:
                return [root.grant() for root in self._roots]
            if time.monotonic() > give_up_at:
                break
            if turn:
                time.sleep(random.uniform(0, FIRST_PAUSE_SECONDS * 2**turn))  # noqa: S311  # spreads retries, guards nothing
        raise Contention(dependency="The allocator", reason=f"{self.collisions} tries were overtaken", tries=self.collisions)

    def _leaf(self, request: Request, parent: Leaf | None) -> Leaf:
        """The same one for the same request: two addresses may lie in one subnet."""
        leaf = Leaf(request, parent, self._context)
        place = place_of(request)
        planned = self._planned.setdefault(place, leaf)
        if planned is not leaf:
            if planned.request != request or planned.parent is not parent:
                raise asked_twice(request)
            return planned
        if request.within is not None:
            leaf.within = self._leaf(request.within, None)
            leaf.within.look_up()
        leaf.children = [self._leaf(child, leaf) for child in request.children]
        return leaf

    def _leaves(self) -> Iterator[Leaf]:
        """Each of them once, what it needs before it. A kind's parts are known when the leaf before them is built."""
        seen: set[Leaf] = set()
        for leaf in (leaf for root in self._roots for leaf in root.walk()):
            if leaf not in seen:
                seen.add(leaf)
                yield leaf

    def _commit(self) -> None:
        txn = self._context.driver.begin()
        try:
            self._build(txn)
        except LBaaSError:
            # Whoever has it already gets it again, whatever the pool's state is by now.
            if not self._look_up_all():
                raise
            txn = self._context.driver.begin()
            self._build(txn)
        txn.commit()

    def _build(self, txn: Txn) -> None:
        chosen: dict[str, set[int]] = {}
        for leaf in self._leaves():
            leaf.build(txn, self._terms, chosen)
        quotas.check(txn, [leaf for leaf in self._leaves() if leaf.is_new])
        if self._terms.request_id and txn.changes:
            result = tuple(root.id for root in self._roots)
            txn.insert(RequestLog(self._terms.request_id, result, self._context.now()))

    def _look_up_all(self) -> bool:
        """Whether an owner turned out to have a value already."""
        found = [leaf.look_up() for leaf in self._leaves() if leaf.is_new]
        return any(found)

    def _learn(self, clashes: Sequence[Clash]) -> list[Grant] | None:
        """Correct what was wrong. :returns: the answer, if the request was answered before."""
        for clash in clashes:
            if isinstance(clash.state, RequestLog):
                return values.answer(self._context, clash.state.request_id)
            if not isinstance(clash.state, Note):
                self._correct(clash)
        if self.collisions >= FRESH_AFTER:
            for leaf in self._leaves():
                leaf.distrust()
        return None

    def _correct(self, clash: Clash) -> None:
        for leaf in self._concerned(clash):
            leaf.correct(clash)

    def _concerned(self, clash: Clash) -> list[Leaf]:
        state = clash.state
        if isinstance(state, Allocation):
            return [leaf for leaf in self._leaves() if state.id in leaf.ids()]
        if isinstance(state, Pool):
            return [leaf for leaf in self._leaves() if leaf.pool_id == state.id]
        return []
