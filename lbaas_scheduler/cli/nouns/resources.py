"""Pools of VLANs, VXLANs, subnets, addresses and whatever else is installed, and their values."""

from __future__ import annotations

import argparse
import json
from typing import Any
from urllib.parse import quote

from lbaas_scheduler.cli import shown
from lbaas_scheduler.cli.base import Card, ListCommand, ShowCommand, Table
from lbaas_scheduler.cli.client import Document
from lbaas_scheduler.cli.crud import Commands
from lbaas_scheduler.cli.noun import document, integer, pair, positive

POOLS = "/v2.0/resources"
ALLOCATIONS = f"{POOLS}/allocations"

POOL_COLUMNS, MORE_OF_POOLS = ("kind", "name", "scope", "state", "config"), ("id", "domain", "generation")
VALUE_COLUMNS, MORE_OF_VALUES = (
    ("value", "owner", "slot", "status", "id", "generation"),
    ("kind", "part", "due_at", "last_owner", "pool_id"),
)
EVENT_COLUMNS, MORE_OF_EVENTS = (
    ("at", "op", "kind", "pool", "value", "owner_type", "owner_id", "slot", "actor"),
    ("allocation_id", "request_id", "note"),
)
FINDING_COLUMNS = ("rule", "text", "allocation_id", "pool_id", "repair")


def owner(text: str) -> Document:
    """``TYPE:ID``."""
    type_, colon, id_ = text.partition(":")
    if not type_ or not colon or not id_:
        raise argparse.ArgumentTypeError(f"{text!r:.80} is not of the form TYPE:ID")
    return {"type": type_, "id": id_}


def plain(text: str) -> Any:
    """What is JSON is what it says: ``100`` is a number; all else is text, as ``10.0.0.5``."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def path(arguments: argparse.Namespace, *more: str) -> str:
    return "/".join([POOLS, *(quote(piece, safe="") for piece in (arguments.kind, arguments.name)), *more])


def query(arguments: argparse.Namespace, **more: Any) -> Document:
    """What was given of it. ``scope`` always belongs to it."""
    asked = {"scope": getattr(arguments, "scope", None), **more}
    return {name: value for name, value in asked.items() if value not in (None, False)}


def add_pool(parser: argparse.ArgumentParser, nargs: str | None = None) -> None:
    parser.add_argument(
        "kind", metavar="KIND", nargs=nargs, help="vlan, vxlan, subnet, address, or another one that is installed"
    )
    parser.add_argument("name", metavar="NAME", nargs=nargs, help="name of the pool")
    parser.add_argument("--scope", metavar="SCOPE", help="whose pool it is: cluster (the default), tenant:ID or host:NAME")


def add_config(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("words", metavar="WORD=VALUE", nargs="*", type=pair, help="the definition, such as ranges=100-199")
    parser.add_argument("--config", type=document, default={}, metavar="JSON", help="the definition as JSON, or @FILE with it")


def config_of(arguments: argparse.Namespace) -> Document:
    found: Document = dict(arguments.config)
    for words in arguments.words:
        found |= words
    return found


class Define(ShowCommand):
    """Define a pool of resources; the same definition again is fine (administrators)."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        add_pool(parser)
        add_config(parser)

    def take_action(self, arguments: argparse.Namespace) -> Card:
        place = {"kind": arguments.kind, "name": arguments.name, **query(arguments)}
        made = self.client.post(POOLS, {"resource": {**place, "config": config_of(arguments)}})
        return shown.one(made["resource"])


class Resize(ShowCommand):
    """Give a pool another definition while it is in use (administrators)."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        add_pool(parser)
        add_config(parser)
        parser.add_argument("--drain", action="store_true", help="keep values outside of the new range until they are released")

    def take_action(self, arguments: argparse.Namespace) -> Card:
        body = {"config": config_of(arguments), "drain": arguments.drain}
        changed = self.client.put(path(arguments), {"resource": body}, query(arguments))
        return shown.one(changed["resource"])


class Undefine(ShowCommand):
    """Remove a pool (administrators)."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        add_pool(parser)
        how = parser.add_mutually_exclusive_group()
        how.add_argument("--drain", action="store_true", help="if it is in use, let it go with its last value")
        how.add_argument("--force", action="store_true", help="release whatever is in use first")

    def take_action(self, arguments: argparse.Namespace) -> Card:
        asked = query(arguments, drain=arguments.drain, force=arguments.force)
        return shown.one(self.client.delete(path(arguments), asked))


