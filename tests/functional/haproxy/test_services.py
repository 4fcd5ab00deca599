"""What a VIP's attributes mean in traffic."""

from __future__ import annotations

import datetime
import http.client
import ipaddress
import socket
import ssl
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from lbaas_scheduler.domain.loadbalancers import Method, MonitorType, Persistence, Protocol, SessionPersistence, Vip
from lbaas_scheduler.sdk.conformance import documents
from lbaas_scheduler.sdk.conformance.documents import monitor, with_pool
from tests.functional.haproxy.backends import Backend
from tests.functional.haproxy.lab import Lab, request, spread
from tests.rig.waiting import wait_for


def monitored(vip: Vip, *monitors: object) -> Vip:
    return with_pool(vip, health_monitors=monitors)


@pytest.fixture
def tls(tmp_path: Path) -> ssl.SSLContext:
    """A server's side with a certificate that nobody vouches for."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "member")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    path = tmp_path / "member.pem"
    path.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        + certificate.public_bytes(serialization.Encoding.PEM)
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path)
    return context


def test_http_members_see_the_clients_address(lab: Lab, web: Vip, backends: list[Backend]) -> None:
    lab.serve(web)
    request(web)
    ((_, _, headers),) = [seen for backend in backends for seen in backend.requests]
    assert headers["x-forwarded-for"] == "127.0.0.1"


def test_tcp_is_passed_on_untouched(lab: Lab, web: Vip, backends: list[Backend]) -> None:
    lab.serve(with_pool(replace(web, protocol=Protocol.TCP), protocol=Protocol.TCP))
    request(web)
    ((_, _, headers),) = [seen for backend in backends for seen in backend.requests]
    assert "x-forwarded-for" not in {name.lower() for name in headers}


def test_https_is_passed_on_untouched(lab: Lab, make_backend: Callable[..., Backend], tls: ssl.SSLContext) -> None:
    backend = make_backend(tls=tls)
    secure = documents.vip(protocol=Protocol.HTTPS, members=(backend.member(),), monitors=(monitor(MonitorType.HTTPS),))
    lab.serve(secure)
    lab.wait_for_health(secure, backend.name, True)
    context = ssl._create_unverified_context()  # noqa: S323 - the certificate is the test's own
    connection = http.client.HTTPSConnection(secure.address, secure.protocol_port, timeout=10, context=context)
    connection.request("GET", "/")
    assert connection.getresponse().read().decode() == backend.name
    connection.close()


def test_an_https_monitor_asks_over_tls(lab: Lab, make_backend: Callable[..., Backend], tls: ssl.SSLContext) -> None:
    good, plain = make_backend(tls=tls), make_backend()
    secure = documents.vip(
        protocol=Protocol.HTTPS,
        members=(good.member(), plain.member()),
        monitors=(monitor(MonitorType.HTTPS, url_path="/health", expected_codes="200,204"),),
    )
    lab.serve(secure)
    lab.wait_for_health(secure, good.name, True)
    lab.wait_for_health(secure, plain.name, False)
    assert good.paths == {"/health"}
    good.statuses["/health"] = 500
    lab.wait_for_health(secure, good.name, False)


def test_ipv6_serves_ipv6_members_and_nothing_on_ipv4(lab: Lab, make_backend: Callable[..., Backend]) -> None:
    members = [make_backend(address="::1"), make_backend(address="127.0.0.1")]
    vip = documents.vip("::1", protocol=Protocol.HTTP, members=tuple(backend.member() for backend in members))
    vip = replace(vip, session_persistence=SessionPersistence(Persistence.SOURCE_IP))
    lab.serve(vip)
    (member,) = spread(vip, 4)
    lab.serve(replace(vip, connection_limit=4))
    assert set(spread(vip, 4)) == {member}
    lab.serve(replace(vip, session_persistence=None))
    assert len(spread(vip, 4)) == 2


def test_a_tcp_pool_that_is_switched_off_refuses_connections(lab: Lab, web: Vip) -> None:
    tcp = with_pool(replace(web, protocol=Protocol.TCP), protocol=Protocol.TCP)
    lab.serve(tcp)
    lab.serve(with_pool(tcp, admin_state_up=False))
    with pytest.raises(ConnectionRefusedError):
        request(tcp)
    lab.serve(tcp)
    assert request(tcp)[0] == 200


def test_when_every_member_is_down_clients_get_503(lab: Lab, web: Vip, backends: list[Backend]) -> None:
    vip = monitored(web, monitor(MonitorType.HTTP, expected_codes="201-204"))
    lab.serve(vip)
    for backend in backends:
        lab.wait_for_health(vip, backend.name, False)
    assert request(vip)[0] == 503


def test_a_dead_member_costs_no_request_even_before_it_is_noticed(lab: Lab, web: Vip, backends: list[Backend]) -> None:
    lab.serve(web)
    backends[0].close()
    assert set(spread(web, 20)) == {backends[1].name}


def test_a_member_that_hangs_up_costs_no_get_but_no_post_is_repeated(lab: Lab, web: Vip, backends: list[Backend]) -> None:
    lab.serve(web)
    backends[0].hangs_up = True
    assert set(spread(web, 20)) == {backends[1].name}
    before = sum(len(backend.requests) for backend in backends)
    statuses = [request(web, "POST")[0] for _ in range(10)]
    assert set(statuses) == {200, 502}
    assert sum(len(backend.requests) for backend in backends) == before + 10


def test_a_member_that_is_down_stays_down_over_a_reload(lab: Lab, web: Vip, backends: list[Backend]) -> None:
    vip = monitored(web, monitor(MonitorType.HTTP, delay=30, timeout=1))
    backends[0].statuses["/"] = 500
    lab.serve(vip)
    lab.wait_for_health(vip, backends[0].name, False)
    lab.serve(replace(vip, connection_limit=99))
    assert lab.health(vip, backends[0].name).up is False
    assert {body for _, body, _ in (request(vip) for _ in range(6))} == {backends[1].name}


def test_a_member_that_was_down_is_used_again_when_its_monitor_goes(lab: Lab, web: Vip, backends: list[Backend]) -> None:
    vip = monitored(web, monitor(MonitorType.HTTP))
    backends[0].statuses["/"] = 404
    lab.serve(vip)
    lab.wait_for_health(vip, backends[0].name, False)
    lab.serve(web)
    assert lab.health(web, backends[0].name).up is None
    assert {status for status, _, _ in (request(web) for _ in range(6))} == {200, 404}


def test_the_health_of_members_without_a_monitor_is_unknown(lab: Lab, web: Vip, backends: list[Backend]) -> None:
    lab.serve(web)
    assert {lab.health(web, backend.name).up for backend in backends} == {None}


def test_a_monitor_asks_exactly_what_the_tenant_wrote(lab: Lab, web: Vip, backends: list[Backend]) -> None:
    path = "/a._~!$HOME&()*+,;=:@/-%20?q=1;2&x=(%5Bdate%5D)"
    lab.serve(monitored(web, monitor(MonitorType.HTTP, http_method="POST", url_path=path)))
    wait_for(lambda: backends[0].requests, 10, "a health check")
    assert backends[0].requests[0][:2] == ("POST", path)


def test_all_of_several_monitors_must_pass(lab: Lab, web: Vip, backends: list[Backend]) -> None:
    monitors = [monitor(MonitorType.HTTP, url_path=path) for path in ("/one", "/two", "/three")]
    vip = monitored(web, *monitors, monitor(MonitorType.TCP))
    lab.serve(vip)
    lab.wait_for_health(vip, backends[0].name, True)
    assert backends[0].paths == {"/one", "/two", "/three"}
    for path in ("/one", "/two", "/three"):
        backends[0].statuses[path] = 503
        lab.wait_for_health(vip, backends[0].name, False)
        backends[0].statuses.clear()
        lab.wait_for_health(vip, backends[0].name, True)


def test_a_monitor_that_cannot_be_applied_is_reported_alone(lab: Lab, web: Vip, backends: list[Backend]) -> None:
    good, ping = monitor(MonitorType.HTTP), monitor(MonitorType.PING)
    other = monitor(MonitorType.TCP, delay=7)
    (result,) = lab.apply(monitored(web, good, ping, other))
    assert result.ok
    assert set(result.object_errors) == {ping.id, other.id}
    lab.wait_for_health(web, backends[0].name, True)


def test_a_tcp_monitor_finds_a_closed_port(lab: Lab, web: Vip, backends: list[Backend]) -> None:
    vip = monitored(web, monitor(MonitorType.TCP))
    lab.serve(vip)
    lab.wait_for_health(vip, backends[0].name, True)
    backends[0].close()
    lab.wait_for_health(vip, backends[0].name, False)
    assert lab.health(vip, backends[0].name).failed_checks >= 1
    assert "L4CON" in lab.health(vip, backends[0].name).detail


def test_a_cookie_names_the_member_by_its_id_and_survives_a_new_member(
    lab: Lab, web: Vip, make_backend: Callable[..., Backend]
) -> None:
    sticky = replace(web, session_persistence=SessionPersistence(Persistence.HTTP_COOKIE))
    lab.serve(sticky)
    _, member, headers = request(sticky)
    assert headers["set-cookie"].startswith(f"SRV={member};")
    lab.serve(with_pool(sticky, members=(make_backend().member(), *reversed(sticky.pool.members))))
    assert set(spread(sticky, 9, {"Cookie": f"SRV={member}"})) == {member}


def test_a_cookie_vip_without_members_answers_503(lab: Lab, web: Vip) -> None:
    lab.serve(with_pool(replace(web, session_persistence=SessionPersistence(Persistence.HTTP_COOKIE)), members=()))
    assert request(web)[0] == 503


def test_a_connection_limit_lets_the_next_client_wait(lab: Lab, web: Vip, backends: list[Backend]) -> None:
    vip = with_pool(replace(web, connection_limit=1), members=(backends[0].member(),))
    lab.serve(vip)
    first = http.client.HTTPConnection(vip.address, vip.protocol_port, timeout=10)
    first.request("GET", "/slow")
    wait_for(lambda: "/slow" in backends[0].paths, 5)
    second = http.client.HTTPConnection(vip.address, vip.protocol_port, timeout=0.3)
    second.request("GET", "/")
    with pytest.raises(TimeoutError):
        second.getresponse()
    second.close()
    backends[0].release.set()
    assert first.getresponse().status == 200
    first.close()
    assert request(vip)[0] == 200


def test_a_connection_limit_of_0_lets_nobody_in(lab: Lab, web: Vip) -> None:
    lab.serve(replace(web, connection_limit=0))
    with pytest.raises((ConnectionError, http.client.HTTPException)):
        request(web)


@pytest.mark.parametrize("limit", [-1, 2**31 - 1])
def test_a_device_does_not_cap_what_a_vip_allows(lab: Lab, web: Vip, limit: int) -> None:
    lab.serve(replace(web, connection_limit=limit))
    info = dict(line.split(": ", 1) for line in lab.runtime.ask("@1 show info").splitlines() if ": " in line)
    assert int(info["Maxconn"]) > 2000


def test_least_connections_prefers_the_idle_member(lab: Lab, web: Vip, backends: list[Backend]) -> None:
    lab.serve(with_pool(web, lb_method=Method.LEAST_CONNECTIONS))
    with socket.create_connection((web.address, web.protocol_port)) as busy:
        busy.sendall(b"GET /slow HTTP/1.1\r\nHost: x\r\n\r\n")
        wait_for(lambda: any("/slow" in backend.paths for backend in backends), 5)
        (idle,) = [backend for backend in backends if "/slow" not in backend.paths]
        assert set(spread(web, 6)) == {idle.name}
        for backend in backends:
            backend.release.set()
