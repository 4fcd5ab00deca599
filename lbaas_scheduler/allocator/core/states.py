"""What is kept in a store, and where. Only a state's own declaration knows its keys; everybody else names states and indexes."""

from __future__ import annotations

import dataclasses
import re
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple, TypeVar
from urllib.parse import quote

from lbaas_scheduler.allocator.core.memo import memo


class Index(NamedTuple):
    """A second way to a state.

    :param fields: their values, in this order, are the index's key. The last one makes it unique.
    :param unique: whether a second state under the same key must be refused. False where the key cannot repeat by nature: it
        holds a random id, and comparing would only cost.
    :param only_if: name of a field; states where it is empty are not listed.
    """

    name: str
    fields: tuple[str, ...]
    unique: bool = False
    only_if: str = ""


class Keyspace(NamedTuple):
    """A state's place: the name of its branch, the fields of its key, its indexes.

    :param unique: as an index's: whether an insert has to check that the key is new.
    """

    name: str
    key: tuple[str, ...]
    indexes: tuple[Index, ...] = ()
    unique: bool = True

    def named(self, name: str) -> Index:
        """An index by name; ``""`` is the key itself."""
        if not name:
            return Index("", self.key, self.unique)
        return next(index for index in self.indexes if index.name == name)


@dataclass(frozen=True, slots=True)
class State:
    """Base of all that is kept. Frozen; ``dataclasses.replace`` makes the next version."""

    keyspace: ClassVar[Keyspace]

    def key(self) -> tuple[Any, ...]:
        return tuple(getattr(self, name) for name in self.keyspace.key)


S = TypeVar("S", bound=State)

_is_plain = re.compile(r"[A-Za-z0-9_.~:-]+").fullmatch


@dataclass(frozen=True, slots=True)
class Pool(State):
    """A definition: what may be handed out, and how.

    :ivar scope: ``cluster``, ``tenant:<id>`` or ``host:<name>``: whose it is. Data; the code is the same for all.
    :ivar config: as its kind normalised it.
    :ivar state: ``active``, or ``draining``: hands out nothing more, takes back.
    :ivar parent_allocation_id: the allocated subnet that an address pool belongs to; "" = none.
    :ivar carved: spans that pools inside this one took over: ``((lo, hi), …)``.
    """

    keyspace = Keyspace("pool", ("kind", "scope", "name"), (Index("uid", ("id",)), Index("sub", ("parent_allocation_id", "id"),
        only_if="parent_allocation_id")))  # fmt: skip

    id: str
    kind: str
    scope: str
    name: str
    domain: str
    config: Mapping[str, Any]
    state: str = "active"
    generation: int = 1
    parent_allocation_id: str = ""
    carved: tuple[tuple[int, int], ...] = ()

    @property
    def label(self) -> str:
        """As people name it."""
        return self.name if self.scope == "cluster" else f"{self.scope}/{self.name}"


@dataclass(frozen=True, slots=True)
class Claim(State):
    """A stretch of a domain that a pool has for itself. Read and written by definitions only.

    :ivar lo: 32 hexadecimal digits, as :attr:`hi`.
    :ivar role: ``alloc``; ``local``: shared with other ``local`` claims; ``child``: inside its parent's.
    """

    keyspace = Keyspace("claim", ("domain", "lo", "hi", "pool_id", "role"), (Index("of", ("pool_id", "domain", "lo", "role")),))

    domain: str
    lo: str
    hi: str
    pool_id: str
    role: str = "alloc"


@dataclass(frozen=True, slots=True)
class Domain(State):
    """Touched by every definition in it and by nothing else, so that two that overlap cannot both commit."""

    keyspace = Keyspace("dom", ("name",))

    name: str
    version: int = 1


