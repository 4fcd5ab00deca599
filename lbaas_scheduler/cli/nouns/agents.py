"""Agents. They register themselves."""

from __future__ import annotations

from lbaas_scheduler.cli.catalogue import AGENT
from lbaas_scheduler.cli.crud import ADMIN_STATE, DESCRIPTION, Commands, commands

COMMANDS: Commands = commands(AGENT, (*ADMIN_STATE, DESCRIPTION), without=("create",))
