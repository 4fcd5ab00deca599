"""What a noun of the API looks like at the command line, as data."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Document = dict[str, Any]
Parse = Callable[[str], Any]


@dataclass(frozen=True, slots=True)
class Noun:
    """``command``: its words at the command line. ``name_key``: the attribute that people call one by; "" = it has no name.

    ``columns``: what a list shows of each, and ``more`` with ``--long``.
    """

    command: str
    key: str
    collection: str
    path: str
    columns: tuple[str, ...]
    more: tuple[str, ...] = ()
    name_key: str = "name"

    @property
    def words(self) -> str:
        return "VIP" if self.key == "vip" else self.command.replace("-", " ")

    @property
    def plural(self) -> str:
        return "VIPs" if self.key == "vip" else self.collection.replace("_", " ")

    def one(self, id_: str) -> str:
        """The path of one object."""
        return f"{self.path}/{id_}"


@dataclass(frozen=True, slots=True)
class Option:
    """One option, or argument, and the attribute that it fills.

    ``refers``: the noun whose name or id the value is. ``value``: what the option stands for, where it takes no value itself.
    ``several``: it may be repeated, and the attribute is a list; with ``into`` "object" an object of all that was given.
    ``create`` and ``set``: whether these commands have it; ``listed``: lists can be narrowed by it.
    """

    flag: str
    attribute: str
    help: str
    parse: Parse = str
    metavar: str = ""
    choices: tuple[str, ...] = ()
    refers: Noun | None = None
    value: Any = None
    several: bool = False
    into: str = "list"
    required: bool = False
    create: bool = True
    set: bool = True
    listed: bool = False

    @property
    def dest(self) -> str:
        return f"option_{self.flag.strip('-').replace('-', '_')}"

    def add(self, parser: Any, required: bool = False) -> None:
        if self.value is not None:
            parser.add_argument(self.flag, dest=self.dest, action="store_true", default=None, help=self.help)
            return
        words: Document = {"help": self.help, "type": self.parse, "metavar": self.metavar or _metavar(self)}
        if self.choices:
            words |= {"choices": self.choices, "metavar": None, "type": _cased(self.choices)}
        if self.several:
            words["action"] = "append"
        if self.flag.startswith("-"):
            words |= {"dest": self.dest, "required": required}
            parser.add_argument(self.flag, **words)
        else:
            parser.add_argument(self.dest, **{**words, "metavar": self.metavar or self.flag})


def given(options: Sequence[Option], arguments: argparse.Namespace) -> dict[Option, Any]:
    """The options that the command line has, with their values."""
    found: dict[Option, Any] = {}
    for option in options:
        value = getattr(arguments, option.dest, None)
        if value is not None:
            found[option] = _value(option, value)
    return found


def _value(option: Option, value: Any) -> Any:
    if option.value is not None:
        return None if option.value == NULL else option.value
    return _joined(value) if option.several and option.into == "object" else value


NULL = "\x00null"
"""As ``Option.value``: null."""


def _joined(pairs: Sequence[Mapping[str, Any]]) -> Document:
    return {name: value for pair in pairs for name, value in pair.items()}


def _metavar(option: Option) -> str:
    if option.refers is not None:
        return f"{option.refers.words.upper()}"
    return "N" if option.parse is integer else option.flag.lstrip("-").upper().replace("-", "_")


def _cased(choices: Sequence[str]) -> Parse:
    """Choices in whatever case."""
    known = {choice.lower(): choice for choice in choices}
    return lambda text: known.get(text.lower(), text)


def integer(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number") from None


def positive(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < 1e6:
        raise argparse.ArgumentTypeError(f"{text!r} is no number above 0")
    return value


def pair(text: str) -> Document:
    """``KEY=VALUE``; a value that is JSON is what it says, all else is text."""
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form KEY=VALUE")
    return {name: _plain(value)}


def entry(text: str) -> Document:
    """As :func:`pair`; ``KEY=`` is null, which takes the key away."""
    return {name: None if value == "" else value for name, value in pair(text).items()}


def pairs(text: str) -> Document:
    """``KEY=VALUE,KEY=VALUE``."""
    return _joined([pair(part) for part in text.split(",")])


def document(text: str) -> Document:
    """A JSON object, or ``@FILE`` with one in it."""
    try:
        found = json.loads(_read(text[1:]) if text.startswith("@") else text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"it is no JSON: {error}") from None
    if not isinstance(found, dict):
        raise argparse.ArgumentTypeError("it is no JSON object")
    return found


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except OSError as error:
        raise argparse.ArgumentTypeError(f"{path} cannot be read: {error.strerror}") from None


def _plain(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
