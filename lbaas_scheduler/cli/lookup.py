"""From what people call things to ids."""

from __future__ import annotations

import re

from lbaas_scheduler.cli.client import Client, Query
from lbaas_scheduler.cli.noun import Noun
from lbaas_scheduler.cli.problems import Problem

_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_SOCKET = re.compile(r"\[?(?P<address>[0-9a-fA-F:.]+?)\]?:(?P<port>[0-9]{1,5})")


def find(client: Client, noun: Noun, name: str) -> str:
    """The id of what is called ``name``: its id, its name, or a member's ADDRESS:PORT.

    :raises Problem: nothing is called so, or several are.
    """
    for query in _queries(noun, name):
        found = client.all(noun.path, noun.collection, {**query, "fields": "id"})
        if len(found) == 1:
            return str(found[0]["id"])
        if found:
            ids = ", ".join(str(it["id"]) for it in found)
            raise Problem(f"{len(found)} {noun.plural} are called {name!r}; say which one by its id: {ids}")
    raise Problem(f"No {noun.words} is called {name!r}; 'lbaas-scheduler {noun.command} list' shows those that there are.")


def _queries(noun: Noun, name: str) -> list[Query]:
    queries: list[Query] = []
    if _UUID.fullmatch(name):
        queries.append({"id": name.lower()})
    if noun.name_key:
        queries.append({noun.name_key: name})
    elif noun.key == "member" and (socket := _SOCKET.fullmatch(name)):
        queries.append({"address": socket["address"], "protocol_port": socket["port"]})
    return queries
