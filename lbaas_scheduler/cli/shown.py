"""How values look: structured for programs, readable for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cliff.columns import FormattableColumn

Row = tuple[Any, ...]


class Structure(FormattableColumn):  # type: ignore[type-arg]  # cliff 4.8 has no brackets on it
    """A list, an object or null."""

    def human_readable(self) -> str:
        return _text(self._value)

    def machine_readable(self) -> Any:
        return self._value


def cell(value: Any) -> Any:
    """Lists, objects and null, which people and programs read differently, wrapped."""
    return Structure(value) if value is None or isinstance(value, Mapping | list | tuple) else value


def rows(documents: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> list[Row]:
    return [tuple(cell(document.get(column)) for column in columns) for document in documents]


def one(document: Mapping[str, Any]) -> tuple[tuple[str, ...], Row]:
    """What cliff shows one object by: names and values."""
    names = tuple(document)
    return names, tuple(cell(document[name]) for name in names)


def _text(value: Any) -> str:
    if isinstance(value, Mapping):
        if set(value) == {"type", "id"}:
            return f"{value['type']}:{value['id']}"  # an owner, as it is written in a command
        return ", ".join(f"{name}={_nested(it)}" for name, it in value.items())
    if isinstance(value, list | tuple):
        lines = [_nested(it) for it in value]
        return ("\n" if any(isinstance(it, Mapping) for it in value) else ", ").join(lines)
    return "" if value is None else str(value)


def _nested(value: Any) -> str:
    if isinstance(value, Mapping) and set(value) == {"used", "limit"}:
        return usage(value)
    return f"({_text(value)})" if isinstance(value, Mapping) and len(value) > 1 else _text(value)


def usage(of: Mapping[str, Any]) -> str:
    """``3/10``; ∞ = no limit."""
    return f"{of['used']}/{'∞' if of['limit'] is None or of['limit'] < 0 else of['limit']}"
