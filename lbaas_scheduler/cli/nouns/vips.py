"""VIPs, and where they are."""

from __future__ import annotations

import argparse

from lbaas_scheduler.cli import shown, waiting
from lbaas_scheduler.cli.base import Card, ShowCommand
from lbaas_scheduler.cli.catalogue import DEVICE, POOL, SERVICE_TYPE, SUBNET, VIP
from lbaas_scheduler.cli.client import Client, Document
from lbaas_scheduler.cli.crud import ADMIN_STATE, DESCRIPTION, TENANT, Commands, Create, Delete, Set, add_name, commands
from lbaas_scheduler.cli.noun import NULL, Option, integer, pairs
from lbaas_scheduler.cli.nouns.pools import PROTOCOLS

PERSISTENCE = "type=SOURCE_IP, type=HTTP_COOKIE or type=APP_COOKIE,cookie_name=NAME"


class CreateVip(Create):
    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        super().add_arguments(parser)
        waiting.add_options(parser)

    def create(self, arguments: argparse.Namespace) -> Document:
        made = super().create(arguments)
        return waiting.until_settled(self.client, made["id"], arguments.wait_timeout) if arguments.wait else made


class SetVip(Set):
    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        super().add_arguments(parser)
        waiting.add_options(parser)

    def change(self, arguments: argparse.Namespace) -> Document:
        changed = super().change(arguments)
        return waiting.until_settled(self.client, changed["id"], arguments.wait_timeout) if arguments.wait else changed


class DeleteVip(Delete):
    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        super().add_arguments(parser)
        waiting.add_options(parser)

    def take_action(self, arguments: argparse.Namespace) -> None:
        ids = self.remove(arguments)
        if arguments.wait:
            waiting.until_gone(self.client, ids, arguments.wait_timeout)


class Placement(ShowCommand):
    """Show on which device a VIP is, and why (administrators)."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        add_name(parser, VIP)

    def take_action(self, arguments: argparse.Namespace) -> Card:
        path = f"{VIP.one(self.find(VIP, arguments.object))}/placement"
        placement = self.client.get(path)["placement"]
        trail = placement.pop("trail", {})
        return shown.one({**placement, **{f"trail.{name}": value for name, value in trail.items() if value not in ("", [], {})}})


class Explain(ShowCommand):
    """Say stage by stage why a VIP is where it is (administrators)."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        add_name(parser, VIP)

    def take_action(self, arguments: argparse.Namespace) -> Card:
        told = self.client.get(f"{VIP.one(self.find(VIP, arguments.object))}/explain")["explanation"]
        stages = {f"stage.{it['stage']}": it["said"] for it in told.pop("stages")}
        return shown.one({**told, **stages})


class Move(ShowCommand):
    """Begin to move a VIP to another device; it serves throughout (administrators)."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        add_name(parser, VIP)
        parser.add_argument("--target", metavar="DEVICE", help="name or id of the device to move to; without it, whichever suits")

    def take_action(self, arguments: argparse.Namespace) -> Card:
        path = f"{VIP.one(self.find(VIP, arguments.object))}/move"
        body = {} if arguments.target is None else {"device_id": self.find(DEVICE, arguments.target)}
        return shown.one(self.client.post(path, {"move": body})["move"])


class ResetStatus(ShowCommand):
    """Apply a VIP anew that is stuck in ERROR or PENDING (administrators)."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        add_name(parser, VIP)
        waiting.add_options(parser)

    def take_action(self, arguments: argparse.Namespace) -> Card:
        path = VIP.one(self.find(VIP, arguments.object))
        reset = self.client.post(f"{path}/reset-status")[VIP.key]
        if arguments.wait and reset["status"] == "PENDING_DELETE":
            waiting.until_gone(self.client, [reset["id"]], arguments.wait_timeout)
        elif arguments.wait:
            reset = waiting.until_settled(self.client, reset["id"], arguments.wait_timeout)
        return shown.one(reset)


_OPTIONS = (
    Option("--pool", "pool_id", "the pool that answers", refers=POOL, required=True, listed=True),
    Option("--subnet", "subnet_id", "where its address is from; without it, the pool's", refers=SUBNET, set=False, listed=True),
    Option("--address", "address", "its address; without it, any free one", set=False, listed=True),
    Option("--protocol", "protocol", "what it speaks; without it, as the pool", choices=PROTOCOLS, set=False, listed=True),
    Option("--protocol-port", "protocol_port", "the port on which it listens", integer, required=True, set=False, listed=True),
    Option("--service-type", "service_type_id", "what kind of device it goes to", refers=SERVICE_TYPE, set=False),
    Option("--connection-limit", "connection_limit", "connections at a time; -1 = any number", integer),
    Option(
        "--session-persistence",
        "session_persistence",
        f"a client stays with its member: {PERSISTENCE}",
        pairs,
        "type=...",
    ),
    Option("--no-session-persistence", "session_persistence", "anybody goes to any member", value=NULL),
    DESCRIPTION,
    *ADMIN_STATE,
    TENANT,
)


def _like_its_pool(client: Client, body: Document) -> Document:
    """What the command line leaves out, the pool says."""
    missing = [name for name in ("protocol", "subnet_id") if name not in body]
    if not missing:
        return body
    pool = client.get(POOL.one(body["pool_id"]), {"fields": missing})[POOL.key]
    return {**{name: pool[name] for name in missing}, **body}


COMMANDS: Commands = {
    **commands(
        VIP,
        _OPTIONS,
        kinds={"create": CreateVip, "set": SetVip, "delete": DeleteVip},
        complete=staticmethod(_like_its_pool),
    ),
    "vip placement": Placement,
    "vip explain": Explain,
    "vip move": Move,
    "vip reset-status": ResetStatus,
}
