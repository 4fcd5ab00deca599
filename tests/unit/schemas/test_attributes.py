"""How bodies are judged by attribute maps."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest

from lbaas_scheduler.errors import InvalidRequest
from lbaas_scheduler.networks.schemas import NETWORK, SUBNET
from lbaas_scheduler.plugins.loadbalancer.schemas.health_monitors import HEALTH_MONITOR
from lbaas_scheduler.plugins.loadbalancer.schemas.members import MEMBER
from lbaas_scheduler.plugins.loadbalancer.schemas.pools import POOL
from lbaas_scheduler.plugins.loadbalancer.schemas.vips import VIP
from lbaas_scheduler.schemas.attributes import REQUIRED, Noun, Verb, accept

ID = "12345678-1234-1234-1234-123456789abc"
NOUNS = (VIP, POOL, MEMBER, HEALTH_MONITOR, NETWORK, SUBNET)
COMPLETE: dict[str, dict[str, Any]] = {
    "vip": {"subnet_id": ID, "protocol": "HTTP", "protocol_port": 80, "pool_id": ID},
    "pool": {"subnet_id": ID, "protocol": "HTTP", "lb_method": "ROUND_ROBIN"},
    "member": {"pool_id": ID, "address": "10.0.0.1", "protocol_port": 80},
    "health_monitor": {"type": "HTTP", "delay": 5, "timeout": 2, "max_retries": 3},
    "network": {},
    "subnet": {"network_id": ID, "cidr": "10.0.0.0/24"},
}


@pytest.mark.parametrize("noun", NOUNS, ids=lambda noun: noun.name)
def test_a_complete_body_gets_its_defaults(noun: Noun) -> None:
    values = accept(noun, COMPLETE[noun.name], Verb.POST)
    expected = {name for name, attribute in noun.attributes.items() if attribute.post}
    assert set(values) == expected
    assert REQUIRED not in values.values()
    assert {name: values[name] for name in COMPLETE[noun.name]} == COMPLETE[noun.name]


@pytest.mark.parametrize("noun", NOUNS, ids=lambda noun: noun.name)
def test_a_put_has_no_defaults(noun: Noun) -> None:
    assert accept(noun, {}, Verb.PUT) == {}


@pytest.mark.parametrize("noun", NOUNS, ids=lambda noun: noun.name)
def test_each_required_attribute_is_missed(noun: Noun) -> None:
    for name in COMPLETE[noun.name]:
        body = {key: value for key, value in COMPLETE[noun.name].items() if key != name}
        with pytest.raises(InvalidRequest, match=f"'{name}'"):
            accept(noun, body, Verb.POST)


@pytest.mark.parametrize("noun", NOUNS, ids=lambda noun: noun.name)
def test_unknown_attributes_are_refused(noun: Noun) -> None:
    for verb in Verb:
        with pytest.raises(InvalidRequest, match=r"unrecognized.*'colour'"):
            accept(noun, {**COMPLETE[noun.name], "colour": "red"}, verb)


@pytest.mark.parametrize("noun", NOUNS, ids=lambda noun: noun.name)
def test_read_only_attributes_are_refused(noun: Noun) -> None:
    for name, attribute in noun.attributes.items():
        if not attribute.post:
            with pytest.raises(InvalidRequest, match=f"'{name}'.*not allowed in POST"):
                accept(noun, {**COMPLETE[noun.name], name: None}, Verb.POST)
        if not attribute.put:
            with pytest.raises(InvalidRequest, match=f"'{name}'.*read-only"):
                accept(noun, {name: None}, Verb.PUT)


@pytest.mark.parametrize("body", [None, [], "vip", 5, [["name", "x"]]])
def test_a_body_must_be_an_object(body: Any) -> None:
    with pytest.raises(InvalidRequest, match="must be an object"):
        accept(VIP, body, Verb.POST)


@pytest.mark.parametrize("noun", NOUNS, ids=lambda noun: noun.name)
def test_the_maps_are_json_schemas_that_can_be_published(noun: Noun) -> None:
    for verb in Verb:
        schema = noun.schema(verb)
        jsonschema.Draft202012Validator.check_schema(schema)
        assert set(schema["required"]) == (set(COMPLETE[noun.name]) if verb is Verb.POST else set())
    assert jsonschema.Draft202012Validator(noun.schema(Verb.POST)).is_valid(COMPLETE[noun.name])


@pytest.mark.parametrize("noun", NOUNS, ids=lambda noun: noun.name)
def test_defaults_fit_their_own_schemas(noun: Noun) -> None:
    values = accept(noun, COMPLETE[noun.name], Verb.POST)
    given = {name: value for name, value in values.items() if value not in (None, "")}
    assert accept(noun, given, Verb.POST) == values


@pytest.mark.parametrize(
    ("noun", "name", "value", "expected"),
    [
        (VIP, "protocol_port", "80", 80),
        (VIP, "connection_limit", "-1", -1),
        (VIP, "connection_limit", 0, 0),
        (VIP, "admin_state_up", "FALSE", False),
        (VIP, "admin_state_up", 1, True),
        (VIP, "admin_state_up", "0", False),
        (VIP, "session_persistence", {}, None),
        (VIP, "session_persistence", None, None),
        (VIP, "subnet_id", ID.upper(), ID),
        (VIP, "address", "2001:DB8::0:1", "2001:db8::1"),
        (VIP, "name", "\"'\n\t负载", "\"'\n\t负载"),
        (VIP, "name", "x" * 255, "x" * 255),
        (MEMBER, "weight", "0", 0),
        (MEMBER, "weight", 256, 256),
        (MEMBER, "address", "127.0.0.1", "127.0.0.1"),
        (POOL, "health_monitors", None, []),
        (POOL, "health_monitors", ID, [ID]),
        (HEALTH_MONITOR, "delay", "86400", 86400),
        (HEALTH_MONITOR, "http_method", "head", "HEAD"),
        (HEALTH_MONITOR, "expected_codes", "200, 202", "200, 202"),
        (HEALTH_MONITOR, "expected_codes", "200-204", "200-204"),
        (HEALTH_MONITOR, "url_path", "/a/b.html?x=%20&y=(1)~", "/a/b.html?x=%20&y=(1)~"),
    ],
)
def test_values_are_converted_before_they_are_judged(noun: Noun, name: str, value: Any, expected: Any) -> None:
    assert accept(noun, {**COMPLETE[noun.name], name: value}, Verb.POST)[name] == expected


BAD_CODES = [
    "",
    "20",
    "2000",
    "200\n",
    "２００",
    "099",
    "600",
    "299-200",
    "200-",
    "200,",
    "200,201-203",
    "200 202",
    "200-202-204",
]
BAD_PATHS = ["", "x", "/a b", "/a\n", "/a\n\tuse_backend x", '/"', "/'", "/\\", "/#x", "/ü", "/\x7f", "/%", "/%zz", "//\r"]
WRONG: list[tuple[Noun, str, list[Any]]] = [
    (VIP, "protocol_port", [0, -1, 65536, 1000500, "0", "", "80a", " 80", "８０", 80.5, True, None, [80]]),
    (VIP, "protocol", ["UDP", "http", "", None, 1]),
    (VIP, "connection_limit", [-2, "-2", 2**31, None, 1.5, "many"]),
    (VIP, "admin_state_up", ["yes", "", 2, None, 1.0]),
    (VIP, "name", ["x" * 256, "a\0b", "\ud800", 5, None]),
    (VIP, "description", ["x" * 256, "\0"]),
    (VIP, "subnet_id", ["", "x", None, ID[:-1], ID + "\n", f" {ID}"]),
    (VIP, "tenant_id", ["", None, "x" * 256, "a b", "a\n"]),
    (VIP, "session_persistence", [{"type": "NONE"}, {"cookie_name": "x"}, "SOURCE_IP", [], {"type": "SOURCE_IP", "x": 1}]),
    (MEMBER, "weight", [-1, 257, None, "heavy"]),
    (HEALTH_MONITOR, "type", ["UDP", "ping", None]),
    (HEALTH_MONITOR, "delay", [0, -1, 86401, None]),
    (HEALTH_MONITOR, "timeout", [0, -1, 86401, None]),
    (HEALTH_MONITOR, "max_retries", [0, 11, None]),
    (HEALTH_MONITOR, "http_method", ["", "GE T", "GET\n", "CONNECT", "ＧＥＴ", None, "GET /\r\nHost: x"]),
    (HEALTH_MONITOR, "expected_codes", [*BAD_CODES, None, 200]),
    (HEALTH_MONITOR, "url_path", [*BAD_PATHS, None, "/" + "x" * 255]),
    (POOL, "lb_method", ["", "RANDOM", None]),
    (POOL, "health_monitors", ["x", [ID, ID], [None]]),
]


def _label(value: object) -> str:
    # The repr of a noun has addresses of functions in it, and each worker of a parallel run would name the test differently.
    return value.name if isinstance(value, Noun) else repr(value)[:60]


@pytest.mark.parametrize(
    ("noun", "name", "value"), [(noun, name, value) for noun, name, values in WRONG for value in values], ids=_label
)
def test_wrong_values_are_refused_by_the_name_of_their_attribute(noun: Noun, name: str, value: Any) -> None:
    with pytest.raises(InvalidRequest, match=f"'{name}'") as caught:
        accept(noun, {**COMPLETE[noun.name], name: value}, Verb.POST)
    assert "\n" not in caught.value.message
    assert len(caught.value.message) < 500


BAD_COOKIES = ["", "a b", "a=b", "a;b", "a,b", "a\n", "ü", 'a"', "a'", "a#", "a\\", "a(b)", "x" * 256, "$HOME", "a\tb", "a\0"]


@pytest.mark.parametrize("cookie_name", BAD_COOKIES)
def test_cookie_names_are_tokens(cookie_name: str) -> None:
    with pytest.raises(InvalidRequest, match="session_persistence"):
        accept(VIP, {"session_persistence": {"type": "APP_COOKIE", "cookie_name": cookie_name}}, Verb.PUT)


NOT_OF_ONE_HOST = ["224.0.0.1", "0.0.0.0", "255.255.255.255", "240.0.0.1", "169.254.1.1", "::", "ff02::1", "fe80::1"]  # noqa: S104
AMBIGUOUS = ["fe80::1%eth0", "::ffff:10.0.0.1", "10.0.0", "010.0.0.1", "10.0.0.0/24", 167772161]
NO_ADDRESSES = ["10.0.0.1 ", " 10.0.0.1", "10.0.0.1\n", "web.example", "", None, "１0.0.0.1"]


@pytest.mark.parametrize("address", [*NOT_OF_ONE_HOST, *AMBIGUOUS, *NO_ADDRESSES])
def test_addresses_are_those_of_single_hosts(address: Any) -> None:
    with pytest.raises(InvalidRequest, match="'address'"):
        accept(MEMBER, {**COMPLETE["member"], "address": address}, Verb.POST)
