"""Placement rules, for operators."""

from __future__ import annotations

from lbaas_scheduler.cli.catalogue import PLACEMENT_RULE
from lbaas_scheduler.cli.crud import DESCRIPTION, Commands, commands
from lbaas_scheduler.cli.noun import NULL, Option, entry, integer

_OPTIONS = (
    Option("--position", "position", "lower ones are tried first; without it, it comes last", integer),
    Option("--service", "service", "whose requests it shapes (LoadBalancer)", set=False, listed=True),
    Option(
        "--match", "match", "what it is for: tenant_id, network_id, subnet_id, protocol, protocol_port or name; without any, "
        "everything; KEY= removes one, others stay; may be repeated", entry,
        metavar="KEY=VALUE", several=True, into="object",
    ),
    Option("--match-everything", "match", "it is for everything", value=NULL, create=False),
    Option(
        "--wish", "wishes", "what it asks of a device: tenancy, form, zone, algorithm, or lists like 'required=[\"TRAIT\"]'; "
        "KEY= removes one, others stay; may be repeated", entry,
        metavar="KEY=VALUE", several=True, into="object", required=True,
    ),
    Option("--enable", "enabled", "it is tried", value=True),
    Option("--disable", "enabled", "it is kept, and not tried", value=False),
    DESCRIPTION,
)  # fmt: skip

COMMANDS: Commands = commands(PLACEMENT_RULE, _OPTIONS)
