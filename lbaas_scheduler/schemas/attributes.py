"""What an attribute is, and how a body is judged by a map of attributes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from lbaas_scheduler.errors import InvalidRequest
from lbaas_scheduler.schemas.checker import Schema, shown, violation
from lbaas_scheduler.schemas.converters import Converter

Body = Mapping[str, Any]


class Verb(StrEnum):
    POST = "POST"
    PUT = "PUT"


class _Required:
    def __repr__(self) -> str:
        return "REQUIRED"


REQUIRED = _Required()
"""The default of an attribute that has none: a POST must give it."""


@dataclass(frozen=True, slots=True)
class Attribute:
    """One attribute of a noun.

    ``schema``: JSON Schema of its value, after ``convert``. ``default``: what a POST without it means. ``filtered`` false:
    no column stands behind it, so a list cannot be filtered or sorted by it.
    """

    schema: Schema
    post: bool = False
    put: bool = False
    default: Any = None
    convert: Converter | None = None
    filtered: bool = True

    def accepts(self, verb: Verb) -> bool:
        return self.post if verb is Verb.POST else self.put


@dataclass(frozen=True, slots=True)
class Noun:
    """A noun of the API with its attributes, in the order of the documentation."""

    name: str
    collection: str
    attributes: Mapping[str, Attribute]

    def schema(self, verb: Verb) -> dict[str, Any]:
        """The JSON Schema of a body, converters left aside."""
        accepted = {name: attribute for name, attribute in self.attributes.items() if attribute.accepts(verb)}
        required = [name for name, attribute in accepted.items() if verb is Verb.POST and attribute.default is REQUIRED]
        return {
            "type": "object",
            "properties": {name: dict(attribute.schema) for name, attribute in accepted.items()},
            "required": required,
            "additionalProperties": False,
        }


def accept(noun: Noun, body: Any, verb: Verb) -> dict[str, Any]:
    """Judge ``body`` and return its converted values: on POST with defaults, on PUT with what was given only.

    :raises InvalidRequest: names the first attribute that is wrong, and says what would be right.
    """
    if not isinstance(body, Mapping):
        raise InvalidRequest(reason=f"a {noun.name} must be an object with attributes, not {shown(body)}")
    _check_names(noun, body, verb)
    values = {name: convert(noun, name, value) for name, value in body.items()}
    if verb is Verb.POST:
        defaults = {name: each.default for name, each in noun.attributes.items() if each.post and name not in values}
        values = {**defaults, **values}
    return values


def convert(noun: Noun, name: str, value: Any) -> Any:
    """The converted value of one attribute.

    :raises InvalidRequest: it is not what the attribute's schema says.
    """
    attribute = noun.attributes[name]
    converted = value if attribute.convert is None else attribute.convert(value)
    reason = violation(attribute.schema, converted)
    if reason is not None:
        raise InvalidRequest(reason=f"invalid value for {noun.name} attribute '{name}': {reason}.", attribute=name)
    return converted


def _check_names(noun: Noun, body: Body, verb: Verb) -> None:
    unknown = [name for name in body if name not in noun.attributes]
    if unknown:
        names = ", ".join(shown(name) for name in unknown[:10])
        raise InvalidRequest(reason=f"unrecognized attribute(s) {names} of a {noun.name}")
    for name in body:
        if not noun.attributes[name].accepts(verb):
            what = "is not allowed in POST" if verb is Verb.POST else "is read-only and cannot be updated"
            raise InvalidRequest(reason=f"attribute '{name}' of a {noun.name} {what}", attribute=name)
    missing = [name for name, each in noun.attributes.items() if each.post and each.default is REQUIRED and name not in body]
    if verb is Verb.POST and missing:
        names = ", ".join(f"'{name}'" for name in missing)
        raise InvalidRequest(reason=f"required attribute(s) {names} of a {noun.name} not specified", attribute=missing[0])
