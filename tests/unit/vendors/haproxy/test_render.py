"""The configuration file of a VIP, whole and piece by piece."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from lbaas_scheduler.domain.loadbalancers import (
    HealthMonitor,
    Member,
    Method,
    MonitorType,
    Persistence,
    Protocol,
    SessionPersistence,
    Vip,
)
from lbaas_scheduler.errors import DriverError
from lbaas_scheduler.vendors.haproxy import render
from tests.unit.vendors.haproxy.documents import MEMBERS, MONITOR, deployment, vip

GOLDEN = Path(__file__).parent / "golden"

SHAPES = {
    "http": vip(pool={"health_monitors": (MONITOR,)}, connection_limit=100),
    "http-cookie": vip(
        session_persistence=SessionPersistence(Persistence.HTTP_COOKIE), pool={"lb_method": Method.LEAST_CONNECTIONS}
    ),
    "app-cookie": vip(session_persistence=SessionPersistence(Persistence.APP_COOKIE, "JSESSIONID")),
    "https-ipv6": vip(
        Protocol.HTTPS,
        address="2001:DB8:0::5",
        protocol_port=443,
        session_persistence=SessionPersistence(Persistence.SOURCE_IP),
        pool={
            "lb_method": Method.SOURCE_IP,
            "members": (Member("m1", "2001:db8::11", 8443),),
            "health_monitors": (replace(MONITOR, type=MonitorType.HTTPS),),
        },
    ),
    "several-monitors": vip(
        pool={"health_monitors": (MONITOR, replace(MONITOR, id="h2", type=MonitorType.HTTPS, url_path="/secure"))}
    ),
    "tcp-pool-down": vip(
        Protocol.TCP, pool={"admin_state_up": False, "health_monitors": (replace(MONITOR, type=MonitorType.TCP),)}
    ),
}


def body(document: Vip) -> str:
    """Without the lines that name a digest of all others."""
    return render.render_vip(deployment(document)).body.partition("\nglobal\n")[0]


def errors(document: Vip) -> dict[str, str]:
    return dict(render.render_vip(deployment(document)).errors)


@pytest.mark.parametrize("name", SHAPES)
def test_a_vips_file_is_the_golden_one(name: str) -> None:
    assert body(SHAPES[name]) == (GOLDEN / f"{name}.cfg").read_text()


@pytest.mark.parametrize(
    ("method", "line"),
    [
        (Method.ROUND_ROBIN, "    balance roundrobin\n"),
        (Method.LEAST_CONNECTIONS, "    balance leastconn\n"),
        (Method.SOURCE_IP, "    balance source\n    hash-type consistent\n"),
    ],
)
def test_methods_have_their_algorithm(method: Method, line: str) -> None:
    assert line in body(vip(pool={"lb_method": method}))


def test_more_members_than_dynamic_round_robin_takes_are_spread_statically() -> None:
    members = tuple(Member(f"m{number}", "10.0.0.1", number) for number in range(1, render.ROUND_ROBIN_MAX + 2))
    assert "balance static-rr\n" in body(vip(pool={"members": members}))
    assert "balance roundrobin\n" in body(vip(pool={"members": members[1:]}))


@pytest.mark.parametrize(("protocol", "mode"), [(Protocol.HTTP, "http"), (Protocol.TCP, "tcp"), (Protocol.HTTPS, "tcp")])
def test_only_http_is_understood(protocol: Protocol, mode: str) -> None:
    text = body(vip(protocol))
    assert text.count(f"    mode {mode}\n") == 2
    assert ("    http-request set-header X-Forwarded-For %[src]\n" in text) == (protocol is Protocol.HTTP)


@pytest.mark.parametrize(
    ("limit", "line"),
    [(1, "    maxconn 1\n"), (2**31 - 1, "    maxconn 2147483647\n"), (0, "    tcp-request connection reject\n")],
)
def test_a_connection_limit_is_kept(limit: int, line: str) -> None:
    assert line in body(vip(connection_limit=limit))
    assert "maxconn" not in body(vip(connection_limit=-1))


def test_a_vip_that_is_down_has_no_frontend_but_keeps_its_backend() -> None:
    rendered = render.render_vip(deployment(vip(admin_state_up=False)))
    assert "frontend" not in rendered.body
    assert rendered.body.startswith("backend v1.p1\n")
    assert rendered.marker.bind == ""


def test_members_that_are_down_are_kept_but_disabled() -> None:
    off = replace(MEMBERS[0], admin_state_up=False)
    lines = [line for line in body(vip(pool={"members": (off, MEMBERS[1])})).splitlines() if line.startswith("    server")]
    assert lines == ["    server m1 10.0.0.11:8080 weight 1 disabled", "    server m2 10.0.0.12:8080 weight 5"]


def test_a_cookie_without_members_is_left_out() -> None:
    assert "cookie" not in body(vip(session_persistence=SessionPersistence(Persistence.HTTP_COOKIE), pool={"members": ()}))


@pytest.mark.parametrize("kind", [Persistence.HTTP_COOKIE, Persistence.APP_COOKIE])
@pytest.mark.parametrize("protocol", [Protocol.TCP, Protocol.HTTPS])
def test_a_cookie_without_http_is_refused_and_not_ignored(kind: Persistence, protocol: Protocol) -> None:
    with pytest.raises(DriverError, match="needs protocol HTTP"):
        body(vip(protocol, session_persistence=SessionPersistence(kind, "x")))


def test_the_table_of_clients_has_the_vips_address_family() -> None:
    sticky = SessionPersistence(Persistence.SOURCE_IP)
    assert "stick-table type ip size" in body(vip(session_persistence=sticky))
    assert "stick-table type ipv6 size" in body(vip(session_persistence=sticky, address="::1"))


def test_monitors_that_are_down_are_left_out() -> None:
    assert "check" not in body(vip(pool={"health_monitors": (replace(MONITOR, admin_state_up=False),)}))


@pytest.mark.parametrize(
    "changes",
    [
        {"type": MonitorType.PING},
        {"delay": 0},
        {"delay": 86_401},
        {"max_retries": 11},
        {"timeout": 0},
        {"url_path": "no-slash"},
        {"url_path": "/a b"},
        {"url_path": "/\n    server evil 192.0.2.66:80"},
        {"url_path": "/ä"},
        {"url_path": "/" + "a" * 255},
        {"url_path": ""},
        {"http_method": "get"},
        {"http_method": "GET\n"},
        {"http_method": "GET uri /x"},
        {"expected_codes": "299-200"},
        {"expected_codes": "200\n"},
        {"expected_codes": "２００"},
        {"expected_codes": "000"},
        {"expected_codes": ""},
        {"expected_codes": "200,"},
        {"expected_codes": "rstatus ."},
    ],
)
def test_a_monitor_that_cannot_be_applied_is_reported_and_left_out(changes: dict[str, object]) -> None:
    bad = replace(MONITOR, id="bad", **changes)
    document = vip(pool={"health_monitors": (bad,)})
    assert set(errors(document)) == {"bad"}
    assert body(document) == body(vip())


def test_a_monitor_with_a_rhythm_of_its_own_is_reported_and_the_first_applied() -> None:
    other = replace(MONITOR, id="h2", delay=11)
    document = vip(pool={"health_monitors": (MONITOR, other)})
    assert set(errors(document)) == {"h2"}
    assert body(document) == body(vip(pool={"health_monitors": (MONITOR,)}))


@pytest.mark.parametrize(
    "member",
    [
        Member("bad", "10.0.0.1; quit", 80),
        Member("bad", "fe80::1%eth0\n    server evil 192.0.2.66:80", 80),
        Member("bad", "member.example.org", 80),
        Member("bad", "10.0.0.1", 0),
        Member("bad", "10.0.0.1", 65536),
        Member("bad", "10.0.0.1", 80, weight=257),
        Member("bad", "10.0.0.1", 80, weight=-1),
    ],
)
def test_a_member_that_cannot_be_applied_is_reported_and_left_out(member: Member) -> None:
    document = vip(pool={"members": (*MEMBERS, member)})
    assert set(errors(document)) == {"bad"}
    assert body(document) == body(vip())


@pytest.mark.parametrize(
    "document",
    [
        vip(id="../../etc/passwd"),
        vip(id="v1\nglobal"),
        vip(pool={"id": "p 1"}),
        vip(address="0.0.0.0:80 user root"),
        vip(address="fe80::1%x y"),
        vip(address="0.0.0.0"),  # noqa: S104
        vip(address="::ffff:192.0.2.10"),
        vip(protocol_port=0),
        vip(connection_limit=-2),
        *(
            vip(session_persistence=SessionPersistence(Persistence.APP_COOKIE, name))
            for name in (None, "", "a b", "a,b", "a)b", "a#b", 'a"b', "a'b", "a\\b", "a\nb", "ä", "a" * 256, "a;b", "a$b", "a=b")
        ),
    ],
)
def test_a_vip_that_cannot_be_applied_is_refused(document: Vip) -> None:
    with pytest.raises(DriverError):
        render.render_vip(deployment(document))


def test_a_vip_has_its_own_limit_or_its_share_of_the_device_whichever_is_less() -> None:
    def text(limit: int) -> str:
        return render.render_vip(deployment(vip(connection_limit=limit)), render.Terms(connections=100)).body

    assert "    maxconn 100\n" in text(-1)
    assert "    maxconn 99\n" in text(99)
    assert "    maxconn 100\n" in text(101)
    assert "    tcp-request connection reject\n" in text(0)


def test_a_monitors_timeout_bounds_the_connection_too() -> None:
    """HAProxy 2.6 counts a check's timeout from when it is connected, and waits for that as long as for any connection."""
    assert "    timeout connect 3s\n" in body(vip(pool={"health_monitors": (replace(MONITOR, timeout=3),)}))
    assert "timeout connect" not in body(vip(pool={"health_monitors": (replace(MONITOR, timeout=5),)}))


