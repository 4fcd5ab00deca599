"""Pools, and their counters."""

from __future__ import annotations

import argparse

from lbaas_scheduler.cli import shown
from lbaas_scheduler.cli.base import Card, ShowCommand
from lbaas_scheduler.cli.catalogue import POOL, SUBNET
from lbaas_scheduler.cli.crud import ADMIN_STATE, DESCRIPTION, TENANT, Commands, add_name, commands
from lbaas_scheduler.cli.noun import Option

PROTOCOLS = ("TCP", "HTTP", "HTTPS")
METHODS = ("ROUND_ROBIN", "LEAST_CONNECTIONS", "SOURCE_IP")


class Stats(ShowCommand):
    """Show a pool's counters."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        add_name(parser, POOL)

    def take_action(self, arguments: argparse.Namespace) -> Card:
        path = f"{POOL.one(self.find(POOL, arguments.object))}/stats"
        return shown.one(self.client.get(path)["stats"])


_OPTIONS = (
    Option("--subnet", "subnet_id", "the subnet that its members are in", refers=SUBNET, required=True, set=False, listed=True),
    Option("--protocol", "protocol", "what its members speak", choices=PROTOCOLS, required=True, set=False, listed=True),
    Option("--lb-method", "lb_method", "how requests are spread", choices=METHODS, required=True, listed=True),
    Option("--service-type", "provider", "the service type of its VIP, unless the VIP says otherwise", metavar="NAME", set=False),
    DESCRIPTION,
    *ADMIN_STATE,
    TENANT,
)

COMMANDS: Commands = {**commands(POOL, _OPTIONS), "pool stats": Stats}
