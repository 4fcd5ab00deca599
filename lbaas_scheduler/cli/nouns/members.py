"""Members of pools."""

from __future__ import annotations

import argparse

from lbaas_scheduler.cli.catalogue import MEMBER, POOL
from lbaas_scheduler.cli.client import Document
from lbaas_scheduler.cli.crud import ADMIN_STATE, TENANT, Commands, Create, commands
from lbaas_scheduler.cli.noun import Option, integer

POOL_OPTION = Option("--pool", "pool_id", "the pool that it serves", refers=POOL, create=False, listed=True)


class CreateMember(Create):
    """The pool is an argument: no member is without one."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("pool", metavar="POOL", help="name or id of the pool that it serves")
        super().add_arguments(parser)

    def create(self, arguments: argparse.Namespace) -> Document:
        setattr(arguments, POOL_OPTION.dest, arguments.pool)
        return super().create(arguments)


_OPTIONS = (
    POOL_OPTION,
    Option("--address", "address", "where it listens", required=True, set=False, listed=True),
    Option("--protocol-port", "protocol_port", "the port on which it listens", integer, required=True, set=False),
    Option("--weight", "weight", "its share: 0 (none) to 256", integer),
    *ADMIN_STATE,
    TENANT,
)

COMMANDS: Commands = commands(MEMBER, _OPTIONS, kinds={"create": CreateMember})