class ShowPool(ShowCommand):
    """Show a pool."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        add_pool(parser)

    def take_action(self, arguments: argparse.Namespace) -> Card:
        return shown.one(self.client.get(path(arguments), query(arguments))["resource"])


class ListPools(ListCommand):
    """List pools; with KIND and NAME the values of a pool that are in use; with --owner those of an owner."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        add_pool(parser, nargs="?")
        parser.add_argument("--owner", type=owner, metavar="TYPE:ID", help="values of this owner, from any pool or that one")
        parser.add_argument("--resting", action="store_true", help="the quarantined values, too")
        parser.add_argument("--long", action="store_true", help="show more columns")

    def take_action(self, arguments: argparse.Namespace) -> Table:
        if arguments.name is None and arguments.owner is None:
            found = self.client.all(POOLS, "resources", query(arguments, kind=arguments.kind))
            columns = POOL_COLUMNS + (MORE_OF_POOLS if arguments.long else ())
            return columns, shown.rows(found, columns)
        whose = arguments.owner or {"type": None, "id": None}
        asked: Document = {"owner_type": whose["type"], "owner_id": whose["id"], "resting": arguments.resting}
        if arguments.name is None:
            asked = query(argparse.Namespace(), kind=arguments.kind, **asked)
            found = self.client.all(ALLOCATIONS, "allocations", asked)
        else:
            asked["sort_key"] = "value"
            found = self.client.all(path(arguments, "allocations"), "allocations", query(arguments, **asked))
        columns = VALUE_COLUMNS + (MORE_OF_VALUES if arguments.long else ())
        return columns, shown.rows(found, columns)


class Allocate(ShowCommand):
    """Take a value of a pool; its owner and slot get the same one again (administrators)."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        add_pool(parser)
        parser.add_argument("--owner", type=owner, required=True, metavar="TYPE:ID", help="for whom")
        parser.add_argument("--slot", metavar="SLOT", help="tells two values of one owner apart")
        parser.add_argument("--value", type=plain, metavar="VALUE", help="this one; by default any")
        parser.add_argument("--tenant", dest="tenant_id", metavar="ID", help="whose quota it counts for")
        parser.add_argument("--host", metavar="HOST", help="on which host, where local values are per host")
        parser.add_argument("--request-id", metavar="ID", help="a repeated one gets the answer that it got before")
        parser.add_argument("--hold", dest="ttl_seconds", type=positive, metavar="SECONDS", help="only until 'resource commit'")

    def take_action(self, arguments: argparse.Namespace) -> Card:
        names = ("owner", "slot", "value", "tenant_id", "host", "request_id", "ttl_seconds")
        body = {name: value for name in names if (value := getattr(arguments, name)) is not None}
        taken = self.client.post(path(arguments, "allocations"), {"allocation": body}, query(arguments))
        return shown.one(taken["allocation"])


class Commit(ShowCommand):
    """Make a hold final (administrators)."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        add_pool(parser)
        parser.add_argument("id", metavar="ALLOCATION", help="id of the allocation")
        parser.add_argument("--generation", type=integer, metavar="N", help="only if it is in this state of it")

    def take_action(self, arguments: argparse.Namespace) -> Card:
        generation = {} if arguments.generation is None else {"generation": arguments.generation}
        place = path(arguments, "allocations", quote(arguments.id, safe=""))
        changed = self.client.put(place, {"allocation": {"status": "active", **generation}}, query(arguments))
        return shown.one(changed["allocation"])


