"""Placing as a whole, for operators: where VIPs would go, and a fleet whose load is evened out."""

from __future__ import annotations

import argparse

from lbaas_scheduler.cli import shown
from lbaas_scheduler.cli.base import Card, ShowCommand
from lbaas_scheduler.cli.catalogue import DEVICE, POOL, SERVICE_TYPE, SUBNET
from lbaas_scheduler.cli.client import Document
from lbaas_scheduler.cli.crud import TENANT, Commands, body_of
from lbaas_scheduler.cli.noun import Option, integer, positive
from lbaas_scheduler.cli.nouns.pools import PROTOCOLS

SIMULATE = "/v2.0/placements/simulate"
REBALANCE = "/v2.0/placements/rebalance"

_VIP = (
    Option("--pool", "pool_id", "a pool that is there already", refers=POOL),
    Option("--protocol", "protocol", "without --pool: what it speaks (TCP)", choices=PROTOCOLS),
    Option("--protocol-port", "protocol_port", "the port on which it would listen (80)", integer),
    Option("--subnet", "subnet_id", "where its address would be from", refers=SUBNET),
    Option("--address", "address", "the address that it would have"),
    Option("--connection-limit", "connection_limit", "connections at a time; -1 = any number", integer),
    Option("--service-type", "service_type_id", "what kind of device it would go to", refers=SERVICE_TYPE),
    Option("--device", "device_id", "the device that it would be asked for", refers=DEVICE),
    TENANT,
)


class Simulate(ShowCommand):
    """Show where VIPs would go, and what would fill up first; nothing is claimed (administrators)."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--count", type=integer, default=1, metavar="N", help="how many of them (default: %(default)s)")
        for option in _VIP:
            option.add(parser)

    def take_action(self, arguments: argparse.Namespace) -> Card:
        body = {"vip": body_of(self, _VIP, arguments), "count": arguments.count}
        found = self.client.post(SIMULATE, {"simulation": body})["simulation"]
        trail = found.pop("trail", {})
        return shown.one({**found, **{f"trail.{name}": value for name, value in trail.items() if value not in ("", [], {})}})


class Rebalance(ShowCommand):
    """Show the fewest moves that even out the load of the devices, or begin them (administrators)."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--apply", action="store_true", help="begin the moves; without it, they are only shown")
        parser.add_argument(
            "--bound", type=positive, metavar="FILL", help="how much fuller one device may be than another, up to 1 (0.1)"
        )
        parser.add_argument("--max-moves", type=integer, metavar="N", help="no more moves than these (100)")

    def take_action(self, arguments: argparse.Namespace) -> Card:
        asked: Document = {"bound": arguments.bound, "max_moves": arguments.max_moves}
        given = {name: value for name, value in asked.items() if value is not None}
        answer = self.client.post(REBALANCE, {"rebalance": given}) if arguments.apply else self.client.get(REBALANCE, given)
        return shown.one(answer["rebalance"])


COMMANDS: Commands = {"simulate": Simulate, "rebalance": Rebalance}
