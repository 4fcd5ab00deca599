"""Values of the domain ↔ documents that JSON can carry.

Derived from the annotations, so that a new field travels without being named here. Rules:

* enums travel as their value; tuples, frozensets (sorted) and named tuples as lists;
* a field that is left out of its class's ``repr`` is a secret and never travels (see :func:`encode_device`);
* a reader ignores fields that it does not know and fills in defaults, so that servers and agents may differ by a release.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import MISSING, Field, fields, is_dataclass
from enum import Enum
from functools import cache
from typing import Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from lbaas_scheduler.domain.devices import Device
from lbaas_scheduler.errors import InvalidRequest

T = TypeVar("T")
Document = dict[str, Any]
Decoder = Callable[[Any, str], Any]
"""Document, path of it (for the error) → value."""


def to_document(value: Any) -> Any:
    """Turn a value of the domain into dicts, lists, strings, numbers, booleans and None.

    :raises TypeError: ``value`` holds something that has no place on the bus; a fault of ours.
    """
    if isinstance(value, Enum):
        return value.value
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: to_document(getattr(value, field.name)) for field in fields(value) if field.repr}
    if isinstance(value, Mapping):
        return {str(to_document(key)): to_document(item) for key, item in value.items()}
    if isinstance(value, AbstractSet):
        return sorted(to_document(item) for item in value)
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray):
        return [to_document(item) for item in value]
    raise TypeError(f"{type(value).__name__} cannot travel on the bus")


def from_document(cls: type[T], document: Any) -> T:
    """Rebuild a value of ``cls`` from what :func:`to_document` made of it.

    :raises InvalidRequest: names the path of what is missing or of the wrong kind. Never repeats the document's content.
    """
    decode: Decoder = _decoder(cls)  # type: ignore[arg-type]  # every class is hashable
    return cast("T", decode(document, cls.__name__))


def encode_device(device: Device, secret_token: str) -> Document:
    """A device for the bus. ``secret_token`` is its sealed management secret; the plain one, if any, stays behind."""
    document: Document = to_document(device)
    document["management"]["secret"] = secret_token
    return document


def decode_device(document: Mapping[str, Any]) -> tuple[Device, str]:
    """What :func:`encode_device` made: the device without its secret, and the sealed secret ("" when it has none).

    :raises InvalidRequest: as :func:`from_document`.
    """
    management = document.get("management") if isinstance(document, Mapping) else None
    if not isinstance(management, Mapping):
        raise InvalidRequest("Device.management must be an object.")
    token = management.get("secret") or ""
    if not isinstance(token, str):
        raise InvalidRequest("Device.management.secret must be a sealed text.")
    opened = {key: item for key, item in management.items() if key != "secret"}
    return from_document(Device, {**document, "management": opened}), token


@cache
def _decoder(annotation: Any) -> Decoder:
    """The decoder of an annotation, built once: a VIP of 10,000 members calls that of a member 10,000 times."""
    if annotation is Any:
        return lambda document, _path: document
    if annotation in _SCALARS:
        return _scalar(annotation)
    if isinstance(annotation, type) and get_origin(annotation) is None:
        return _class(annotation)
    return _generic(annotation)


def _class(kind: type) -> Decoder:
    if issubclass(kind, Enum):
        return _enum(kind)
    if is_dataclass(kind):
        return _dataclass(kind)
    if issubclass(kind, tuple) and hasattr(kind, "_fields"):
        return _named_tuple(kind)
    raise TypeError(f"no rule to read {kind.__name__} from the bus")


_SCALARS: Mapping[Any, tuple[tuple[type, ...], str]] = {
    str: ((str,), "a string"),
    bool: ((bool,), "true or false"),
    int: ((int,), "an integer"),
    float: ((int, float), "a number"),
}


def _wrong(path: str, wanted: str) -> InvalidRequest:
    return InvalidRequest(f"{path} must be {wanted}.", path=path)


def _scalar(kind: type) -> Decoder:
    accepted, wanted = _SCALARS[kind]

    def decode(document: Any, path: str) -> Any:
        # A boolean is an integer for Python, never for us.
        if not isinstance(document, accepted) or (isinstance(document, bool) and kind is not bool):
            raise _wrong(path, wanted)
        return document

    return decode


def _enum(kind: type[Enum]) -> Decoder:
    def decode(document: Any, path: str) -> Enum:
        try:
            return kind(document)
        except ValueError:
            raise _wrong(path, f"one of {', '.join(str(item.value) for item in kind)}") from None

    return decode


def _dataclass(kind: type) -> Decoder:
    hints = get_type_hints(kind)
    decoders = [(field, _decoder(hints[field.name])) for field in fields(kind) if field.init and field.repr]

    def decode(document: Any, path: str) -> Any:
        if not isinstance(document, Mapping):
            raise _wrong(path, "an object")
        values = {}
        for field, decoder in decoders:
            if field.name in document:
                values[field.name] = decoder(document[field.name], f"{path}.{field.name}")
            elif _required(field):
                raise InvalidRequest(f"{path}.{field.name} is missing.", path=f"{path}.{field.name}")
        return kind(**values)

    return decode


def _required(field: Field[Any]) -> bool:
    return field.default is MISSING and field.default_factory is MISSING


def _named_tuple(kind: Any) -> Decoder:
    hints = get_type_hints(kind)
    decoders = [_decoder(hints[name]) for name in kind._fields]
    required = len(decoders) - len(kind._field_defaults)

    def decode(document: Any, path: str) -> Any:
        # What a newer release appended is left out, as unknown fields are.
        if not isinstance(document, list | tuple) or len(document) < required:
            raise _wrong(path, f"a list of {len(decoders)}: {', '.join(kind._fields)}")
        return kind(*(decoder(item, path) for decoder, item in zip(decoders, document, strict=False)))

    return decode


def _generic(annotation: Any) -> Decoder:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin in (Union, types.UnionType):
        return _optional(annotation, arguments)
    if origin is tuple and len(arguments) == 2 and arguments[1] is Ellipsis:
        return _collection(tuple, _decoder(arguments[0]))
    if origin is frozenset:
        return _collection(frozenset, _decoder(arguments[0]))
    if origin in (Mapping, dict):
        return _mapping(_decoder(arguments[1]))
    raise TypeError(f"no rule to read {annotation} from the bus")


def _optional(annotation: Any, arguments: tuple[Any, ...]) -> Decoder:
    others = [argument for argument in arguments if argument is not type(None)]
    if len(others) != 1:
        raise TypeError(f"no rule to read {annotation} from the bus")
    decoder = _decoder(others[0])
    return lambda document, path: None if document is None else decoder(document, path)


def _collection(build: Callable[[Any], Any], item: Decoder) -> Decoder:
    def decode(document: Any, path: str) -> Any:
        if not isinstance(document, list | tuple):
            raise _wrong(path, "a list")
        return build(item(element, f"{path}[{index}]") for index, element in enumerate(document))

    return decode


def _mapping(item: Decoder) -> Decoder:
    def decode(document: Any, path: str) -> Any:
        if not isinstance(document, Mapping):
            raise _wrong(path, "an object")
        return {key: item(element, f"{path}.{key}") for key, element in document.items()}

    return decode
