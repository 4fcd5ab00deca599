"""Each option says when and why to change it, and refuses what makes no sense."""

from __future__ import annotations

import re

import pytest
from oslo_config import cfg, types

from lbaas_scheduler.conf import database, opts
from lbaas_scheduler.vendors.envoy import options as envoy
from lbaas_scheduler.vendors.fake import options as fake
from lbaas_scheduler.vendors.haproxy import options as haproxy

NUMBERS = (cfg.IntOpt, cfg.FloatOpt)
TIMES = re.compile(r"timeout|interval|deadline|delay|backoff|down|shutdown|latency|ttl")


def _ours() -> list[tuple[str, cfg.Opt]]:
    """All options but those that oslo.db brings."""
    groups = [pair for module in (opts, envoy, fake, haproxy) for pair in module.list_opts()]
    return [(group, option) for group, options in groups if group != database.GROUP for option in options]


OURS = pytest.mark.parametrize(("group", "option"), _ours(), ids=lambda value: getattr(value, "name", value))


@OURS
def test_the_help_is_a_text_of_sentences(group, option):
    text = option.help or ""
    assert text[:1].isupper(), f"[{group}] {option.name}: {text!r}"
    assert text.endswith((".", "?", ")")), f"[{group}] {option.name}: {text!r}"
    assert len(text.split()) >= 8, f"[{group}] {option.name} says what it is, but not when and why to change it: {text!r}"


@OURS
def test_a_number_has_bounds_and_a_unit(group, option):
    if not isinstance(option, NUMBERS):
        return
    if TIMES.search(option.name):
        assert option.name.endswith(("_seconds", "_ms")), f"[{group}] {option.name}: name the unit"
    if not option.name.endswith("_seed"):
        assert isinstance(option.type, types.Number)
        assert option.type.min is not None, f"[{group}] {option.name} takes negative numbers"


@OURS
def test_a_secret_is_marked_as_one(group, option):
    if any(word in option.name for word in ("password", "secret", "encryption_key", "token")):
        assert option.secret, f"[{group}] {option.name} would be written to the log"


@OURS
def test_the_default_is_valid(group, option):
    if option.default is not None:
        assert option.type(written(option.default)) == option.default, f"[{group}] {option.name}"


def written(value):
    """As it would stand in the file."""
    if isinstance(value, dict):
        return ",".join(f"{key}:{item}" for key, item in value.items())
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)
