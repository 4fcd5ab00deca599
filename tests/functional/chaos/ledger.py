"""What clients were told, and with it what must be there in the end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

THERE, MAYBE, GONE = "there", "maybe", "gone"


@dataclass
class Entry:
    """One object whose creation was acknowledged.

    :ivar values: attribute → what it may be. More than one only where a change got no answer.
    :ivar state: ``maybe`` where a deletion got no answer.
    """

    noun: str
    id: str
    values: dict[str, list[Any]] = field(default_factory=dict)
    state: str = THERE
    parent: str = ""
    """Of a member or a VIP: its pool."""

    def changed(self, values: Mapping[str, Any], *, known: bool) -> None:
        """A change was acknowledged, or may have been made."""
        for name, value in values.items():
            doubtful = len(self.values.get(name, ())) > 1
            # A change without an answer may still be made after later ones: from then on anything tried is possible.
            self.values[name] = [value] if known and not doubtful else [*self.values.get(name, ()), value]

    def deleted(self, *, known: bool) -> None:
        self.state = GONE if known or self.state == GONE else MAYBE


class Ledger:
    """Of one client; nobody else touches what is in it."""

    def __init__(self) -> None:
        self.entries: dict[str, Entry] = {}

    def add(self, noun: str, id_: str, values: Mapping[str, Any], parent: str = "") -> Entry:
        entry = Entry(noun, id_, {name: [value] for name, value in values.items()}, parent=parent)
        self.entries[id_] = entry
        return entry

    def living(self, noun: str) -> list[Entry]:
        """Those that are known to be there, in the order of their creation."""
        return [entry for entry in self.entries.values() if entry.noun == noun and entry.state == THERE]

    def children(self, pool_id: str) -> list[Entry]:
        return [entry for entry in self.entries.values() if entry.parent == pool_id]
