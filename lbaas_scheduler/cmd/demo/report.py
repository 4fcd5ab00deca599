"""How the demo tells what it does: for people, or as one JSON document."""

from __future__ import annotations

import json
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from rich.console import Console
from rich.table import Table

from lbaas_scheduler.cmd.demo.traffic import Tally


class Unexpected(Exception):
    """Something that the demo shows did not hold. The message says what."""


@dataclass
class Record:
    """All that the JSON document holds."""

    steps: list[dict[str, Any]] = field(default_factory=list)
    placement: Mapping[str, Any] = field(default_factory=dict)
    requests: Tally = field(default_factory=Tally)

    @property
    def ok(self) -> bool:
        return bool(self.steps) and all(step["ok"] for step in self.steps)


class Reporter(ABC):
    """Keeps the record and shows it in its own way."""

    def __init__(self) -> None:
        self.record = Record()

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Time one step. An exception marks it as failed and goes on its way."""
        started = time.monotonic()
        entry = {"name": name, "ok": False, "seconds": 0.0}
        self.record.steps.append(entry)
        self.begin(name)
        try:
            yield
            entry["ok"] = True
        finally:
            entry["seconds"] = round(time.monotonic() - started, 3)
            self.end(entry)

    def count(self, tally: Tally) -> None:
        self.record.requests.add(tally)

    @abstractmethod
    def begin(self, name: str) -> None: ...

    @abstractmethod
    def end(self, entry: Mapping[str, Any]) -> None: ...

    @abstractmethod
    def say(self, text: str) -> None:
        """Tell something that was found."""

    @abstractmethod
    def table(self, title: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        """Show rows."""

    @abstractmethod
    def finish(self, error: str | None) -> None:
        """Show the result; ``error`` says why the demo ended early."""


class ForPeople(Reporter):
    """Steps, findings and tables on standard output."""

    def __init__(self) -> None:
        super().__init__()
        self._console = Console(highlight=False)

    def begin(self, name: str) -> None:
        self._console.print(f"[bold cyan]▶[/] [bold]{name}[/]")

    def end(self, entry: Mapping[str, Any]) -> None:
        mark = "[green]✓[/]" if entry["ok"] else "[red]✗[/]"
        self._console.print(f"  {mark} [dim]{entry['seconds']:.2f} s[/]")

    def say(self, text: str) -> None:
        self._console.print(f"  {text}", markup=False)

    def table(self, title: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        table = Table(*columns, title=title, title_justify="left", title_style="", box=None, padding=(0, 2))
        for row in rows:
            table.add_row(*(str(cell) for cell in row))
        self._console.print(table)

    def finish(self, error: str | None) -> None:
        requests = self.record.requests
        if error is None:
            self._console.print(f"[bold green]All held.[/] {requests.succeeded} of {requests.sent} requests were served.")
        else:
            self._console.print("[bold red]Something did not hold:[/]", end=" ")
            self._console.print(error, markup=False)


class AsJson(Reporter):
    """One JSON document on standard output when all is over, and nothing else there."""

    def begin(self, name: str) -> None:
        print(f"{name} ...", file=sys.stderr)

    def end(self, entry: Mapping[str, Any]) -> None:
        """The document has it."""

    def say(self, text: str) -> None:
        """The document has what matters."""

    def table(self, title: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        """The document has what matters."""

    def finish(self, error: str | None) -> None:
        requests = self.record.requests
        document = {
            "ok": error is None and self.record.ok,
            "steps": self.record.steps,
            "placement": self.record.placement,
            "requests": {
                "sent": requests.sent,
                "succeeded": requests.succeeded,
                "by_member": dict(sorted(requests.by_member.items())),
            },
        }
        if error is not None:
            document["error"] = error
        print(json.dumps(document, indent=2))
