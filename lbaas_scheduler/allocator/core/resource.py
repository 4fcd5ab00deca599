"""The interface of a kind of resource: what can be in a pool, and how a value is written."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from lbaas_scheduler.allocator.core.drivers import Txn
from lbaas_scheduler.allocator.core.requests import Request
from lbaas_scheduler.allocator.core.spans import Spans
from lbaas_scheduler.allocator.core.states import Pool

MAIN = ""
"""Name of the part that requests ask for."""

PICKS = ("random", "lowest", "next_fit", "longest_free")


@dataclass(frozen=True, slots=True)
class Part:
    """One set of numbers of a pool.

    :ivar domain: where each of them is unique; ``{host}`` stands for the request's host.
    :ivar prefix_len: of each value; −1 = it has none.
    :ivar claims: what no other pool of the domain may have; differs from ``numbers`` by values that are never handed out.
    :ivar role: of the claims, see :class:`~lbaas_scheduler.allocator.core.states.Claim`.
    :ivar exhausted: the text when nothing is left.
    :ivar automatic: which of ``numbers`` those get who ask for no certain one; None = any.
    """

    domain: str
    numbers: Spans
    claims: Spans
    exhausted: str
    prefix_len: int = -1
    role: str = "alloc"
    automatic: Spans | None = None


@dataclass(frozen=True, slots=True)
class Definition:
    """A pool's configuration, understood.

    :ivar config: normalised: equal definitions have equal ones. JSON-able. ``pick``, ``quarantine_seconds`` and ``quotas`` are
        common to all kinds and already checked.
    :ivar parts: by name; ``""`` is the main one.
    :ivar reserved: number → for what: values of the main part that are allocated with the pool and go with it.
    """

    config: Mapping[str, Any]
    parts: Mapping[str, Part]
    reserved: Mapping[int, str]

    @property
    def main(self) -> Part:
        return self.parts[MAIN]


class Resource(ABC):
    """A kind. One object per kind and process; holds no state of its own, and knows no store.

    Everything here is called often, from any thread, and must neither block nor call out; :meth:`check` alone may read, through
    the transaction that it is handed.
    """

    kind: ClassVar[str]
    plural: ClassVar[str]
    pick: ClassVar[str] = "random"
    """Which free value is taken where the pool does not say."""

    @abstractmethod
    def define(self, pool: Pool, config: Mapping[str, Any]) -> Definition:
        """Understand the kind's own part of a configuration. Called again for every stored pool, with its normalised one.

        :raises InvalidConfig: says what is wrong and what would be right.
        """

    @abstractmethod
    def parse(self, definition: Definition, value: Any) -> int:
        """A value that a caller asks for, as a number. Not checked against the pool's range.

        :raises InvalidRequest: it is no value of this kind.
        """

    def parse_returned(self, definition: Definition, value: Any) -> int:
        """As :meth:`parse`, for a value that is given back: there a kind may understand more ways to say it."""
        return self.parse(definition, value)

    @abstractmethod
    def show(self, number: int, prefix_len: int) -> Any:
        """The reverse, JSON-able."""

    def refusal(self, definition: Definition, number: int) -> str:
        """The text when a requested value is taken or outside."""
        return f"requested {self.kind} not available"

    def parts_of(self, definition: Definition, request: Request) -> tuple[str, ...]:
        """Other parts that a request takes one value each of, as children of the main one."""
        return ()

    def check(self, txn: Txn, pool: Pool, definition: Definition) -> None:
        """Rules beyond "claims of one domain do not overlap", at define and resize. What is read here is fenced by the domains.

        :raises LBaaSError: the definition is refused.
        """

    def invalid(self, reason: str) -> str:
        """How this kind begins the text of an InvalidConfig."""
        return f"Invalid {self.kind} resource config: {reason}"
