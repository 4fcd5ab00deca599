"""Health monitors, and what they watch."""

from __future__ import annotations

import argparse

from lbaas_scheduler.cli.base import Action
from lbaas_scheduler.cli.catalogue import HEALTH_MONITOR, POOL
from lbaas_scheduler.cli.client import Document
from lbaas_scheduler.cli.crud import ADMIN_STATE, TENANT, Commands, Create, add_name, commands
from lbaas_scheduler.cli.noun import Option, integer


class CreateMonitor(Create):
    """Can associate at once."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--pool", action="append", default=[], metavar="POOL", help="watch its members; may be repeated")
        super().add_arguments(parser)

    def create(self, arguments: argparse.Namespace) -> Document:
        pools = [self.find(POOL, name) for name in arguments.pool]
        made = super().create(arguments)
        for pool_id in pools:
            self.client.post(f"{POOL.one(pool_id)}/health_monitors", {"health_monitor": {"id": made["id"]}})
        return self.show(HEALTH_MONITOR, made["id"]) if pools else made


class _Pairing(Action):
    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        add_name(parser, HEALTH_MONITOR)
        parser.add_argument("pool", metavar="POOL", help="name or id")

    def both(self, arguments: argparse.Namespace) -> tuple[str, str]:
        """:returns: the monitor's id, and the path of the pool's monitors."""
        monitor_id, pool_id = self.find(HEALTH_MONITOR, arguments.object), self.find(POOL, arguments.pool)
        return monitor_id, f"{POOL.one(pool_id)}/health_monitors"


class Associate(_Pairing):
    """Let a health monitor watch the members of a pool."""

    def take_action(self, arguments: argparse.Namespace) -> None:
        monitor_id, path = self.both(arguments)
        self.client.post(path, {"health_monitor": {"id": monitor_id}})


class Disassociate(_Pairing):
    """Let a health monitor watch a pool no longer."""

    def take_action(self, arguments: argparse.Namespace) -> None:
        monitor_id, path = self.both(arguments)
        self.client.delete(f"{path}/{monitor_id}")


_OPTIONS = (
    Option("--type", "type", "how it asks", choices=("PING", "TCP", "HTTP", "HTTPS"), required=True, set=False, listed=True),
    Option("--delay", "delay", "seconds between two checks", integer, metavar="SECONDS", required=True),
    Option(
        "--timeout", "timeout", "seconds that a check may take; no more than the delay", integer, metavar="SECONDS", required=True
    ),
    Option("--max-retries", "max_retries", "failed checks until a member counts as down: 1 to 10", integer, required=True),
    Option("--http-method", "http_method", "of the request (GET)", metavar="METHOD"),
    Option("--url-path", "url_path", "of the request (/)", metavar="PATH"),
    Option("--expected-codes", "expected_codes", "what is healthy: 200, '200,202' or 200-204", metavar="CODES"),
    *ADMIN_STATE,
    TENANT,
)

COMMANDS: Commands = {
    **commands(HEALTH_MONITOR, _OPTIONS, kinds={"create": CreateMonitor}),
    "health-monitor associate": Associate,
    "health-monitor disassociate": Disassociate,
}