@dataclass(frozen=True, slots=True)
class Allocation(State):
    """One value, given to one owner.

    :ivar domain: where the value is unique.
    :ivar value: 32 hexadecimal digits: the order of the text is the order of the numbers, in every store.
    :ivar prefix_len: of a subnet; −1 for all else.
    :ivar part: ``""``, or the part of the pool that a dependent value comes from.
    :ivar slot: which of its owner's values it is.
    :ivar status: ``held`` until ``due_at``; ``active``; ``quarantined``: ownerless, not to be given again before ``due_at``.
    :ivar last_owner: ``type/id/slot`` of a quarantined value.
    """

    keyspace = Keyspace(
        "val",
        ("domain", "value", "prefix_len"),
        (
            Index("id", ("id",)),
            Index("own", ("owner_type", "owner_id", "pool_id", "slot"), unique=True),
            Index("in", ("pool_id", "tenant_id", "id")),
            Index("kid", ("parent_id", "id"), only_if="parent_id"),
            Index("due", ("pool_id", "status", "due_at", "id"), only_if="due_at"),
        ),
    )

    id: str
    kind: str
    domain: str
    value: str
    prefix_len: int
    pool_id: str
    owner_type: str
    owner_id: str
    slot: str = ""
    tenant_id: str = ""
    part: str = ""
    status: str = "active"
    parent_id: str = ""
    generation: int = 1
    request_id: str = ""
    last_owner: str = ""
    created_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    due_at: datetime | None = None

    @property
    def number(self) -> int:
        return int(self.value, 16)


@dataclass(frozen=True, slots=True)
class Event(State):
    """One thing that was done: the audit trail.

    :ivar stamp: grows with time; names the event.
    """

    keyspace = Keyspace("event", ("stamp",), unique=False)

    stamp: str
    at: datetime
    actor: str
    op: str
    kind: str
    pool_id: str
    pool: str
    domain: str = ""
    value: str = ""
    prefix_len: int = -1
    owner_type: str = ""
    owner_id: str = ""
    slot: str = ""
    allocation_id: str = ""
    request_id: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class RequestLog(State):
    """The answer to a request that carried an id, so that its repetition gets the same one.

    :ivar result: ids of the allocations, in the order of the requests.
    """

    keyspace = Keyspace("req", ("request_id",))

    request_id: str
    result: tuple[str, ...]
    at: datetime


@dataclass(frozen=True, slots=True)
class Note(State):
    """Anything else, under a name of its own: fences of quotas, suspects of the reconciler, what a kind wants to keep.

    :ivar topic: notes of one topic can be read together.
    """

    keyspace = Keyspace("note", ("topic", "name"))

    topic: str
    name: str
    data: bytes = b""
    version: int = 1


def hexed(number: int) -> str:
    return f"{number:032x}"


def part_text(value: Any) -> str:
    """A field as a piece of a key: sorts as the value does, and holds no separator."""
    if isinstance(value, str):
        # Quoting is slow, and hardly ever needed.
        return value if _is_plain(value) else _quoted(value)
    if isinstance(value, datetime):
        return value.astimezone(UTC).strftime("%Y%m%dT%H%M%S.%f")
    return f"{value + 1:06d}"


@lru_cache(maxsize=10_000)
def _quoted(text: str) -> str:
    return quote(text, safe=":") or "%"


def to_document(state: State) -> dict[str, Any]:
    """As JSON can hold it, without what is as usual: defaults are a part of the layout, and must not change."""
    found = ((item, getattr(state, item.name)) for item in _declared(type(state)))
    return {item.name: _plain(value) for item, value in found if value != item.default}


def from_document(cls: type[S], document: Mapping[str, Any]) -> S:
    """The reverse; fields that this version does not know are left out, so that a newer one may write beside it."""
    types_ = _field_types(cls)
    return cls(**{name: _typed(types_[name], value) for name, value in document.items() if name in types_})


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, bytes):
        return value.hex()
    return value


def _typed(type_: Any, value: Any) -> Any:
    if value is None:
        return None
    if type_ is datetime:
        return datetime.fromisoformat(value) if isinstance(value, str) else value
    if type_ is bytes:
        return bytes.fromhex(value) if isinstance(value, str) else value
    if type_ is tuple:
        return tuple(tuple(item) if isinstance(item, list) else item for item in value)
    return value


@memo
def _declared(cls: type[State]) -> tuple[dataclasses.Field[Any], ...]:
    return dataclasses.fields(cls)


@memo
def _field_types(cls: type[State]) -> dict[str, Any]:
    """Field → its bare type."""
    hints = typing.get_type_hints(cls)
    return {item.name: _bare(hints[item.name]) for item in dataclasses.fields(cls)}


def _bare(hint: Any) -> Any:
    if isinstance(hint, types.UnionType):
        hint = next(option for option in typing.get_args(hint) if option is not type(None))
    return typing.get_origin(hint) or hint
