"""What all commands have in common."""

from __future__ import annotations

import argparse
import sys
from typing import Any, NoReturn

from cliff.app import App
from cliff.command import Command
from cliff.lister import Lister
from cliff.show import ShowOne

from lbaas_scheduler.cli import lookup
from lbaas_scheduler.cli.client import Client, Document
from lbaas_scheduler.cli.noun import Noun
from lbaas_scheduler.cli.shown import Row

Table = tuple[tuple[str, ...], list[Row]]
Card = tuple[tuple[str, ...], Row]


class Program(App):
    """What commands run in."""

    @property
    def client(self) -> Client:
        """:raises Problem: nothing says where the server is."""
        raise NotImplementedError


class _Connected(Command):
    app: Program

    @property
    def client(self) -> Client:
        """:raises Problem: nothing says where the server is."""
        return self.app.client

    def find(self, noun: Noun, name: str) -> str:
        """:raises Problem: nothing is called so, or several are."""
        return lookup.find(self.client, noun, name)

    def show(self, noun: Noun, name: str) -> Document:
        """The whole of what is called so."""
        found: Document = self.client.get(noun.one(self.find(noun, name)))[noun.key]
        return found

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser: argparse.ArgumentParser = super().get_parser(prog_name)
        parser.error = _Refusal(parser.prog)  # type: ignore[method-assign]
        self.add_arguments(parser)
        return parser

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add what the command takes."""

    def wrong_call(self, message: str) -> NoReturn:
        """End as with arguments that the parser refuses: what was given does not go together."""
        _Refusal(f"{self.app.NAME} {self.cmd_name}")(message)


class Action(_Connected):
    """Does something and shows nothing."""


class ListCommand(_Connected, Lister):
    """Shows rows."""


class ShowCommand(_Connected, ShowOne):
    """Shows one object."""


class _Refusal:
    """Says in one line what argparse needs a screen for."""

    def __init__(self, prog: str) -> None:
        self._prog = prog

    def __call__(self, message: str) -> NoReturn:
        words = self._prog.split()
        sys.stderr.write(f"{self._prog}: {message}; see '{words[0]} help {' '.join(words[1:])}'\n")
        raise SystemExit(2)


def described(kind: type[Command], text: str, **attributes: Any) -> type[Command]:
    """A command class made of ``kind``, with ``text`` as its help."""
    return type(kind.__name__, (kind,), {"__doc__": text, "__module__": kind.__module__, **attributes})
