"""Devices: operators' all, and tenants' own."""

from __future__ import annotations

import argparse

from lbaas_scheduler.cli import shown
from lbaas_scheduler.cli.base import Card, ListCommand, ShowCommand, Table, described
from lbaas_scheduler.cli.catalogue import DEVICE, VIP
from lbaas_scheduler.cli.client import Document
from lbaas_scheduler.cli.crud import DESCRIPTION, Commands, Set, add_name, commands
from lbaas_scheduler.cli.noun import NULL, Option, document, entry, pairs
from lbaas_scheduler.cli.problems import Problem


class Vips(ListCommand):
    """List the VIPs on a device."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--long", action="store_true", help="show more columns")
        add_name(parser, DEVICE)

    def take_action(self, arguments: argparse.Namespace) -> Table:
        path = f"{DEVICE.one(self.find(DEVICE, arguments.object))}/vips"
        columns = VIP.columns + (VIP.more if arguments.long else ())
        return columns, shown.rows(self.client.all(path, VIP.collection), columns)


class Health(ShowCommand):
    """Show what the last checks of a device found (administrators)."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        add_name(parser, DEVICE)

    def take_action(self, arguments: argparse.Namespace) -> Card:
        return shown.one(self.client.get(f"{DEVICE.one(self.find(DEVICE, arguments.object))}/health")["health"])


class Asked(ShowCommand):
    """Asks something of a device that changes no attribute. ``verb``: the end of the path; ``answer``: what it gives."""

    verb: str
    answer: str

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        add_name(parser, DEVICE)

    def take_action(self, arguments: argparse.Namespace) -> Card:
        path = f"{DEVICE.one(self.find(DEVICE, arguments.object))}/{self.verb}"
        return shown.one(self.client.post(path)[self.answer])


class WriteOff(ShowCommand):
    """Count as removed what a disabled device that is gone for good was to remove."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--force", action="store_true", help="though it seems to be there")
        add_name(parser, DEVICE)

    def take_action(self, arguments: argparse.Namespace) -> Card:
        path = f"{DEVICE.one(self.find(DEVICE, arguments.object))}/write-off"
        return shown.one(self.client.post(path, {"write_off": {"force": arguments.force}})["write_off"])


NO_INTERFACE = "no_interfaces"


class Change(Set):
    """Change a device."""

    def body(self, arguments: argparse.Namespace) -> Document:
        """Interfaces are a list, which the API replaces as a whole: those that are not named are given as they are."""
        body = super().body(arguments)
        removed = body.pop(NO_INTERFACE, [])
        if removed or "interfaces" in body:
            device = self.show(DEVICE, arguments.object)
            interfaces = {it["name"]: it for it in device["interfaces"]}
            for name in removed:
                if interfaces.pop(name, None) is None:
                    raise Problem(f"{arguments.object} has no interface {name!r}; it has: {', '.join(interfaces) or 'none'}.")
            for given in body.get("interfaces", ()):
                name = given.get("name")
                interfaces[name] = {**interfaces.get(name, {}), **given}
            body |= {"interfaces": list(interfaces.values()), "generation": device["generation"]}
        return body


class State(Set):
    """Sets the administrative state that the command is called after."""

    state: str

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        add_name(parser, DEVICE)

    def change(self, arguments: argparse.Namespace) -> Document:
        body = {DEVICE.key: {"admin_state": self.state}}
        changed: Document = self.client.put(DEVICE.one(self.find(DEVICE, arguments.object)), body)[DEVICE.key]
        return changed


_OPTIONS = (
    Option("--device-type", "device_type", "its vendor's type, like haproxy", required=True, set=False, listed=True),
    Option("--service", "service", "what it does (LoadBalancer)", set=False, listed=True),
    Option("--zone", "zone", "where it stands", listed=True),
    Option("--form", "form", "what it is", choices=("physical", "virtual"), listed=True),
    Option("--tenant", "tenant_id", "id of its tenant; without it, the operator's", metavar="ID", set=False, listed=True),
    Option("--share", "shared", "all tenants may use it", value=True),
    Option("--no-share", "shared", "its tenant alone may use it", value=False),
    Option(
        "--capacity", "capacity", "like VIPS=100 (-1 = unlimited), or VIPS= for none; may be repeated", entry,
        metavar="CLASS=TOTAL", several=True, into="object",
    ),
    Option("--capability", "capabilities", "a trait that it has; without any, all of its type; may be repeated", several=True),
    Option("--all-capabilities", "capabilities", "it has all traits of its type", value=NULL),
    Option(
        "--management", "management",
        "how to reach it: address, port, user, and its vendor's own; KEY= removes one, others stay; may be repeated", entry,
        metavar="KEY=VALUE", several=True, into="object",
    ),
    Option("--management-json", "management", "the same as JSON, null removes; @FILE hides secrets", document, metavar="JSON"),
    Option(
        "--interface", "interfaces", "like name=eth1,max_vlans=100,kind=vlan,physical_network=rack1; may be repeated", pairs,
        metavar="name=NAME,...", several=True,
    ),
    Option(
        "--no-interface", NO_INTERFACE, "remove the interface of this name; may be repeated",
        metavar="NAME", several=True, create=False,
    ),
    Option("--agent-host", "agent_host", "host whose agent drives it; without it, any that can", metavar="HOST", listed=True),
    Option("--any-agent", "agent_host", "any agent that can may drive it", value=NULL),
    Option("--extra", "extra", "its vendor's own options, null removes one; @FILE reads a file", document, metavar="JSON"),
    Option("--admin-state", "admin_state", "its state", choices=("enabled", "draining", "disabled"), listed=True),
    DESCRIPTION,
)  # fmt: skip


def _card(device: Document) -> Document:
    """The agent by its host; it has a noun of its own. Tenants are told only whether there is one."""
    agent = device.get("agent")
    return {**device, "agent": agent.get("host", "alive" if agent["alive"] else "down") if agent else None}


_STATES = {
    "drain": ("draining", "Give a device nothing new; what is on it stays and can be changed."),
    "enable": ("enabled", "Take a device into service."),
    "disable": ("disabled", "Take a device out of service; what is on it can still be changed and deleted."),
}

COMMANDS: Commands = {
    **commands(DEVICE, _OPTIONS, kinds={"set": Change}, view=staticmethod(_card)),
    "device vips": Vips,
    "device health": Health,
    "device evacuate": described(
        Asked,
        "Drain a device and begin to move everything off it; asked again, it goes on.",
        verb="evacuate",
        answer="evacuation",
    ),
    "device check": described(Asked, "Ask a device now how it is.", verb="check", answer="health"),
    "device write-off": WriteOff,
    **{
        f"device {verb}": described(State, text, noun=DEVICE, options=(), state=state, view=staticmethod(_card))
        for verb, (state, text) in _STATES.items()
    },
}
