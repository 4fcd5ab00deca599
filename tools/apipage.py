"""The part of doc/source/api.rst that is made of the table of routes: every operation, who may, what it takes, an example."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

# As with every command: oslo.service runs on threads, and nothing is said about eventlet, which libraries import and nobody uses.
import lbaas_scheduler.cmd  # noqa: F401
from lbaas_scheduler.api import openapi, policies
from lbaas_scheduler.api.operations import Operation
from lbaas_scheduler.api.policies import base
from lbaas_scheduler.api.routes import ROUTES
from lbaas_scheduler.schemas import common

Document = dict[str, Any]

UUID = "5a1c7f3e-0b3d-4c62-9d57-1f7f0a6f2b11"

WHO = {
    base.ADMIN: "administrators",
    base.MEMBER: "members",
    base.READER: "readers and members",
}
EVERYBODY = "everybody, without a token"

VALUES: Mapping[str, Any] = {
    "address": "10.0.0.7",
    "admin_state": "draining",
    "admin_state_up": False,
    "bound": 0.1,
    "cidr": "10.0.0.0/24",
    "config": {"min": 100, "max": 199},
    "count": 3,
    "delay": 5,
    "description": "of the shop",
    "device_type": "haproxy",
    "force": True,
    "kind": "vlan",
    "lb_method": "ROUND_ROBIN",
    "max_retries": 3,
    "name": "web",
    "dry_run": True,
    "owner": {"type": "vip", "id": "web"},
    "protocol": "HTTP",
    "protocol_port": 80,
    "requests": [{"kind": "vlan", "name": "rack1", "owner": {"type": "vip", "id": "web"}}],
    "status": "active",
    "timeout": 2,
    "type": "HTTP",
    "value": "101",
    "vip": 20,
    "weight": 5,
    "wishes": {"zone": "a"},
}
"""Attribute → what stands for it in examples."""

SHOWN_TOO = ("name", "count", "bound", "force", "vip", "weight", "delay", "description", "admin_state_up", "device_id", "dry_run")
"""What a body has in its example though it need not: of those that it takes, the first."""

_VARIABLE = re.compile(r"{(\w+)}")
_SPECIAL = re.compile(r"([\\*`|_])")


def text() -> str:
    """reStructuredText: a section for each tag of the OpenAPI document, and in it one for each operation."""
    return "\n".join(_lines()) + "\n"


def example(operation: Operation) -> Document | None:
    """A body that fits what the operation takes; None = it takes none."""
    if operation.takes is None:
        return None
    known = operation.takes["properties"]
    needed = list(operation.takes.get("required", ()))
    too = [name for name in SHOWN_TOO if name in known and name not in needed][:1]
    return {operation.envelope: {name: _value(name, known[name]) for name in [*too, *needed]}}


def curl(path: str, method: str, operation: Operation) -> str:
    """A command that asks for it. ``$LBAAS`` is the server's URL, ``$TOKEN`` a token."""
    url = _VARIABLE.sub(lambda found: f"${found[1].upper()}", path)
    words = ["curl -s", *([] if method == "GET" else [f"-X {method}"])]
    if operation.rule is not None:
        words.append('-H "X-Auth-Token: $TOKEN"')
    body = example(operation)
    where = f'"$LBAAS{url}{"?limit=20" if "limit" in operation.query else ""}"'
    if body is None:
        return " ".join([*words, where])
    return " ".join([*words, "-H 'Content-Type: application/json'", where]) + f" \\\n    -d '{json.dumps(body)}'"


def _lines() -> Iterator[str]:
    document = openapi.document(ROUTES, keystone=True)
    rules = {rule.name: rule.check_str for rule in policies.list_rules()}
    for tag in (it["name"] for it in document["tags"]):
        yield from _title(tag, "-")
        for path, methods in ROUTES.items():
            for method, operation in methods.items():
                if operation.tag == tag:
                    answers = document["paths"][path][method.lower()]["responses"]
                    yield from _operation(path, method, operation, answers, rules)


def _operation(path: str, method: str, operation: Operation, answers: Document, rules: Mapping[str, str]) -> Iterator[str]:
    yield from _title(f"{method} {path}", "~")
    yield f"{_plain(operation.summary)}. {_who(operation, rules)}"
    yield ""
    if operation.takes is not None:
        many = (
            f", or a list of such under ``{operation.plural}``, which is created as a whole or not at all"
            if operation.bulk
            else ""
        )
        yield f"Takes ``{operation.envelope}``{many}:"
        yield ""
        needed = operation.takes.get("required", ())
        yield from (_attribute(name, schema, name in needed) for name, schema in operation.takes["properties"].items())
        yield ""
    if operation.query:
        yield f"In the query: {', '.join(f'``{name}``' for name in operation.query)}."
        yield ""
    yield from _answers(operation, answers)
    yield ".. code-block:: sh"
    yield ""
    yield from (f"    {line}" for line in curl(path, method, operation).splitlines())
    yield ""


def _who(operation: Operation, rules: Mapping[str, str]) -> str:
    if operation.rule is None:
        return f"For {EVERYBODY}."
    check = rules[operation.rule]
    return f"For {WHO.get(check, check)} (``{operation.rule}``)."


def _answers(operation: Operation, answers: Document) -> Iterator[str]:
    given = (operation.gives or {}).get("properties", {})
    names = ", ".join(f"``{name}``" for name in given if not name.endswith("_links"))
    with_what = f" with {names}" if names else "" if operation.gives else ", empty"
    others = sorted(status for status in answers if status != str(operation.status))
    yield f"Answers {operation.status}{with_what}; else {', '.join(others)}."
    yield ""
    shown = [attribute for schema in given.values() for attribute in _shown(schema)]
    if shown:
        yield f"Shows {', '.join(f'``{name}``' for name in shown)}."
        yield ""


def _shown(schema: Mapping[str, Any]) -> list[str]:
    if schema.get("title") == "Links":
        return []
    return list(schema.get("items", schema).get("properties", ()))


def _attribute(name: str, schema: Mapping[str, Any], needed: bool) -> str:
    described = schema.get("description") or _kind(schema)
    default = f"; default ``{json.dumps(schema['default'])}``" if "default" in schema else ""
    return f"* ``{name}``{' (needed)' if needed else ''}: {_plain(described)}{default}"


def _kind(schema: Mapping[str, Any]) -> str:
    if "enum" in schema:
        return "one of " + ", ".join("null" if value is None else str(value) for value in schema["enum"])
    if "anyOf" in schema:
        kinds = dict.fromkeys(part.get("description") or _kind(part) for part in schema["anyOf"])
        return " or ".join(kinds)
    kind = schema.get("type", "any value")
    named = " or ".join(kind) if isinstance(kind, list) else str(kind)
    low, high = schema.get("minimum"), schema.get("maximum")
    return f"{named}{f' of at least {low}' if low is not None else ''}{f' and at most {high}' if high is not None else ''}"


def _value(name: str, schema: Mapping[str, Any]) -> Any:
    if name in VALUES:
        return VALUES[name]
    if name == "id" or name.endswith("_id"):
        return UUID
    raise LookupError(f"tools/apipage.py: add {name} to VALUES; it is {common.nullable(schema)}")


def _title(words: str, underline: str) -> list[str]:
    return [words, underline * len(words), ""]


def _plain(words: str) -> str:
    return _SPECIAL.sub(r"\\\1", words)
