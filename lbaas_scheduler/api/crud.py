"""The five operations that most nouns have, handed on to a plugin under the names that Neutron's plugins use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from lbaas_scheduler.api import pages, wire
from lbaas_scheduler.api.bodies import Bulk
from lbaas_scheduler.api.operations import Call, Operation, Schema, Services
from lbaas_scheduler.schemas.access import projected
from lbaas_scheduler.schemas.attributes import Noun, Verb

Document = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Shape:
    """How a noun looks from outside: what a POST and a PUT take, what an answer shows, what a list can be filtered by."""

    name: str
    collection: str
    post: Schema | None
    put: Schema | None
    view: Schema
    filters: Mapping[str, Schema]

    @classmethod
    def of(cls, noun: Noun, optional: tuple[str, ...] = (), more: Mapping[str, Any] | None = None) -> Shape:
        """From an attribute map; see :func:`.wire.view_schema`."""
        return cls(
            noun.name,
            noun.collection,
            wire.body_schema(noun, Verb.POST),
            wire.body_schema(noun, Verb.PUT),
            wire.view_schema(noun, optional, more),
            wire.filter_schemas(noun),
        )

    @property
    def title(self) -> str:
        """Its name among the schemas of the OpenAPI document."""
        return "".join(word.capitalize() for word in self.name.split("_"))

    @property
    def words(self) -> str:
        return "VIP" if self.name == "vip" else self.name.replace("_", " ")


@dataclass(frozen=True, slots=True)
class Crud:
    """Operations of a noun.

    :param plugin: who keeps the noun. Its methods are ``create_<name>``, ``get_<name>``, ``get_<collection>``, ``update_<name>``
        and ``delete_<name>``.
    :param tag: the chapter of the OpenAPI document.
    :param show: what makes the answer of what the plugin returned.
    :param bulk: whether the plugin has ``create_<name>_bulk``, which takes a list of bodies.
    """

    shape: Shape
    plugin: Callable[[Services], Any]
    tag: str
    may_fail: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    show: Callable[[Document], Document] = dict
    bulk: bool = False

    def index(self) -> Operation:
        def run(call: Call) -> Document:
            search = getattr(self.plugin(call.services), f"get_{self.shape.collection}")
            return pages.answer(call, self.shape.collection, lambda **asked: self._all(search(call.context, **asked)))

        return self._operation("GET", run, f"get_{self.shape.name}", f"List {self.shape.collection.replace('_', ' ')}", "list")

    def create(self) -> Operation:
        def run(call: Call) -> Document:
            plugin = self.plugin(call.services)
            if isinstance(call.body, Bulk):
                made = getattr(plugin, f"create_{self.shape.name}_bulk")(call.context, call.body.bodies)
                return {self.shape.collection: self._all(made)}
            return self._one(getattr(plugin, f"create_{self.shape.name}")(call.context, call.body))

        return self._operation("POST", run, f"create_{self.shape.name}", f"Create a {self.shape.words}", "one", 201)

    def read(self) -> Operation:
        def run(call: Call) -> Document:
            method = getattr(self.plugin(call.services), f"get_{self.shape.name}")
            document = method(call.context, call.ids["id"], fields=call.query.fields or None)
            return {self.shape.name: projected(self.show(document), call.query.fields)}

        return self._operation("READ", run, f"get_{self.shape.name}", f"Show a {self.shape.words}", "part")

    def update(self) -> Operation:
        def run(call: Call) -> Document:
            method = getattr(self.plugin(call.services), f"update_{self.shape.name}")
            return self._one(method(call.context, call.ids["id"], call.body))

        return self._operation("PUT", run, f"update_{self.shape.name}", f"Change a {self.shape.words}", "one")

    def delete(self) -> Operation:
        def run(call: Call) -> None:
            getattr(self.plugin(call.services), f"delete_{self.shape.name}")(call.context, call.ids["id"])

        return self._operation("DELETE", run, f"delete_{self.shape.name}", f"Delete a {self.shape.words}", "", 204)

    def _one(self, document: Document) -> Document:
        return {self.shape.name: self.show(document)}

    def _all(self, documents: list[Document]) -> list[Document]:
        return [self.show(document) for document in documents]

    def _operation(self, verb: str, run: Any, rule: str, summary: str, answer: str, status: int = 200) -> Operation:
        takes = {"POST": self.shape.post, "PUT": self.shape.put}.get(verb)
        bulk = self.bulk and verb == "POST"
        return Operation(
            run=run,
            rule=rule,
            summary=summary,
            tag=self.tag,
            status=status,
            envelope=self.shape.name if takes else "",
            plural=self.shape.collection,
            bulk=bulk,
            takes=takes and {"title": f"{self.shape.title}{'Create' if verb == 'POST' else 'Update'}", **takes},
            gives=_gives(self.shape, "one or many" if bulk else answer),
            query=list_query(self.shape.filters) if answer == "list" else FIELDS if verb == "READ" else {},
            may_fail=self.may_fail.get(verb, ()),
        )


def _gives(shape: Shape, answer: str) -> Schema | None:
    makers = {"list": list_of, "one": one_of, "part": part_of, "one or many": one_or_many_of}
    return makers[answer](shape) if answer else None


FIELDS: Mapping[str, Schema] = {"fields": {"type": "array", "items": {"type": "string"}, "description": "show only these"}}


def list_query(filters: Mapping[str, Schema]) -> dict[str, Schema]:
    """The parameters of a list."""
    name = {"type": "string", "enum": sorted(filters)}
    return {
        **{attribute: {"type": "array", "items": schema} for attribute, schema in filters.items()},
        **FIELDS,
        "limit": {
            "type": "integer",
            "minimum": 0,
            "maximum": 10**18 - 1,
            "description": "objects per page; 0 = as many as possible",
        },
        "marker": {
            "type": "string",
            "pattern": "^[!-~]{1,36}(~[A-Za-z0-9_-]*)?$",
            "description": "id of the last object of the page before, or the marker of a link",
        },
        "page_reverse": wire.BOOLEAN,
        "sort_key": {"type": "array", "items": name},
        "sort_dir": {"type": "array", "items": {"type": "string", "enum": ["asc", "desc"]}, "description": "one per sort_key"},
    }


LINKS: Schema = {
    "title": "Links",
    "type": "array",
    "items": {
        "type": "object",
        "properties": {"rel": {"enum": ["next", "previous"]}, "href": {"type": "string"}},
        "required": ["rel", "href"],
    },
}


def _part(shape: Shape) -> Schema:
    """``fields`` may leave any attribute out."""
    return {"title": f"{shape.title}Part", **{name: value for name, value in shape.view.items() if name != "required"}}


def one_of(shape: Shape) -> Schema:
    view = {"title": shape.title, **shape.view}
    return {"type": "object", "properties": {shape.name: view}, "required": [shape.name]}


def one_or_many_of(shape: Shape) -> Schema:
    """As :func:`one_of`, or with all objects that one request created."""
    one = one_of(shape)
    views = {"type": "array", "items": one["properties"][shape.name]}
    return {
        "type": "object",
        "properties": {**one["properties"], shape.collection: views},
        "minProperties": 1,
        "maxProperties": 1,
    }


def part_of(shape: Shape) -> Schema:
    """As :func:`one_of`; ``fields`` may leave any attribute out."""
    return {"type": "object", "properties": {shape.name: _part(shape)}, "required": [shape.name]}


def list_of(shape: Shape) -> Schema:
    """Every attribute is optional in a list: ``fields`` may leave it out."""
    return {
        "type": "object",
        "properties": {shape.collection: {"type": "array", "items": _part(shape)}, f"{shape.collection}_links": LINKS},
        "required": [shape.collection],
    }
