"""The key tree: one place that knows where every state lives, and that no two live in the same place.

A store with plain keys (memory, etcd) keeps a state's document under ``/lbaas_scheduler/1/<keyspace>/<key fields>`` and, for each
index, a pointer to that under ``/lbaas_scheduler/1/<keyspace>.<index>/<index fields>``. SQL keeps it in a table.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any
from urllib.parse import unquote

from lbaas_scheduler.allocator.core.drivers import Query
from lbaas_scheduler.allocator.core.memo import memo
from lbaas_scheduler.allocator.core.states import (
    Allocation,
    Claim,
    Domain,
    Event,
    Index,
    Note,
    Pool,
    RequestLog,
    State,
    part_text,
)
from lbaas_scheduler.errors import ConfigurationError

ROOT = "/lbaas_scheduler/1/"
"""1 is the version of the layout."""

_REGISTRY: dict[str, type[State]] = {}


def register(cls: type[State]) -> type[State]:
    """Give a state its place. May be used as a decorator by kinds that bring states of their own.

    :raises ConfigurationError: the place is taken, or lies inside of another one's.
    """
    name = cls.keyspace.name
    for branch in _branches(cls):
        for taken, owner in ((other, cls_) for cls_ in _REGISTRY.values() for other in _branches(cls_)):
            if owner is not cls and (branch.startswith(taken) or taken.startswith(branch)):
                raise ConfigurationError(reason=f"keyspaces {branch} of {cls.__name__} and {taken} of {owner.__name__} overlap")
    _REGISTRY[name] = cls
    return cls


def registered() -> tuple[type[State], ...]:
    return tuple(cls for _, cls in sorted(_REGISTRY.items()))


def tree() -> str:
    """Every key there can be, one a line."""
    lines = []
    for cls in registered():
        lines.append(f"{_branch(cls, '')}<{'>/<'.join(cls.keyspace.key)}>  {cls.__name__}")
        lines += [
            f"{_branch(cls, index.name)}<{'>/<'.join(index.fields)}>  {'unique' if index.unique else 'index'}"
            for index in cls.keyspace.indexes
        ]
    return "\n".join(lines)


def primary(state: State) -> str:
    return _branch(type(state), "") + "/".join(map(part_text, state.key()))


def pointer(state: State, index: Index) -> str | None:
    """The key under an index; None = not listed there."""
    if index.only_if and not getattr(state, index.only_if):
        return None
    return _branch(type(state), index.name) + "/".join(part_text(getattr(state, name)) for name in index.fields)


def pointers(state: State) -> Iterator[tuple[Index, str]]:
    """Each index that lists the state, with the key there."""
    for index in state.keyspace.indexes:
        key = pointer(state, index)
        if key is not None:
            yield index, key


def bounds(query: Query[Any]) -> tuple[str, str]:
    """First key (included) and last key (excluded) of a query."""
    index = query.cls.keyspace.named(query.index)
    start = _branch(query.cls, query.index) + "".join(part_text(value) + "/" for value in query.prefix)
    if len(query.prefix) == len(index.fields):
        return start[:-1], start[:-1] + "\0"
    # "/" ends every piece but the last, and "0" follows "/": so a bound never cuts into a longer piece.
    first = start if query.lo is None else start + part_text(query.lo)
    if query.hi is None:
        return first, start[:-1] + "0"
    last = start + part_text(query.hi)
    return first, last + ("0" if len(query.prefix) + 1 < len(index.fields) else "\0")


def parts(cls: type[State], rest: str) -> tuple[Any, ...]:
    """A key's fields, from what follows its branch. Texts and numbers only."""
    types = [cls.__annotations__[name] for name in cls.keyspace.key]
    pieces = zip(types, rest.split("/"), strict=True)
    # Unquoting is slow, and hardly ever needed.
    return tuple(int(piece) - 1 if type_ == "int" else _unquoted(piece) if "%" in piece else piece for type_, piece in pieces)


@lru_cache(maxsize=10_000)
def _unquoted(piece: str) -> str:
    return "" if piece == "%" else unquote(piece)


@memo
def _branch(cls: type[State], index: str) -> str:
    return f"{ROOT}{cls.keyspace.name}{'.' if index else ''}{index}/"


def _branches(cls: type[State]) -> list[str]:
    return [_branch(cls, ""), *(_branch(cls, index.name) for index in cls.keyspace.indexes)]


for _cls in (Pool, Claim, Domain, Allocation, Event, RequestLog, Note):
    register(_cls)