class Release(ShowCommand):
    """Give a value back: by its id, by --value and --owner, or all that an --owner has (administrators)."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        add_pool(parser, nargs="?")
        parser.add_argument("id", metavar="ALLOCATION", nargs="?", help="id of the allocation")
        parser.add_argument("--generation", type=integer, metavar="N", help="only if it is in this state of it")
        parser.add_argument("--value", type=plain, metavar="VALUE", help="the value, with --owner")
        parser.add_argument("--owner", type=owner, metavar="TYPE:ID", help="whose it is; alone: all that this owner has")
        parser.add_argument("--force", action="store_true", help="release what depends on it, too, and even if its owner lives")

    def take_action(self, arguments: argparse.Namespace) -> Card:
        if arguments.id is not None:
            asked = query(arguments, generation=arguments.generation, force=arguments.force)
            return shown.one(self.client.delete(path(arguments, "allocations", quote(arguments.id, safe="")), asked))
        if arguments.owner is None:
            self.wrong_call("say what to release: KIND NAME ALLOCATION, KIND NAME --value --owner, or --owner alone")
        if arguments.name is not None and arguments.value is not None:
            body = {"value": arguments.value, "owner": arguments.owner}
            return shown.one(self.client.post(path(arguments, "release"), {"release": body}, query(arguments)))
        if arguments.kind is not None or arguments.value is not None:
            self.wrong_call("a value is released by KIND NAME --value --owner, all that an owner has by --owner alone")
        asked = {"owner_type": arguments.owner["type"], "owner_id": arguments.owner["id"]}
        return shown.one(self.client.delete(ALLOCATIONS, {**asked, **query(argparse.Namespace(), force=arguments.force)}))


class Usage(ShowCommand):
    """Show how full a pool is."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        add_pool(parser)

    def take_action(self, arguments: argparse.Namespace) -> Card:
        return shown.one(self.client.get(path(arguments, "usage"), query(arguments))["usage"])


class History(ListCommand):
    """Show what was done with a pool, or with all of them, last things first (administrators)."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        add_pool(parser, nargs="?")
        parser.add_argument("--owner", type=owner, metavar="TYPE:ID", help="with this owner's values")
        parser.add_argument("--allocation", dest="allocation_id", metavar="ID", help="with this allocation")
        parser.add_argument("--since", metavar="TIME", help="since then, such as 2026-01-31T12:00:00Z")
        parser.add_argument("--limit", type=integer, default=100, metavar="N", help="no more than these (default: %(default)s)")
        parser.add_argument("--long", action="store_true", help="show more columns")

    def take_action(self, arguments: argparse.Namespace) -> Table:
        if arguments.kind is not None and arguments.name is None:
            self.wrong_call("give KIND and NAME of a pool, or neither for all of them")
        place = f"{POOLS}/history" if arguments.kind is None else path(arguments, "history")
        whose = arguments.owner or {"type": None, "id": None}
        asked = {"owner_type": whose["type"], "owner_id": whose["id"], "limit": arguments.limit}
        asked |= {"allocation_id": arguments.allocation_id, "since": arguments.since}
        found = self.client.get(place, query(arguments, **asked))["events"]
        columns = EVENT_COLUMNS + (MORE_OF_EVENTS if arguments.long else ())
        return columns, shown.rows(found, columns)


class Keys(ListCommand):
    """Show every key that there can be in the store (administrators)."""

    def take_action(self, arguments: argparse.Namespace) -> Table:
        return ("key",), [(key,) for key in self.client.get(f"{POOLS}/keys")["keys"]]


class Check(ListCommand):
    """Show what is not as it should be (administrators)."""

    def take_action(self, arguments: argparse.Namespace) -> Table:
        return FINDING_COLUMNS, shown.rows(self.client.get(f"{POOLS}/check")["findings"], FINDING_COLUMNS)


class Reconcile(ShowCommand):
    """Find values that nobody wants any more; give them back only with --apply (administrators)."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--apply", action="store_true", help="give them back")

    def take_action(self, arguments: argparse.Namespace) -> Card:
        body = {"reconcile": {"dry_run": not arguments.apply}}
        return shown.one(self.client.post(f"{POOLS}/reconcile", body)["report"])


COMMANDS: Commands = {
    "resource define": Define,
    "resource resize": Resize,
    "resource undefine": Undefine,
    "resource show": ShowPool,
    "resource list": ListPools,
    "resource allocate": Allocate,
    "resource commit": Commit,
    "resource release": Release,
    "resource usage": Usage,
    "resource history": History,
    "resource keys": Keys,
    "resource check": Check,
    "resource reconcile": Reconcile,
}
