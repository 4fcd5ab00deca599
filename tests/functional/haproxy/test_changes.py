"""How a change gets into HAProxy: by the cheapest way, and without harm to connections."""

from __future__ import annotations

import http.client
import os
import socket
from dataclasses import replace
from pathlib import Path

import pytest

from lbaas_scheduler.domain.deployments import Version
from lbaas_scheduler.domain.loadbalancers import Member, Persistence, SessionPersistence, Vip
from lbaas_scheduler.sdk.conformance import documents
from lbaas_scheduler.sdk.conformance.documents import with_pool
from lbaas_scheduler.vendors.haproxy import render
from tests.functional.haproxy.backends import Backend
from tests.functional.haproxy.lab import Lab, request, spread
from tests.rig.waiting import wait_for


def weighted(vip: Vip, *weights: int) -> Vip:
    return with_pool(
        vip, members=tuple(replace(item, weight=weight) for item, weight in zip(vip.pool.members, weights, strict=True))
    )


def test_weights_change_without_a_reload(lab: Lab, web: Vip) -> None:
    lab.serve(web)
    worker = lab.worker
    for weights in ((3, 1), (0, 1), (256, 128)):
        lab.serve(weighted(web, *weights))
        assert {server.name: server.weight for server in lab.runtime.servers()} == dict(
            zip((item.id for item in web.pool.members), weights, strict=True)
        )
    assert lab.worker == worker


def test_a_change_at_run_time_shows_in_traffic_and_outlives_a_reload(lab: Lab, web: Vip, neighbour: Vip) -> None:
    lab.serve(web)
    lab.serve(weighted(web, 1, 3))
    first, second = (item.id for item in web.pool.members)
    assert spread(web) == {first: 5, second: 15}
    lab.serve(neighbour)
    assert spread(web) == {first: 5, second: 15}
    lab.serve(weighted(web, 1, 1))
    lab.serve(replace(neighbour, connection_limit=5))
    assert spread(web) == {first: 10, second: 10}


def test_members_go_into_and_out_of_maintenance_without_a_reload(lab: Lab, web: Vip) -> None:
    lab.serve(web)
    worker = lab.worker
    first, second = web.pool.members
    lab.serve(with_pool(web, members=(replace(first, admin_state_up=False), second)))
    assert set(spread(web)) == {second.id}
    lab.serve(web)
    assert set(spread(web)) == {first.id, second.id}
    assert lab.worker == worker


def test_an_http_pool_is_switched_off_and_on_without_a_reload(lab: Lab, web: Vip) -> None:
    lab.serve(web)
    worker = lab.worker
    lab.serve(with_pool(web, admin_state_up=False))
    assert request(web)[0] == 503
    lab.serve(web)
    assert request(web)[0] == 200
    assert lab.worker == worker


def test_a_member_that_was_in_maintenance_is_free_of_it_after_a_reload(lab: Lab, web: Vip) -> None:
    first, second = web.pool.members
    lab.serve(with_pool(web, members=(replace(first, admin_state_up=False), second)))
    lab.serve(replace(web, connection_limit=50))
    assert set(spread(web)) == {first.id, second.id}


def test_nothing_but_a_new_version_touches_no_process(lab: Lab, web: Vip) -> None:
    lab.serve(web)
    before = lab.processes
    lab.serve(web)
    assert lab.listed() == {web.id: Version(1, 2)}
    assert lab.processes == before


def test_several_vips_take_one_reload(lab: Lab, web: Vip, neighbour: Vip) -> None:
    lab.serve(web)
    reloads = lab.processes.reloads
    lab.serve(neighbour, replace(web, connection_limit=7), documents.vip(members=web.pool.members))
    assert lab.processes.reloads == reloads + 1


def test_a_changed_option_of_the_device_reaches_it_with_the_next_change(lab: Lab, web: Vip) -> None:
    lab.serve(web)
    lab.device = replace(lab.device, extra={"maxconn": 77})
    lab.serve(web)
    assert "Maxconn: 77\n" in lab.runtime.ask("@1 show info")
    assert request(web)[0] == 200


def test_a_request_that_runs_survives_reloads(lab: Lab, web: Vip, backends: list[Backend]) -> None:
    lab.serve(with_pool(web, members=(backends[0].member(),)))
    connection = http.client.HTTPConnection(web.address, web.protocol_port, timeout=20)
    connection.request("GET", "/slow")
    for limit in (10, 20, 30):
        lab.serve(replace(web, connection_limit=limit))
    backends[0].release.set()
    assert connection.getresponse().read().decode() == backends[0].name
    connection.close()


