"""Service types."""

from __future__ import annotations

from lbaas_scheduler.cli.catalogue import SERVICE_TYPE
from lbaas_scheduler.cli.client import Client, Document
from lbaas_scheduler.cli.crud import DESCRIPTION, Commands, commands
from lbaas_scheduler.cli.noun import Option, document, pairs

_OPTIONS = (
    DESCRIPTION,
    Option(
        "--definition",
        "service_definitions",
        "a service and the device type for it; without it, any device of any service; may be repeated",
        pairs,
        metavar="service=LoadBalancer[,driver=TYPE][,plugin=NAME]",
        several=True,
    ),
    Option("--default", "default", "what is created without a service type is of this one", value=True),
    Option("--enable", "enabled", "tenants may choose it", value=True),
    Option("--disable", "enabled", "nothing new is created of it", value=False),
    Option(
        "--options",
        "options",
        "further wishes as JSON: tenancy, form, zone, required, forbidden, preferred, options; others stay, null removes one; "
        "@FILE reads a file",
        document,
        metavar="JSON",
    ),
)


def _filled(_client: Client, body: Document) -> Document:
    """The plugin that serves a service is called as the service, if nobody says otherwise."""
    definitions = [{"plugin": it.get("service"), "driver": None, **it} for it in body.get("service_definitions", ())]
    return {**body, "service_definitions": definitions} if definitions else body


COMMANDS: Commands = commands(SERVICE_TYPE, _OPTIONS, complete=staticmethod(_filled))
