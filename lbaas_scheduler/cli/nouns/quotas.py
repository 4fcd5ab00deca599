"""Quotas of tenants."""

from __future__ import annotations

import argparse
from urllib.parse import quote

from lbaas_scheduler.cli import shown
from lbaas_scheduler.cli.base import Action, Card, ShowCommand
from lbaas_scheduler.cli.catalogue import QUOTA
from lbaas_scheduler.cli.crud import Commands, commands
from lbaas_scheduler.cli.noun import Option, given, integer

RESOURCES = ("vip", "pool", "member", "health_monitor", "device")

_LIMITS = tuple(
    Option(f"--{name.replace('_', '-')}", name, f"how many {name.replace('_', ' ')}s it may have; -1 = any number", integer)
    for name in RESOURCES
)


def _path(tenant_id: str) -> str:
    return QUOTA.one(quote(tenant_id, safe=""))


class ShowQuota(ShowCommand):
    """Show what a tenant may have; by default, one's own."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("tenant", nargs="?", metavar="TENANT", help="id of a tenant")
        parser.add_argument("--default", action="store_true", help="what holds for tenants without quotas of their own")

    def take_action(self, arguments: argparse.Namespace) -> Card:
        tenant_id = arguments.tenant or self.client.get(f"{QUOTA.path}/tenant")["tenant"]["tenant_id"]
        path = _path(tenant_id) + ("/default" if arguments.default else "")
        return shown.one(self.client.get(path)["quota"])


class SetQuota(ShowCommand):
    """Give a tenant quotas of its own."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("tenant", metavar="TENANT", help="id of a tenant")
        for option in _LIMITS:
            option.add(parser)

    def take_action(self, arguments: argparse.Namespace) -> Card:
        limits = {option.attribute: value for option, value in given(_LIMITS, arguments).items()}
        if not limits:
            self.wrong_call("nothing to change")
        return shown.one(self.client.put(_path(arguments.tenant), {"quota": limits})["quota"])


class DeleteQuota(Action):
    """Let the defaults hold for a tenant again."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("tenant", metavar="TENANT", help="id of a tenant")

    def take_action(self, arguments: argparse.Namespace) -> None:
        self.client.delete(_path(arguments.tenant))


COMMANDS: Commands = {
    **commands(QUOTA, (), without=("create", "show", "set", "delete")),
    "quota show": ShowQuota,
    "quota set": SetQuota,
    "quota delete": DeleteQuota,
}
