"""The program: all commands, the options before them, and how it says what went wrong."""

from __future__ import annotations

import argparse
import importlib
import logging
import os
import pkgutil
import sys
from collections.abc import Iterator, Sequence
from functools import cached_property
from importlib.metadata import version
from typing import Any

from cliff.command import Command
from cliff.commandmanager import CommandManager
from cliff.help import HelpCommand

from lbaas_scheduler.cli import nouns, session
from lbaas_scheduler.cli.base import Program
from lbaas_scheduler.cli.client import Client
from lbaas_scheduler.cli.entry import PROG

NAMESPACE = "lbaas_scheduler.cli"
"""Entry points of packages that bring further commands."""


class Help(HelpCommand):
    """Say how a command is called."""

    def take_action(self, arguments: argparse.Namespace) -> int:
        try:
            code: int = super().take_action(arguments)
        except ValueError:
            sys.stderr.write(f"{PROG}: there is no command {' '.join(arguments.cmd)!r}; see '{PROG} help'\n")
            raise SystemExit(2) from None
        return code


class Shell(Program):
    """All commands; :attr:`client` is made when a command first asks for it, as help and completion need none."""

    NAME = PROG

    def __init__(self) -> None:
        manager = CommandManager(NAMESPACE)
        for name, command in _commands():
            manager.add_command(name, command)
        # Deferred, so that --help after a command is about that command.
        super().__init__("Operate load-balancer devices, and use them.", version(PROG), manager, deferred_help=True)
        manager.add_command("help", Help)

    def initialize_app(self, argv: list[str]) -> None:
        # No command: say which there are, instead of a prompt.
        self.options.deferred_help |= not argv

    @cached_property
    def client(self) -> Client:
        return session.connect(self.options, os.environ)

    def build_option_parser(
        self, description: str | None, version: str | None, argparse_kwargs: dict[str, Any] | None = None
    ) -> argparse.ArgumentParser:
        parser = super().build_option_parser(description, version, argparse_kwargs)
        parser.prog = PROG
        session.add_options(parser, os.environ)
        return parser

    def configure_logging(self) -> None:
        super().configure_logging()
        # Their chatter is for whoever asks with -v.
        for name in ("urllib3", "keystoneauth", "stevedore"):
            logging.getLogger(name).setLevel(logging.DEBUG if self.options.debug else logging.WARNING)


def _commands() -> Iterator[tuple[str, type[Command]]]:
    """What the files of the folder ``nouns`` bring; a new file there needs no list."""
    for file in pkgutil.iter_modules(nouns.__path__, f"{nouns.__name__}."):
        yield from importlib.import_module(file.name).COMMANDS.items()


def run(argv: Sequence[str]) -> int:
    """:returns: the exit code."""
    code: int = Shell().run(list(argv))
    return code
