"""What reaches a device's configuration, tried with whatever a tenant may think of."""

from __future__ import annotations

import ipaddress
import re
import string
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lbaas_scheduler.domain.loadbalancers import HealthMonitor, MonitorType
from lbaas_scheduler.errors import DelayOrTimeoutInvalid, InvalidRequest
from lbaas_scheduler.plugins.loadbalancer.schemas.health_monitors import HEALTH_MONITOR, check_times
from lbaas_scheduler.plugins.loadbalancer.schemas.members import MEMBER
from lbaas_scheduler.plugins.loadbalancer.schemas.vips import VIP, check_persistence
from lbaas_scheduler.schemas.attributes import Noun, Verb, accept

PRINTABLE = set(string.ascii_letters + string.digits + string.punctuation)

# Random text seldom gets past the first character: mix in what nearly fits.
codes = st.one_of(
    st.text(max_size=70),
    st.from_regex(r"[0-9]{1,4}([ ,-]{1,2}[0-9]{3}){0,3}\s?", fullmatch=True),
    st.lists(st.integers(90, 620).map(str), min_size=1, max_size=20).map(",".join),
    st.tuples(st.integers(90, 620), st.integers(90, 620)).map(lambda pair: f"{pair[0]}-{pair[1]}"),
)
paths = st.one_of(st.text(), st.text().map("/{}".format), st.text(alphabet=sorted(PRINTABLE)).map("/{}".format))
cookies = st.one_of(st.text(), st.text(alphabet=sorted(PRINTABLE), min_size=1))


scalars = st.none() | st.booleans() | st.integers() | st.text()
anything = st.recursive(scalars, lambda each: st.lists(each) | st.dictionaries(st.text(), each))


def _is_refused(noun: Noun, body: dict[str, Any]) -> bool:
    try:
        accept(noun, body, Verb.PUT)
    except InvalidRequest:
        return True
    return False


@given(codes)
def test_accepted_codes_can_be_expanded_to_status_codes(text: str) -> None:
    if _is_refused(HEALTH_MONITOR, {"expected_codes": text}):
        return
    monitor = HealthMonitor("m", MonitorType.HTTP, 5, 2, 3, expected_codes=text)
    assert monitor.codes
    assert all(100 <= code <= 599 for code in monitor.codes)
    assert len(text) <= 64
    assert set(text) <= set(string.digits + ",- ")


@given(st.integers(100, 599), st.integers(100, 599))
def test_a_range_is_accepted_exactly_when_it_is_not_empty(low: int, high: int) -> None:
    assert _is_refused(HEALTH_MONITOR, {"expected_codes": f"{low}-{high}"}) is (low > high)


@given(paths)
def test_accepted_paths_need_no_quoting_anywhere(text: str) -> None:
    if _is_refused(HEALTH_MONITOR, {"url_path": text}):
        return
    assert text.startswith("/")
    assert set(text) <= PRINTABLE - set("\"'\\#`<>{}|^[]")
    assert re.fullmatch(r"(?:[^%]|%[0-9A-Fa-f]{2})*", text)


@given(st.text(alphabet=string.ascii_letters + string.digits + "-._~/", max_size=200))
def test_plain_paths_are_accepted(text: str) -> None:
    assert not _is_refused(HEALTH_MONITOR, {"url_path": f"/{text}"})


@given(cookies)
def test_accepted_cookie_names_are_tokens_without_quotes(text: str) -> None:
    if _is_refused(VIP, {"session_persistence": {"type": "APP_COOKIE", "cookie_name": text}}):
        return
    assert set(text) <= PRINTABLE - set("\"'\\#$(),/:;<=>?@[]{}`")
    assert text


@given(st.one_of(st.text(), st.ip_addresses().map(str), st.ip_addresses().map(lambda ip: str(ip).upper())))
def test_accepted_addresses_are_canonical_and_of_one_host(text: str) -> None:
    try:
        body = {"pool_id": "12345678-1234-1234-1234-123456789abc", "address": text, "protocol_port": 80}
        address = accept(MEMBER, body, Verb.POST)["address"]
    except InvalidRequest:
        return
    parsed = ipaddress.ip_address(address)
    assert address == str(parsed)
    assert parsed == ipaddress.ip_address(text)
    assert not any((parsed.is_multicast, parsed.is_unspecified, parsed.is_link_local))


@given(st.one_of(st.integers(), st.integers().map(str), st.floats(allow_nan=False), st.text(), st.booleans(), st.none()))
def test_accepted_ports_are_ports(value: Any) -> None:
    body = {"pool_id": "12345678-1234-1234-1234-123456789abc", "address": "10.0.0.1", "protocol_port": value}
    try:
        port = accept(MEMBER, body, Verb.POST)["protocol_port"]
    except InvalidRequest:
        return
    assert type(port) is int
    assert 1 <= port <= 65535


@given(st.text(max_size=300))
def test_names_are_taken_as_they_are_or_not_at_all(name: str) -> None:
    fits = len(name) <= 255 and "\0" not in name and not any("\ud800" <= char <= "\udfff" for char in name)
    fits = fits and name == name.strip()
    assert _is_refused(VIP, {"name": name}) is not fits
    if fits:
        assert accept(VIP, {"name": name}, Verb.PUT) == {"name": name}


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(), lambda each: st.lists(each) | st.dictionaries(st.text(), each)
    )
)
def test_whatever_the_body_says_the_answer_is_ours(value: Any) -> None:
    for noun in (VIP, MEMBER, HEALTH_MONITOR):
        for name in noun.attributes:
            _is_refused(noun, {name: value})


@pytest.mark.parametrize(
    ("persistence", "protocol", "expected"),
    [
        (None, "TCP", None),
        ({"type": "SOURCE_IP"}, "HTTPS", {"type": "SOURCE_IP", "cookie_name": None}),
        ({"type": "HTTP_COOKIE", "cookie_name": None}, "HTTP", {"type": "HTTP_COOKIE", "cookie_name": None}),
        ({"type": "APP_COOKIE", "cookie_name": "a"}, "HTTP", {"type": "APP_COOKIE", "cookie_name": "a"}),
    ],
)
def test_sound_persistence(persistence: Any, protocol: str, expected: Any) -> None:
    assert check_persistence(persistence, protocol) == expected


@pytest.mark.parametrize(
    ("persistence", "protocol", "words"),
    [
        ({"type": "APP_COOKIE"}, "HTTP", "needs a 'cookie_name'"),
        ({"type": "APP_COOKIE", "cookie_name": None}, "HTTP", "needs a 'cookie_name'"),
        ({"type": "HTTP_COOKIE", "cookie_name": "a"}, "HTTP", "APP_COOKIE only"),
        ({"type": "SOURCE_IP", "cookie_name": "a"}, "HTTP", "APP_COOKIE only"),
        ({"type": "HTTP_COOKIE"}, "TCP", "needs protocol HTTP"),
        ({"type": "APP_COOKIE", "cookie_name": "a"}, "HTTPS", "needs protocol HTTP"),
    ],
)
def test_unsound_persistence(persistence: Any, protocol: str, words: str) -> None:
    with pytest.raises(InvalidRequest, match=words):
        check_persistence(persistence, protocol)


@given(st.integers(1, 86400), st.integers(1, 86400))
def test_a_check_ends_before_the_next_one_starts(delay: int, timeout: int) -> None:
    if delay >= timeout:
        check_times(delay, timeout)
    else:
        with pytest.raises(DelayOrTimeoutInvalid):
            check_times(delay, timeout)
