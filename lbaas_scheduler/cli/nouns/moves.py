"""Moves between devices, evacuations, and the breaker that freezes them, for operators."""

from __future__ import annotations

import argparse

from lbaas_scheduler.cli import shown
from lbaas_scheduler.cli.base import Card, ShowCommand, described
from lbaas_scheduler.cli.catalogue import DEVICE, MOVE, VIP
from lbaas_scheduler.cli.crud import Commands, add_name, commands
from lbaas_scheduler.cli.noun import Option

BREAKER = "/v2.0/breaker"


class ShowMove(ShowCommand):
    """Show the last move of a VIP (administrators)."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        add_name(parser, VIP)

    def take_action(self, arguments: argparse.Namespace) -> Card:
        return shown.one(self.client.get(MOVE.one(self.find(VIP, arguments.object)))[MOVE.key])


class ShowEvacuation(ShowCommand):
    """Show how far the last evacuation of a device is (administrators)."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        add_name(parser, DEVICE)

    def take_action(self, arguments: argparse.Namespace) -> Card:
        return shown.one(self.client.get(self.path(arguments))["evacuation"])

    def path(self, arguments: argparse.Namespace) -> str:
        return f"{DEVICE.one(self.find(DEVICE, arguments.object))}/evacuation"


class CancelEvacuation(ShowEvacuation):
    """Let everything stay on a device that has not begun to leave it; it stays draining (administrators)."""

    def take_action(self, arguments: argparse.Namespace) -> Card:
        return shown.one(self.client.delete(self.path(arguments))["evacuation"])


class ShowBreaker(ShowCommand):
    """Show whether automatic moves are frozen, and why (administrators)."""

    def take_action(self, _arguments: argparse.Namespace) -> Card:
        return shown.one(self.client.get(BREAKER)["breaker"])


class ResetBreaker(ShowCommand):
    """Give up what was lost, and let automatic moves go on (administrators)."""

    def take_action(self, _arguments: argparse.Namespace) -> Card:
        return shown.one(self.client.post(f"{BREAKER}/reset")["breaker"])


_OPTIONS = (
    Option("--device", "device_id", "from or to this device", refers=DEVICE, listed=True),
    Option("--state", "state", "in this state, like deploying or failed", listed=True),
    Option("--cause", "cause", "begun for this reason, like operator or evacuation", listed=True),
)

_LIST = commands(MOVE, _OPTIONS, without=("create", "show", "set", "delete"))["move list"]

COMMANDS: Commands = {
    "move list": described(_LIST, "List the last move of each VIP that was moved (administrators)."),
    "move show": ShowMove,
    "device evacuation show": ShowEvacuation,
    "device evacuation cancel": CancelEvacuation,
    "breaker show": ShowBreaker,
    "breaker reset": ResetBreaker,
}
