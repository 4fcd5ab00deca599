"""The fleet at a glance."""

from __future__ import annotations

from lbaas_scheduler.cli.crud import Commands

COMMANDS: Commands = {}
