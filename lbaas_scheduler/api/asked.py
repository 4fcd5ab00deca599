"""What operations take that are no noun's: bodies, and parameters of the query, judged by the schemas that describe them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lbaas_scheduler.api.operations import Call, Schema
from lbaas_scheduler.errors import InvalidRequest
from lbaas_scheduler.schemas.checker import shown, violation


def checked(body: Any, schema: Schema, name: str) -> dict[str, Any]:
    """``body``, which is an object that fits ``schema``.

    :raises InvalidRequest: says which attribute is wrong.
    """
    if not isinstance(body, dict):
        raise InvalidRequest(reason=f"{name!r} must be an object")
    known = schema["properties"]
    unknown = [shown(attribute) for attribute in body if attribute not in known]
    if unknown:
        possible = ", ".join(sorted(known))
        raise InvalidRequest(reason=f"{name!r} has no {', '.join(unknown[:10])}; possible: {possible}")
    for attribute, value in body.items():
        reason = violation(known[attribute], value)
        if reason is not None:
            raise InvalidRequest(reason=f"invalid value for '{attribute}': {reason}", attribute=attribute)
    return body


def parameters(call: Call, known: Mapping[str, Any]) -> dict[str, str]:
    """The parameters of the query, none of them twice. What their text means, the caller knows.

    :raises InvalidRequest: one is not among ``known``, or was given twice.
    """
    for name, values in call.query.given.items():
        if name not in known:
            raise InvalidRequest(reason=f"unknown parameter {shown(name)}; possible: {', '.join(sorted(known))}")
        if len(values) != 1:
            raise InvalidRequest(reason=f"'{name}' may be given once", attribute=name)
    return {name: values[0] for name, values in call.query.given.items()}