@pytest.mark.parametrize(
    "member",
    [
        Member("bad", "192.0.2.10", 80),
        Member("bad", "0.0.0.0", 80),  # noqa: S104
        Member("bad", "::", 80),
        Member("bad", "::ffff:192.0.2.10", 80),
        Member("bad", "127.0.0.1", 8080),
        Member("bad", "::1", 8080),
        Member("bad", "192.0.2.20", 80),
    ],
)
def test_a_member_by_which_haproxy_would_call_itself_is_reported_and_left_out(member: Member) -> None:
    """The VIP itself, an address that means the device's own, or another VIP of the device that leads back."""
    beside = {("192.0.2.20", 80): [("192.0.2.30", 80)], ("192.0.2.30", 80): [("192.0.2.10", 80), ("192.0.2.20", 80)]}
    rendered = render.render_vip(deployment(vip(pool={"members": (*MEMBERS, member)})), beside=beside)
    assert set(rendered.errors) == {"bad"}
    assert rendered.servers == render.render_vip(deployment(vip())).servers


def test_a_vip_behind_another_one_of_the_device_is_an_ordinary_member() -> None:
    ahead = vip(pool={"members": (Member("m1", "192.0.2.20", 80),)})
    rendered = render.render_vip(deployment(ahead), beside={("192.0.2.20", 80): [("192.0.2.10", 8080)]})
    assert (rendered.errors, len(rendered.servers)) == ({}, 1)


def test_every_line_ends() -> None:
    assert all(body(document).endswith("\n") and "\n\n\n" not in body(document) for document in SHAPES.values())


def test_the_same_vip_gives_the_same_text() -> None:
    assert render.render_vip(deployment(vip())) == render.render_vip(deployment(vip()))


def monitor_of(delay: int) -> HealthMonitor:
    return replace(MONITOR, delay=delay)


@pytest.mark.parametrize("delay", [1, 86_400])
def test_the_longest_and_the_shortest_delay_are_kept(delay: int) -> None:
    assert f" check inter {delay}s fall 4 " in body(vip(pool={"health_monitors": (monitor_of(delay),)}))
