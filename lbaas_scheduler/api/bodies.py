"""Reading a request's body: JSON in an envelope, within bounds."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any, NoReturn

import falcon

from lbaas_scheduler.errors import InvalidRequest
from lbaas_scheduler.schemas.checker import shown

_JSON = ("application/json", "text/json")
# curl -d sends it unless told otherwise; nobody who does so means a form.
_NOT_SAID = ("", "application/x-www-form-urlencoded", "application/octet-stream", "text/plain")


MAX_BULK = 100
"""Objects that one request may create."""


@dataclass(frozen=True, slots=True)
class Bulk:
    """The bodies of several new objects of one noun."""

    bodies: list[Any]


def read(req: falcon.Request, envelope: str, plural: str, max_bytes: int, bulk: bool = False) -> Any:
    """What lies under ``envelope``; with ``bulk`` also a :class:`Bulk` of what lies under ``plural``.

    :raises InvalidRequest: no JSON, or not in the envelope.
    :raises falcon.HTTPContentTooLarge: more than ``max_bytes``.
    :raises falcon.HTTPUnsupportedMediaType: the body says that it is something else than JSON.
    """
    media_type = (req.content_type or "").partition(";")[0].strip().lower()
    if media_type not in (*_JSON, *_NOT_SAID) and not media_type.endswith("+json"):
        raise falcon.HTTPUnsupportedMediaType(description="The body must be application/json.")
    document = _parse(_bytes(req, max_bytes))
    if not isinstance(document, dict):
        raise InvalidRequest(reason=f"the body must be an object {{{envelope!r}: {{...}}}}")
    many = bulk and plural in document
    if plural in document and plural != envelope and not bulk:
        raise InvalidRequest(reason=f"bulk operation not supported: send one {envelope!r} at a time")
    envelope = plural if many else envelope
    if envelope not in document:
        raise InvalidRequest(reason=f"unable to find {envelope!r} in the request body")
    others = [shown(name) for name in document if name != envelope]
    if others:
        raise InvalidRequest(reason=f"the body must have {envelope!r} only, not {', '.join(others[:10])}")
    return _bulk(document[plural], plural) if many else document[envelope]


def _bulk(bodies: Any, plural: str) -> Bulk:
    if not isinstance(bodies, list) or not 1 <= len(bodies) <= MAX_BULK:
        raise InvalidRequest(reason=f"{plural!r} must be a list of 1 to {MAX_BULK} objects")
    return Bulk(bodies)


def _bytes(req: falcon.Request, max_bytes: int) -> bytes:
    if req.content_length is not None and req.content_length > max_bytes:
        _too_large(max_bytes)
    # One more than allowed: a body that is sent in chunks has no length beforehand.
    chunked = req.content_length is None and "chunked" in (req.get_header("Transfer-Encoding") or "").lower()
    data: bytes = (req.stream if chunked else req.bounded_stream).read(max_bytes + 1)
    if len(data) > max_bytes:
        _too_large(max_bytes)
    return data


def _too_large(max_bytes: int) -> NoReturn:
    raise falcon.HTTPContentTooLarge(description=f"The body must not be longer than {max_bytes} bytes.")


def _parse(data: bytes) -> Any:
    if not data:
        raise InvalidRequest(reason="resource body required")
    try:
        return json.loads(data.decode("utf-8"), parse_constant=_no_constant, parse_float=_number)
    except (ValueError, RecursionError):
        raise InvalidRequest(reason="the body is not valid JSON") from None


def _number(text: str) -> float:
    """Of a number beyond all floats Python makes an infinity, which no database and no client takes."""
    number = float(text)
    if math.isinf(number):
        raise InvalidRequest(reason=f"the number {shown(text)} is too large")
    return number


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")
