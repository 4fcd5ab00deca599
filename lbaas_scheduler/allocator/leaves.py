"""One value of a plan: from which pool, which number, for whom; and what to do when the store says otherwise."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from lbaas_scheduler.allocator import infra, values
from lbaas_scheduler.allocator.context import Context, Known, new_id
from lbaas_scheduler.allocator.core.drivers import Clash, Query, Stored, Txn
from lbaas_scheduler.allocator.core.requests import Grant, Owner, Request, Selector
from lbaas_scheduler.allocator.core.states import Allocation, Pool, hexed
from lbaas_scheduler.allocator.texts import check_request
from lbaas_scheduler.errors import InvalidRequest, OutOfRange, PoolDraining, PoolExhausted, ValueInUse

DUE_AT_ONCE = 100
"""Values whose quarantine is over that are looked at for one that fits."""


@dataclass(frozen=True, slots=True)
class Terms:
    """What holds for a whole call.

    :ivar ttl: seconds until a hold may be taken back; None = no hold.
    """

    actor: str = ""
    request_id: str = ""
    ttl: float | None = None


Place = tuple[Selector, Owner, str, Any]
"""Whose which value of which pool: there can be one."""


def place_of(request: Request) -> Place:
    return request.selector, request.owner, request.slot, request.within and place_of(request.within)


def asked_twice(request: Request) -> InvalidRequest:
    """The error when two different requests of one transaction have the same place."""
    owner, pool = request.owner, f"{request.kind} pool '{request.selector.label}'" if request.pool else "addresses of one subnet"
    text = f"{owner.type} {owner.id} asks twice for slot '{request.slot}' of {pool}; give each value a slot of its own"
    return InvalidRequest(text, slot=request.slot)


class Leaf:
    """One value. ``part`` "" is what the request asked for, any other what its kind adds."""

    def __init__(self, request: Request, parent: Leaf | None, context: Context, part: str = "") -> None:
        check_request(request)
        self.request = request
        self.part = part
        self.parent = parent
        self.within: Leaf | None = None
        self.children: list[Leaf] = []
        self.existing: Stored[Allocation] | None = None
        self._takeover: Stored[Allocation] | None = None
        self._context = context
        self._kind = context.kind(request.kind)
        self._own_id = new_id()
        self._inner_id = ""
        self._inner: Known | None = None
        self._number: int | None = None
        self._known: Known | None = None
        self._built: Allocation | None = None

    # --- what others ask --------------------------------------------------------------------------------------------------

    @property
    def id(self) -> str:
        return self.existing.state.id if self.existing else self._own_id

    @property
    def is_new(self) -> bool:
        return self.existing is None

    @property
    def pool_id(self) -> str:
        return self._known.pool.id if self._known else ""

    @property
    def known(self) -> Known:
        assert self._known is not None
        return self._known

    @property
    def slot(self) -> str:
        """A part's slot cannot be asked for by a caller: ``#`` is refused there."""
        if not self.part:
            return self.request.slot
        return f"{self.request.slot}#{self.part}" + (f"@{self.request.host}" if self.request.host else "")

    def ids(self) -> set[str]:
        """Ids of the allocations that it would write or relies on."""
        relied = (stored.state.id for stored in (self.existing, self._takeover) if stored)
        return {self._own_id, *relied}

    def walk(self) -> Iterator[Leaf]:
        """What it needs first, then itself, then what hangs on it."""
        if self.within:
            yield from self.within.walk()
        yield self
        for child in self.children:
            yield from child.walk()

    def grant(self) -> Grant:
        allocation = self._built or (self.existing.state if self.existing else None)
        assert allocation is not None
        children = tuple(child.grant() for child in self.children)
        within = self.within.grant() if self.within else None
        return values.grant(self._context, allocation, children, created=self.is_new, within=within)

    # --- planning ---------------------------------------------------------------------------------------------------------

    def build(self, txn: Txn, terms: Terms, chosen: dict[str, set[int]]) -> None:
        """Put what it wants into the transaction.

        :param chosen: domain → numbers that this transaction takes already.
        """
        self._inner = None
        if self.existing is not None:
            self._keep(txn, terms)
            return
        known = self._known = self._resolve(txn, terms)
        self._grow(known)
        if known.pool.state != "active":
            raise PoolDraining(kind=known.pool.kind, pool=known.pool.label)
        domain = self._domain(known)
        number = self._choose(txn, known, domain, chosen.setdefault(domain, set()))
        chosen[domain].add(number)
        allocation = self._built = self._allocation(known, domain, number, terms)
        if self._takeover is not None:
            txn.replace(self._takeover, allocation)
        else:
            txn.insert(allocation)
        txn.log(self._context.event("allocate" if terms.ttl is None else "hold", terms.actor, known.pool, allocation))

    def look_up(self) -> bool:
        """Whether the owner has a value in this slot already; it is kept then."""
        known = self._find()
        if known is None:
            return False
        owner, slot = self.request.owner, self.slot
        self.existing = self._context.driver.first(Allocation, "own", owner.type, owner.id, known.pool.id, slot)
        if self.existing is None:
            return False
        self.put_back()
        self._known, self._built = known, None
        self._grow(known)
        wanted = self._requested(known)
        if wanted is not None and wanted != self.existing.state.number:
            has, wants = self._context.show(self.existing.state), self._kind.show(wanted, self.existing.state.prefix_len)
            text = f"{owner.type} {owner.id} has {has} in slot '{slot}' already; release it before asking for {wants}"
            raise ValueInUse(text, kind=self.request.kind, pool=known.pool.label, value=wants, has=has)
        return True

    def correct(self, clash: Clash) -> None:
        """The store refused it: learn from that."""
        if isinstance(clash.state, Pool):
            self.distrust()
            self._number = self._takeover = None
        elif clash.reason == "own" or (self.existing and clash.state and clash.state.key() == self.existing.state.key()):
            self.look_up()
        elif clash.reason == "":
            self._value_taken()
        else:
            self._number = self._takeover = None

    def put_back(self) -> None:
        """The number that it chose is not used after all."""
        if self._number is not None and self._known is not None and self._takeover is None:
            self._context.windows.put_back((self._known.pool.id, self._domain(self._known)), self._number)
        self._number = None

    def distrust(self) -> None:
        """Read the pool and its free values anew."""
        if self.existing is None and self.request.within is None:
            self._context.pools.forget(self.request.selector)
        if self._known is not None:
            self._context.windows.forget((self._known.pool.id, self._domain(self._known)))

    def _grow(self, known: Known) -> None:
        """Have the parts that its kind adds by the definition as it is now: it may be another one with each turn."""
        if self.part or self.within:
            return
        wanted = self._kind.parts_of(known.definition, self.request)
        grown = {child.part: child for child in self.children if child.part}
        if wanted != tuple(grown):
            parts = (grown.get(name) or Leaf(self.request, self, self._context, name) for name in wanted)
            self.children = [*parts, *(child for child in self.children if not child.part)]

    # --- its pool -----------------------------------------------------------------------------------------------------------

    def _find(self) -> Known | None:
        if self.part and self.parent:
            return self.parent._known
        if self.within is None:
            return self._context.find(self.request.selector)
        if self.within.is_new:
            return None
        scope = self.within.request.scope
        return self._context.find(Selector(self.request.kind, self.within.id, scope), fresh=True)

    def _resolve(self, txn: Txn, terms: Terms) -> Known:
        """The pool, fenced: it must be at the commit what it is now."""
        found = self._find()
        if found is not None:
            txn.require(found.stored)
            return found
        if self.within is None:
            return self._context.pool(self.request.selector)
        if self.within._inner is None:
            self.within._inner = self._new_pool(txn, terms, self.within)
        return self.within._inner

    def _new_pool(self, txn: Txn, terms: Terms, subnet: Leaf) -> Known:
        """The address pool of a subnet, which comes into being with the first address."""
        allocation = subnet.existing.state if subnet.existing else subnet._built
        assert allocation is not None
        if subnet.existing:
            txn.require(subnet.existing)
        subnet._inner_id = subnet._inner_id or new_id()
        cidr = subnet._kind.show(allocation.number, allocation.prefix_len)
        return infra.define_within(
            self._context, txn, subnet._inner_id, allocation, subnet.request.scope, str(cidr), self.request, terms.actor
        )

    def _domain(self, known: Known) -> str:
        return known.part(self.part).domain.replace("{host}", self.request.host)

    # --- its number ---------------------------------------------------------------------------------------------------------

    def _requested(self, known: Known) -> int | None:
        if self.request.value is None or self.part:
            return None
        return self._kind.parse(known.definition, self.request.value)

    def _choose(self, txn: Txn, known: Known, domain: str, chosen: set[int]) -> int:
        wanted = self._requested(known)
        if wanted is not None:
            self._check_requested(known, wanted, chosen)
            return wanted
        numbers = known.automatic(self.part)
        if self._number is not None and self._number in numbers and self._number not in chosen:
            return self._number
        self._takeover = None
        part, policy = known.part(self.part), known.definition.config["pick"]
        avoid = chosen | known.definition.reserved.keys() if self.within and not self.part else chosen
        key = (known.pool.id, domain)
        self._number = self._context.windows.pick(self._context.driver, key, part, numbers, policy, avoid)
        if self._number is None:
            self._number = self._oldest_due(txn, known, domain, avoid)
        if self._number is None:
            raise PoolExhausted(part.exhausted, kind=known.pool.kind, pool=known.pool.label, total=numbers.size)
        return self._number

    def _check_requested(self, known: Known, number: int, chosen: set[int]) -> None:
        text = self._kind.refusal(known.definition, number)
        facts = {"kind": known.pool.kind, "pool": known.pool.label, "value": self.request.value}
        if number not in known.numbers(self.part):
            raise OutOfRange(text, **facts)
        if number in chosen:
            raise ValueInUse(text, **facts)

    def _oldest_due(self, txn: Txn, known: Known, domain: str, avoid: set[int]) -> int | None:
        """Of the values whose quarantine is over, the one that rested longest."""
        due = Query(Allocation, "due", (known.pool.id, "quarantined"), hi=self._context.now(), limit=DUE_AT_ONCE + len(avoid))
        numbers = known.automatic(self.part)
        for stored in txn.read(due):
            state = stored.state
            if state.domain == domain and state.number in numbers and state.number not in avoid:
                self._takeover = stored
                return state.number
        return None

    def _value_taken(self) -> None:
        known = self.known
        wanted = self._requested(known)
        if wanted is None:
            self._context.windows.lost((known.pool.id, self._domain(known)))
            self._number = self._takeover = None
            return
        part = known.part(self.part)
        holder = self._context.driver.get(Allocation, self._domain(known), hexed(wanted), part.prefix_len)
        if holder is None or self.look_up():
            return
        state = holder.state
        if state.status == "quarantined" and state.due_at is not None and state.due_at <= self._context.now():
            self._takeover = holder
            return
        text = self._kind.refusal(known.definition, wanted)
        raise ValueInUse(text, kind=known.pool.kind, pool=known.pool.label, value=self.request.value, status=state.status)

    # --- its allocation -----------------------------------------------------------------------------------------------------

    def _allocation(self, known: Known, domain: str, number: int, terms: Terms) -> Allocation:
        request, now = self.request, self._context.now()
        return Allocation(
            id=self._own_id,
            kind=request.kind,
            domain=domain,
            value=hexed(number),
            prefix_len=known.part(self.part).prefix_len,
            pool_id=known.pool.id,
            owner_type=request.owner.type,
            owner_id=request.owner.id,
            slot=self.slot,
            # What a kind adds does not count against the tenant's quota.
            tenant_id="" if self.part else request.tenant_id,
            part=self.part,
            status="active" if terms.ttl is None else "held",
            parent_id=self._parent_id(),
            request_id=terms.request_id,
            created_at=now,
            due_at=None if terms.ttl is None else now + timedelta(seconds=terms.ttl),
        )

    def _parent_id(self) -> str:
        return self.parent.id if self.parent else ""

    def _keep(self, txn: Txn, terms: Terms) -> None:
        """It is there. Asked for without a time limit, a hold becomes final."""
        assert self.existing is not None
        state = self.existing.state
        if state.status == "held" and terms.ttl is None:
            kept = replace(state, status="active", due_at=None, generation=state.generation + 1)
            txn.replace(self.existing, kept)
            txn.log(self._context.event("commit", terms.actor, self.known.pool, kept))
            self._built = kept
        elif self.parent or self.children:
            # What comes with others may have gone with them. Costs nothing where nothing else is written.
            txn.require(self.existing)
