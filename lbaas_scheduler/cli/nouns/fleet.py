"""The fleet at a glance: once, or live."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from lbaas_scheduler.cli import shown
from lbaas_scheduler.cli.base import Action
from lbaas_scheduler.cli.client import Document
from lbaas_scheduler.cli.crud import Commands
from lbaas_scheduler.cli.noun import positive
from lbaas_scheduler.cli.problems import Problem

PATH = "/v2.0/fleet-overview"

BAR_WIDTH = 20
INTERVAL_SECONDS = 2

_TONES = {"open": "green", "full": "yellow", "draining": "magenta", "disabled": "dim", "syncing": "cyan", "unknown": "cyan"}
_LOST = "bold red"


class Fleet(Action):
    """Show the fleet at a glance: how full each device is, its state, its agent (administrators)."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--watch", action="store_true", help="keep it up to date until Ctrl-C")
        parser.add_argument(
            "--interval",
            type=positive,
            default=INTERVAL_SECONDS,
            metavar="SECONDS",
            help="with --watch: how often to look (default: %(default)s)",
        )
        parser.add_argument("--zone", metavar="NAME", help="only the devices of a zone")

    def take_action(self, arguments: argparse.Namespace) -> None:
        console = Console(file=self.app.stdout, highlight=False)
        if not arguments.watch:
            console.print(self._now(arguments.zone))
            return
        live = Live(self._now(arguments.zone), console=console, screen=console.is_terminal, auto_refresh=False)
        # Ctrl-C is how it ends, and no failure.
        with suppress(KeyboardInterrupt), live:
            while True:
                time.sleep(arguments.interval)
                live.update(self._now_or_why_not(arguments.zone), refresh=True)

    def _now(self, zone: str | None) -> RenderableType:
        fleet = self.client.get(PATH)["fleet"]
        if zone is not None:
            fleet["devices"] = [device for device in fleet["devices"] if device["zone"] == zone]
        return glance(fleet)

    def _now_or_why_not(self, zone: str | None) -> RenderableType:
        """A server that is away for a moment does not end the watch."""
        try:
            return self._now(zone)
        except Problem as error:
            return Text(str(error), style=_LOST)


def glance(fleet: Document) -> RenderableType:
    """The whole fleet as text."""
    return Group(_devices(fleet["devices"]), Text(), *_notes(fleet))


def _devices(devices: Sequence[Document]) -> Table:
    table = Table("device", "type", "zone", "used", "VIPs", "state", "agent", box=None, pad_edge=False, header_style="bold")
    table.columns[4].justify = "right"
    for device in devices:
        tone = _TONES.get(device["state"], _LOST)
        table.add_row(
            Text(device["name"]),
            Text(device["device_type"]),
            Text(device["zone"]),
            _bar(device["fill"], tone),
            shown.usage(device["vips"]),
            Text(device["state"], style=tone),
            Text(device["agent"] or "none", style="" if device["agent"] else _LOST),
        )
    return table


def _bar(fill: float, tone: str) -> Text:
    """Eight steps to the character, so that one VIP of a hundred shows."""
    eighths = round(min(1.0, max(0.0, fill)) * BAR_WIDTH * 8)
    if fill > 0:
        eighths = max(1, eighths)
    full, rest = divmod(eighths, 8)
    bar = "█" * full + (" ▏▎▍▌▋▊▉"[rest] if rest else "")
    return Text.assemble((bar, tone), ("·" * (BAR_WIDTH - len(bar)), "dim"))


def _notes(fleet: Document) -> list[Text]:
    agents = [f"{it['host']} {it['state']} ({it['devices']})" for it in fleet["agents"]]
    lines = [
        _counted("Devices", _counts(device["state"] for device in fleet["devices"])),
        _counted("VIPs", fleet["vips"]),
        Text(f"Agents: {', '.join(agents) or 'none'}"),
    ]
    unapplied = fleet["unapplied"]
    if unapplied["count"]:
        lines.append(Text(f"Not applied yet: {unapplied['count']}", style="yellow"))
    lines += [
        Text(f"  {it['name']} on {it['device_name']}: {it['error']}", style=_LOST) for it in unapplied["oldest"] if it["error"]
    ]
    return lines


def _counts(states: Any) -> dict[str, int]:
    found: dict[str, int] = {}
    for state in states:
        found[state] = found.get(state, 0) + 1
    return found


def _counted(what: str, counts: dict[str, int]) -> Text:
    parts = ", ".join(f"{count} {name}" for name, count in sorted(counts.items()))
    return Text(f"{what}: {parts or 'none'}")


COMMANDS: Commands = {"fleet": Fleet}
