"""Reading a pool's configuration: unknown words are refused, since a misspelt one would silently mean its default."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from lbaas_scheduler.allocator.core.resource import PICKS
from lbaas_scheduler.allocator.texts import check_text
from lbaas_scheduler.errors import InvalidConfig, InvalidRequest

COMMON = ("pick", "quarantine_seconds", "quotas")
"""Words of every kind's configuration."""

MAX_QUARANTINE_SECONDS = 365 * 86_400
_NAME = re.compile(r"[A-Za-z0-9_.:-]{1,64}")


def known_words(kind: str, config: Mapping[str, Any], words: tuple[str, ...]) -> None:
    """:raises InvalidConfig: there is a word that the kind does not know."""
    unknown = sorted(set(config) - set(words) - set(COMMON))
    if unknown:
        raise invalid(kind, f"{', '.join(map(repr, unknown))} is unknown; known are {', '.join((*words, *COMMON))}")


def name(kind: str, config: Mapping[str, Any], word: str, default: str) -> str:
    """A name that becomes a part of a domain."""
    value = config.get(word, default)
    if not isinstance(value, str) or not is_name(value):
        raise invalid(kind, f"{word} is {value!r:.80}; give 1 to 64 letters, digits and _ . : -")
    return value


def name_or_none(kind: str, config: Mapping[str, Any], word: str) -> str:
    """As :func:`name`; "" where nothing is named."""
    return "" if config.get(word, "") == "" else name(kind, config, word, "")


def is_name(text: str) -> bool:
    return _NAME.fullmatch(text) is not None


def choice(kind: str, config: Mapping[str, Any], word: str, choices: tuple[str, ...], default: str) -> str:
    value = config.get(word, default)
    if value not in choices:
        raise invalid(kind, f"{word} is {value!r:.80}; give one of {', '.join(choices)}")
    return str(value)


def common(kind: str, config: Mapping[str, Any], default_pick: str) -> dict[str, Any]:
    """The words that all kinds have, with their defaults."""
    quarantine = config.get("quarantine_seconds", 0)
    if not _is_count(quarantine) or quarantine > MAX_QUARANTINE_SECONDS:
        raise invalid(kind, f"quarantine_seconds is {quarantine!r:.80}; give a whole number from 0 to {MAX_QUARANTINE_SECONDS}")
    quotas = config.get("quotas", {})
    if not isinstance(quotas, Mapping) or not all(_is_tenant(who) and _is_count(many) for who, many in quotas.items()):
        raise invalid(kind, f"quotas is {quotas!r:.80}; give tenant → number of values, '*' for any other tenant")
    return {
        "pick": choice(kind, config, "pick", PICKS, default_pick),
        "quarantine_seconds": quarantine,
        "quotas": dict(quotas),
    }


def invalid(kind: str, reason: str) -> InvalidConfig:
    return InvalidConfig(kind=kind, reason=reason)


def _is_tenant(value: Any) -> bool:
    try:
        check_text("tenant id", value)
    except InvalidRequest:
        return False
    return True


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
