"""What a service type or a placement rule asks of a device: how it is written, checked when it is written, and read."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from lbaas_scheduler.domain.requests import Tenancy
from lbaas_scheduler.domain.statuses import Form
from lbaas_scheduler.domain.traits import STANDARD, is_trait
from lbaas_scheduler.errors import InvalidRequest
from lbaas_scheduler.scheduler.algorithms.least_loaded import OPTION, Measure
from lbaas_scheduler.scheduler.algorithms.weighted import multipliers

TRAIT_KEYS = ("required", "forbidden", "preferred")

_TRAITS = {
    "type": ["array", "null"],
    "maxItems": 100,
    "items": {"type": "string", "minLength": 1, "maxLength": 255, "description": "the name of a trait"},
    "description": "a list of traits, or null for none",
}

PROPERTIES: Mapping[str, Any] = {
    "tenancy": {"enum": [*map(str, Tenancy), None], "description": f"one of {', '.join(Tenancy)}, or null"},
    "form": {"enum": [*map(str, Form), None], "description": f"one of {', '.join(Form)}, or null"},
    "zone": {"type": ["string", "null"], "maxLength": 255, "description": "the name of a zone, or null for any"},
    "required": _TRAITS,
    "forbidden": _TRAITS,
    "preferred": _TRAITS,
    "algorithm": {
        "type": ["string", "null"],
        "minLength": 1,
        "maxLength": 255,
        "description": "the name of a scheduling algorithm, or null for the configured one",
    },
    "options": {"type": ["object", "null"], "description": "an object of options for the algorithm, or null for none"},
}

SCHEMA: Mapping[str, Any] = {
    "type": ["object", "null"],
    "properties": PROPERTIES,
    "additionalProperties": False,
    "description": f"an object {{{', '.join(PROPERTIES)}}}, or null",
}


def check(where: str, wishes: Mapping[str, Any], algorithms: Collection[str]) -> None:
    """What a schema cannot say of wishes, of which none is null.

    :param where: what the attribute is called.
    :param algorithms: names that are right.
    :raises InvalidRequest: an unknown trait or algorithm, traits that contradict each other, a wrong option.
    """
    for key in TRAIT_KEYS:
        _check_traits(f"{where}.{key}", wishes.get(key, ()))
    both = sorted(set(wishes.get("forbidden", ())) & set(wishes.get("required", ())))
    if both:
        raise InvalidRequest(f"{where}: {both[0]} is required and forbidden at once.")
    algorithm = wishes.get("algorithm")
    if algorithm is not None and algorithm not in algorithms:
        known = ", ".join(sorted(algorithms)) or "none"
        raise InvalidRequest(f"{where}.algorithm: unknown algorithm {algorithm[:64]!r}; loaded: {known}.")
    _check_options(f"{where}.options", wishes.get("options", {}))


def read(wishes: Mapping[str, Any]) -> dict[str, Any]:
    """Wishes, as they were written, as fields of a :class:`~lbaas_scheduler.domain.requests.ScheduleRequest`."""
    return {name: _READ[name](value) for name, value in wishes.items() if value is not None}


_READ: Mapping[str, Any] = {
    "tenancy": Tenancy,
    "form": Form,
    "zone": str,
    "required": frozenset,
    "forbidden": frozenset,
    "preferred": frozenset,
    "algorithm": str,
    "options": dict,
}


def _check_traits(where: str, names: Collection[str]) -> None:
    for name in names:
        if not is_trait(name):
            known = ", ".join(sorted(STANDARD))
            raise InvalidRequest(
                f"{where}: {name[:64]!r} is no trait; known are {known}; names of vendors' own start with CUSTOM_."
            )


def _check_options(where: str, options: Mapping[str, Any]) -> None:
    """Those of the algorithms that are shipped. Others are somebody's own, and his algorithm's to judge."""
    if not isinstance(options.get("strict", False), bool):
        raise InvalidRequest(f"{where}.strict must be true or false.")
    if not isinstance(options.get("zone", ""), str):
        raise InvalidRequest(f"{where}.zone must be the name of a zone.")
    measure = options.get(OPTION, Measure.PLACED)
    if measure not in list(Measure):
        raise InvalidRequest(f"{where}.{OPTION} must be one of {', '.join(Measure)}.")
    try:
        multipliers(options)
    except InvalidRequest as error:
        raise InvalidRequest(f"{where}.weighers: {error.details['reason']}.") from error
