"""What the conformance kit feeds to drivers as legal is what the API takes; one step beyond, it is refused."""

from __future__ import annotations

from typing import Any

import pytest

from lbaas_scheduler.domain import words
from lbaas_scheduler.plugins.loadbalancer.schemas import health_monitors, members, vips
from lbaas_scheduler.schemas import common
from lbaas_scheduler.schemas.checker import Schema, violation
from lbaas_scheduler.sdk.conformance import documents

MONITOR = {
    "url_path": health_monitors.URL_PATH,
    "http_method": health_monitors.HTTP_METHOD,
    "expected_codes": health_monitors.EXPECTED_CODES,
    "delay": health_monitors.SECONDS,
    "timeout": health_monitors.SECONDS,
    "max_retries": health_monitors.MAX_RETRIES,
}


@pytest.mark.parametrize("name", documents.LEGAL_COOKIES)
def test_the_api_takes_each_cookie_name_of_the_kit(name: str) -> None:
    assert violation(vips.COOKIE_NAME, name) is None


@pytest.mark.parametrize(("key", "value"), [item for changes in documents.LEGAL_MONITORS for item in changes.items()])
def test_the_api_takes_each_word_of_a_monitor_of_the_kit(key: str, value: Any) -> None:
    assert violation(MONITOR[key], value) is None


def test_the_api_takes_each_member_of_the_kit() -> None:
    for member in documents.LEGAL_MEMBERS:
        assert violation(common.ADDRESS, member.address) is None
        assert violation(common.PORT, member.protocol_port) is None
        assert violation(members.WEIGHT, member.weight) is None


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (vips.COOKIE_NAME, "a" * (words.MAX_COOKIE_NAME + 1)),
        (vips.CONNECTION_LIMIT, words.MAX_CONNECTION_LIMIT + 1),
        (health_monitors.URL_PATH, "/" + "a" * words.MAX_URL_PATH),
        (health_monitors.EXPECTED_CODES, ", ".join(["200"] * 14)),
        (health_monitors.SECONDS, words.MAX_SECONDS + 1),
        (health_monitors.MAX_RETRIES, words.MAX_RETRIES + 1),
        (members.WEIGHT, words.MAX_WEIGHT + 1),
    ],
)
def test_one_more_than_the_longest_is_refused(schema: Schema, value: Any) -> None:
    assert violation(schema, value) is not None