def test_a_storm_of_reloads_leaves_no_more_old_workers_than_allowed(lab: Lab, web: Vip) -> None:
    lab.driver.settings = replace(lab.driver.settings, max_old_workers=2)
    clients = []
    for limit in range(10, 15):
        lab.serve(replace(web, connection_limit=limit))
        clients.append(socket.create_connection((web.address, web.protocol_port), timeout=10))
        clients[-1].sendall(b"GET /slow HTTP/1.1\r\n")  # and no more: its worker waits for the rest
    assert wait_for(lambda: len(lab.processes.old) <= 2, 5)
    clients[0].settimeout(5)
    assert clients[0].recv(1) == b""
    assert request(web)[0] == 200
    clients[-1].sendall(b"\r\n")
    assert lab.driver.read_stats(lab.device)[web.id].active_connections >= 1
    for client in clients:
        client.close()


@pytest.mark.parametrize("reverse", [False, True])
def test_vips_can_exchange_their_ports(lab: Lab, web: Vip, neighbour: Vip, reverse: bool) -> None:
    lab.serve(web, neighbour)
    swapped = [
        replace(web, protocol_port=neighbour.protocol_port, connection_limit=8),
        replace(neighbour, protocol_port=web.protocol_port),
    ]
    lab.serve(*(reversed(swapped) if reverse else swapped))
    assert {request(vip)[0] for vip in swapped} == {200}
    assert set(lab.listed()) == {web.id, neighbour.id}


def test_a_pool_may_pass_from_one_vip_to_another(lab: Lab, web: Vip) -> None:
    heir = replace(web, id=documents.new_id(), protocol_port=documents.free_port())
    lab.serve(web)
    lab.serve(heir)
    lab.remove(web)
    assert request(heir)[0] == 200


def test_clients_stay_on_their_member_over_a_reload(lab: Lab, web: Vip) -> None:
    sticky = replace(web, session_persistence=SessionPersistence(Persistence.SOURCE_IP))
    lab.serve(sticky)
    (member,) = spread(sticky, 5)
    for limit in range(10, 15):
        lab.serve(replace(sticky, connection_limit=limit))
        assert set(spread(sticky, 3)) == {member}


def test_an_applications_cookie_holds_over_a_reload_and_a_hostile_one_does_no_harm(
    lab: Lab, web: Vip, backends: list[Backend]
) -> None:
    sticky = replace(web, session_persistence=SessionPersistence(Persistence.APP_COOKIE, "JSESSIONID"))
    lab.serve(sticky)
    for value in ("abc123", "x;@1 shutdown sessions server", '"; @1 set server', "a b server_id=2", "\u00e9"):
        for backend in backends:
            backend.headers = {"Set-Cookie": f"JSESSIONID={value}"}
        request(sticky)
    cookie = {"Cookie": "JSESSIONID=abc123"}
    (member,) = spread(sticky, 4, cookie)
    lab.serve(replace(sticky, connection_limit=9))
    assert set(spread(sticky, 6, cookie)) == {member}
    assert len(spread(sticky, 6)) == 2


def test_files_and_processes_do_not_leak(lab: Lab, web: Vip) -> None:
    lab.serve(web)
    lab.driver.read_stats(lab.device)
    before = _open_files()
    for limit in range(1, 6):
        lab.serve(replace(web, connection_limit=limit))
        lab.serve(weighted(replace(web, connection_limit=limit), limit, 1))
        lab.driver.read_stats(lab.device)
        lab.listed()
    assert len(_open_files()) <= len(before)
    assert _zombies() == []
    assert {path.name for path in lab.folder.iterdir()} == {
        "00-base.cfg",
        f"vip-{web.id}.cfg",
        "pid",
        "master.sock",
        "worker.sock",
        "state",
        "counters",
    }


def _open_files() -> list[str]:
    """Descriptors of files and Unix sockets. TCP connections are others': of a bus that some earlier test spoke on, say."""
    unix = {line.split()[6] for line in Path("/proc/net/unix").read_text().splitlines()[1:]}
    targets = [os.readlink(link) for link in Path("/proc/self/fd").iterdir() if link.is_symlink()]
    return [target for target in targets if target.startswith("/") or target.removeprefix("socket:[").removesuffix("]") in unix]


def _zombies() -> list[int]:
    """Children that have ended and were not waited for."""
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    states = {int(pid): Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] for pid in children}
    return [pid for pid, state in states.items() if state == "Z"]


def test_thousands_of_members_are_applied_and_reweighted(lab: Lab) -> None:
    address = f"127.9.{os.getpid() % 250}.1"
    members = tuple(Member(documents.new_id(), address, 1 + port) for port in range(render.ROUND_ROBIN_MAX + 905))
    many = documents.vip(members=members[: render.ROUND_ROBIN_MAX])
    lab.serve(many)
    worker = lab.worker
    lab.serve(with_pool(many, members=tuple(replace(item, weight=2) for item in many.pool.members)))
    assert lab.worker == worker
    assert {server.weight for server in lab.runtime.servers()} == {2}
    lab.serve(with_pool(many, members=members))
    assert len(lab.runtime.servers()) == len(members)
