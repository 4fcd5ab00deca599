"""create, list, show, set and delete of a noun, made of its description."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from cliff.command import Command

from lbaas_scheduler.cli import shown
from lbaas_scheduler.cli.base import Action, Card, ListCommand, ShowCommand, Table, described
from lbaas_scheduler.cli.client import Client, Document
from lbaas_scheduler.cli.noun import Noun, Option, given, pair

Commands = dict[str, type[Command]]
Finish = Callable[[Client, Document], Document]

ADMIN_STATE = (
    Option("--enable", "admin_state_up", "take it into service", value=True, listed=False),
    Option("--disable", "admin_state_up", "take it out of service", value=False, listed=False),
)
TENANT = Option("--tenant", "tenant_id", "id of the tenant that it is for (administrators)", metavar="ID", set=False, listed=True)
DESCRIPTION = Option("--description", "description", "a text for people", metavar="TEXT")


def as_it_is(_client: Client, document: Document) -> Document:
    return document


def all_of(document: Document) -> Document:
    return dict(document)


class _OfNoun:
    noun: Noun
    options: Sequence[Option]
    complete: Finish = staticmethod(as_it_is)
    """What fills in what the command line left out of a new one."""
    view: Callable[[Document], Document] = staticmethod(all_of)


class Create(_OfNoun, ShowCommand):
    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        if self.noun.name_key:
            parser.add_argument("name", metavar="NAME", help="what to call it")
        for option in self.options:
            if option.create:
                option.add(parser, option.required)

    def take_action(self, arguments: argparse.Namespace) -> Card:
        return shown.one(self.view(self.create(arguments)))

    def create(self, arguments: argparse.Namespace) -> Document:
        body = self.complete(self.client, body_of(self, self.options, arguments))
        if self.noun.name_key:
            body = {"name": arguments.name, **body}
        made: Document = self.client.post(self.noun.path, {self.noun.key: body})[self.noun.key]
        return made


class Index(_OfNoun, ListCommand):
    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--long", action="store_true", help="show more columns")
        parser.add_argument(
            "--filter", action="append", type=pair, default=[], metavar="ATTRIBUTE=VALUE", help="only those that have it so"
        )
        for option in self.options:
            if option.listed:
                option.add(parser)

    def take_action(self, arguments: argparse.Namespace) -> Table:
        wanted = [option for option in self.options if option.listed]
        query: dict[str, list[Any]] = {}
        for name, value in [*body_of(self, wanted, arguments).items(), *(it for part in arguments.filter for it in part.items())]:
            query.setdefault(name, []).append(value)
        found = [self.view(it) for it in self.client.all(self.noun.path, self.noun.collection, query)]
        columns = self.noun.columns + (self.noun.more if arguments.long else ())
        return columns, shown.rows(found, columns)


class Show(_OfNoun, ShowCommand):
    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        add_name(parser, self.noun)

    def take_action(self, arguments: argparse.Namespace) -> Card:
        return shown.one(self.view(self.show(self.noun, arguments.object)))


class Set(_OfNoun, ShowCommand):
    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        add_name(parser, self.noun)
        if self.noun.name_key == "name":
            parser.add_argument("--name", metavar="NAME", help="what to call it from now on")
        for option in self.options:
            if option.set:
                option.add(parser)

    def take_action(self, arguments: argparse.Namespace) -> Card:
        return shown.one(self.view(self.change(arguments)))

    def body(self, arguments: argparse.Namespace) -> Document:
        """What the command line changes."""
        body = body_of(self, [option for option in self.options if option.set], arguments)
        if getattr(arguments, "name", None) is not None:
            body["name"] = arguments.name
        return body

    def change(self, arguments: argparse.Namespace) -> Document:
        body = self.body(arguments)
        if not body:
            self.wrong_call("nothing to change")
        path = self.noun.one(self.find(self.noun, arguments.object))
        changed: Document = self.client.put(path, {self.noun.key: body})[self.noun.key]
        return changed


class Delete(_OfNoun, Action):
    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("objects", nargs="+", metavar=self.noun.words.upper(), help=calling(self.noun))

    def take_action(self, arguments: argparse.Namespace) -> None:
        self.remove(arguments)

    def remove(self, arguments: argparse.Namespace) -> list[str]:
        """:returns: their ids."""
        # All names first: a wrong one must not come up when half of them are gone.
        ids = [self.find(self.noun, name) for name in arguments.objects]
        for id_ in ids:
            self.client.delete(self.noun.one(id_))
        return ids


def commands(
    noun: Noun,
    options: Sequence[Option],
    without: Sequence[str] = (),
    kinds: Mapping[str, type[Command]] | None = None,
    **more: Any,
) -> Commands:
    """``<noun> create`` and so on.

    :param without: verbs that it does not have.
    :param kinds: verbs that are not the usual classes.
    """
    article = "an" if noun.words[0] in "aeiou" else "a"
    usual: dict[str, tuple[type[Command], str]] = {
        "create": (Create, f"Create {article} {noun.words}."),
        "list": (Index, f"List {noun.plural}."),
        "show": (Show, f"Show {article} {noun.words}."),
        "set": (Set, f"Change {article} {noun.words}."),
        "delete": (Delete, f"Delete one or more {noun.plural}."),
    }
    return {
        f"{noun.command} {verb}": described((kinds or {}).get(verb, kind), text, noun=noun, options=tuple(options), **more)
        for verb, (kind, text) in usual.items()
        if verb not in without
    }


def add_name(parser: argparse.ArgumentParser, noun: Noun) -> None:
    parser.add_argument("object", metavar=noun.words.upper(), help=calling(noun))


def calling(noun: Noun) -> str:
    """What one may be called by."""
    if noun.key == "member":
        return "id or ADDRESS:PORT"
    return f"{noun.name_key} or id" if noun.name_key else "id"


def body_of(command: Any, options: Sequence[Option], arguments: argparse.Namespace) -> Document:
    """Attributes that the command line gives, names turned into ids."""
    body: Document = {}
    for option, value in given(options, arguments).items():
        refers = option.refers is not None and value is not None
        found = command.find(option.refers, value) if refers else value
        both = isinstance(found, dict) and isinstance(body.get(option.attribute), dict)
        body[option.attribute] = {**body[option.attribute], **found} if both else found
    return body
