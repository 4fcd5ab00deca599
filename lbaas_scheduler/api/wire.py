"""The attribute maps as they look on the wire: exactly what converters and validators together accept, in JSON Schema.

The plugins judge bodies by their maps; this says the same for the OpenAPI document, so that a client (or a fuzzer) that reads it
neither sends what is refused nor misses what is accepted.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lbaas_scheduler.api.digits import pattern_of_range
from lbaas_scheduler.schemas import common, converters
from lbaas_scheduler.schemas.attributes import REQUIRED, Attribute, Noun, Verb
from lbaas_scheduler.schemas.checker import violation

Schema = dict[str, Any]

TRUTHS: Schema = {"type": "string", "pattern": "^(?:[Tt][Rr][Uu][Ee]|[Ff][Aa][Ll][Ss][Ee]|0|1)$"}
BOOLEAN: Schema = {"anyOf": [{"type": "boolean"}, {"enum": [0, 1]}, TRUTHS]}

FILTER_TEXT: Schema = {"type": "string", "pattern": "^[^\\x00]*$"}
"""What may be looked for where no attribute map says more: all that a database understands as text."""

_READABLE = {
    common.PRINTABLE_TEXT: "^[^\\x00]*$",
    common.TRIMMED_TEXT: common.TRIMMED_TEXT.replace(r"\u0000\ud800-\udfff", r"\x00"),
}
"""In JSON there are no lone surrogates to be excluded, and the patterns of some readers cannot name them."""


def body_schema(noun: Noun, verb: Verb) -> Schema:
    """The attributes that a POST or PUT takes."""
    accepted = {name: attribute for name, attribute in noun.attributes.items() if attribute.accepts(verb)}
    required = [name for name, attribute in accepted.items() if verb is Verb.POST and attribute.default is REQUIRED]
    properties = {name: _accepted(attribute, verb) for name, attribute in accepted.items()}
    schema: Schema = {"type": "object", "properties": properties, "additionalProperties": False}
    return {**schema, "required": required} if required else schema


def view_schema(noun: Noun, optional: tuple[str, ...] = (), more: Mapping[str, Any] | None = None) -> Schema:
    """What an answer shows. ``optional``: attributes that some objects lack; ``more``: those that no request may name."""
    properties = {name: readable(attribute.schema) for name, attribute in noun.attributes.items()} | dict(more or {})
    return {"type": "object", "properties": properties, "required": [name for name in properties if name not in optional]}


def filter_schemas(noun: Noun) -> dict[str, Schema]:
    """Attribute → what a query string may ask of it. There is no null in a query string."""
    return {name: _not_null(on_the_wire(attribute)) for name, attribute in noun.attributes.items() if attribute.filtered}


def on_the_wire(attribute: Attribute) -> Schema:
    """The values that the attribute's converter and schema accept."""
    schema, convert = readable(attribute.schema), attribute.convert
    if convert is converters.integer:
        return _each_type(schema, lambda it: {"anyOf": [it, _digits(it)]})
    if convert is converters.boolean:
        return BOOLEAN
    if convert in (converters.lower, converters.upper):
        return _each_type(schema, _in_any_case)
    if convert is converters.empty_to_none:
        return {**schema, "anyOf": [*schema["anyOf"], {"type": "object", "maxProperties": 0}]}
    if convert is converters.list_of:
        return {"anyOf": [schema, schema["items"], {"type": "null"}]}
    return schema


def readable(schema: Mapping[str, Any]) -> Schema:
    """A copy whose patterns every reader of JSON Schema understands."""
    return {name: _readable_part(name, value) for name, value in schema.items()}


def _readable_part(name: str, value: Any) -> Any:
    if name == "pattern":
        return _READABLE.get(value, value)
    if isinstance(value, Mapping):
        return readable(value)
    if isinstance(value, list):
        return [readable(item) if isinstance(item, Mapping) else item for item in value]
    return value


def _accepted(attribute: Attribute, verb: Verb) -> Schema:
    schema = on_the_wire(attribute)
    # A default that no client could give stands for something that is worked out.
    shows_default = verb is Verb.POST and attribute.default is not None and violation(attribute.schema, attribute.default) is None
    return {**schema, "default": attribute.default} if shows_default else schema


def _each_type(schema: Schema, change: Any) -> Schema:
    """``change`` applied to a plain schema, or to the non-null one of a nullable."""
    if "anyOf" not in schema:
        return dict(change(schema))
    return {**schema, "anyOf": [part if part == {"type": "null"} else change(part) for part in schema["anyOf"]]}


def _not_null(schema: Schema) -> Schema:
    parts = [part for part in schema.get("anyOf", ()) if part != {"type": "null"}]
    return parts[0] if len(parts) == 1 else schema


def _digits(schema: Schema) -> Schema:
    if "enum" in schema:
        return {"type": "string", "enum": [str(value) for value in schema["enum"]]}
    return {"type": "string", "pattern": pattern_of_range(schema["minimum"], schema["maximum"])}


def _in_any_case(schema: Schema) -> Schema:
    if "enum" in schema:
        words = "|".join("".join(f"[{letter.upper()}{letter.lower()}]" for letter in word) for word in schema["enum"])
        return {"type": "string", "pattern": f"^(?:{words})$"}
    return {**schema, "pattern": schema["pattern"].replace("a-f", "a-fA-F")}
