"""What HAProxy serves is compared with what its files say: whoever changed it behind our back is put right."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import socket
from dataclasses import replace

import pytest

from lbaas_scheduler.domain.deployments import Version
from lbaas_scheduler.domain.loadbalancers import MonitorType, Protocol, Vip
from lbaas_scheduler.sdk.conformance import documents
from lbaas_scheduler.sdk.conformance.documents import monitor, with_pool
from tests.functional.haproxy.backends import Backend
from tests.functional.haproxy.lab import Lab, request, spread
from tests.rig.waiting import wait_for

NOT_APPLIED = Version(0, 0)


def tell(lab: Lab, *commands: str) -> None:
    """As somebody on the host would, who found the socket."""
    said = lab.runtime.change(commands)
    assert said == "", said


@pytest.fixture
def served(lab: Lab, web: Vip, neighbour: Vip) -> Lab:
    """Two VIPs; ``web`` has a monitor and a limit, so that all that can be changed is there."""
    lab.serve(with_pool(replace(web, connection_limit=50), health_monitors=(monitor(MonitorType.TCP, delay=1),)), neighbour)
    assert lab.listed() == {web.id: Version(1, 1), neighbour.id: Version(1, 1)}
    return lab


@pytest.mark.parametrize(
    "command",
    [
        "set server {server} state maint",
        "set server {server} state drain",
        "set server {server} weight 7",
        "set server {server} addr 127.0.0.1 port 1",
        "disable health {server}",
        "disable frontend {vip}",
        "set maxconn frontend {vip} 3",
        "shutdown frontend {vip}",
    ],
)
def test_what_was_changed_through_the_socket_is_listed_as_not_applied_and_put_right(
    served: Lab, web: Vip, neighbour: Vip, command: str
) -> None:
    one = web.pool.members[0]
    served.runtime.ask("@1 " + command.format(server=f"{web.id}.{web.pool.id}/{one.id}", vip=web.id))
    assert served.listed() == {web.id: NOT_APPLIED, neighbour.id: Version(1, 1)}
    served.revision = 0
    served.serve(with_pool(replace(web, connection_limit=50), health_monitors=(monitor(MonitorType.TCP, delay=1),)))
    assert served.listed() == {web.id: Version(1, 1), neighbour.id: Version(1, 1)}
    assert set(spread(web)) == {member.id for member in web.pool.members}


@pytest.mark.parametrize("command", ["state maint", "state drain", "weight 7"])
def test_what_the_socket_can_put_right_costs_no_reload(served: Lab, web: Vip, command: str) -> None:
    tell(served, f"set server {web.id}.{web.pool.id}/{web.pool.members[0].id} {command}")
    before = served.processes
    served.serve(with_pool(replace(web, connection_limit=50), health_monitors=(monitor(MonitorType.TCP, delay=1),)))
    assert served.processes == before
    assert served.listed()[web.id] == Version(1, 2)


def test_a_member_at_another_address_that_is_down_there_comes_home_with_the_next_reload(served: Lab, web: Vip) -> None:
    one = web.pool.members[0]
    tell_address(served, web, one.id)
    served.wait_for_health(web, one.id, False)
    served.serve(with_pool(replace(web, connection_limit=50), health_monitors=(monitor(MonitorType.TCP, delay=1),)))
    served.wait_for_health(web, one.id, True)
    assert served.listed()[web.id] == Version(1, 2)


def tell_address(lab: Lab, web: Vip, member_id: str) -> None:
    lab.runtime.ask(f"@1 set server {web.id}.{web.pool.id}/{member_id} addr 127.0.0.1 port 1")


def test_a_member_that_is_switched_off_and_was_set_ready_is_drift(lab: Lab, web: Vip) -> None:
    first, second = web.pool.members
    off = with_pool(web, members=(first, replace(second, admin_state_up=False)))
    lab.serve(off)
    tell(lab, f"set server {web.id}.{web.pool.id}/{second.id} state ready")
    assert lab.listed() == {web.id: NOT_APPLIED}
    lab.serve(off)
    assert set(spread(web)) == {first.id}


def test_a_process_that_was_started_with_other_files_is_drift(lab: Lab, web: Vip, neighbour: Vip) -> None:
    """The files are put back, as from a backup, and HAProxy still has what it was started with."""
    lab.serve(web, neighbour)
    path = lab.folder / f"vip-{web.id}.cfg"
    old = path.read_text()
    lab.serve(replace(web, protocol=Protocol.TCP))
    path.write_text(old)
    after = lab.restarted()
    assert after.listed() == {web.id: NOT_APPLIED, neighbour.id: Version(1, 1)}
    after.revision = 0
    after.serve(web)
    assert after.listed() == {web.id: Version(1, 1), neighbour.id: Version(1, 1)}


def test_a_process_that_lacks_a_vip_of_its_files_is_drift(lab: Lab, web: Vip, neighbour: Vip) -> None:
    lab.serve(web)
    before = lab.folder.with_name("kept-aside")
    lab.serve(neighbour)
    shutil.copy(lab.folder / f"vip-{neighbour.id}.cfg", before)
    lab.remove(neighbour)
    shutil.move(before, lab.folder / f"vip-{neighbour.id}.cfg")
    assert lab.restarted().listed() == {web.id: Version(1, 1), neighbour.id: NOT_APPLIED}
    lab.serve(neighbour)
    assert request(neighbour)[0] == 200
    assert lab.listed()[neighbour.id] == Version(1, lab.revision)


def test_many_vips_are_compared_as_few_are(lab: Lab, web: Vip) -> None:
    def another() -> Vip:
        return documents.with_pool(
            replace(web, id=documents.new_id(), protocol_port=documents.free_port()), id=documents.new_id()
        )

    vips = [another() for _ in range(12)]
    lab.serve(*vips)
    assert set(lab.listed().values()) == {Version(1, 1)}
    odd = vips[5]
    tell(lab, f"set server {odd.id}.{odd.pool.id}/{odd.pool.members[0].id} state maint")
    assert {vip_id for vip_id, version in lab.listed().items() if version == NOT_APPLIED} == {odd.id}


def test_members_that_are_down_recover_after_a_reload_whatever_was_set_at_run_time(
    lab: Lab, web: Vip, neighbour: Vip, backends: list[Backend]
) -> None:
    checked = with_pool(web, health_monitors=(monitor(MonitorType.TCP, delay=1, max_retries=1),))
    lab.serve(checked, neighbour)
    victim, port = backends[0], backends[0].port
    victim.close()
    lab.wait_for_health(web, victim.name, False)
    tell(lab, f"set server {web.id}.{web.pool.id}/{victim.name} state drain")
    lab.serve(replace(neighbour, connection_limit=3))
    lab.serve(checked)
    with socket.create_server(("127.0.0.1", port)):
        lab.wait_for_health(web, victim.name, True)
    assert lab.listed()[web.id] == Version(1, lab.revision)


def stopped(pids: list[int]) -> None:
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)


@pytest.fixture
def hasty(lab: Lab) -> Lab:
    """A device whose HAProxy may be silent for half a second."""
    lab.driver.settings = replace(lab.driver.settings, hang_timeout_seconds=0.5, reload_timeout_seconds=1)
    return lab


@pytest.mark.parametrize("victim", ["master", "worker"])
def test_a_haproxy_that_hangs_is_started_again_with_all_its_vips(
    hasty: Lab, web: Vip, neighbour: Vip, victim: str, caplog: pytest.LogCaptureFixture
) -> None:
    hasty.serve(web, neighbour)
    old = {hasty.master, hasty.worker}
    stopped([getattr(hasty, victim)])
    with pytest.raises(Exception, match="does not answer"):
        hasty.driver.read_stats(hasty.device)
    wait_for(lambda: _listing(hasty) == {web.id: Version(1, 1), neighbour.id: Version(1, 1)}, 20, "the restart")
    assert "is killed and started again" in caplog.text
    assert not old & {hasty.master, hasty.worker}
    assert request(web)[0] == request(neighbour)[0] == 200


def test_a_change_finds_a_haproxy_that_has_hung_for_too_long_and_starts_another(hasty: Lab, web: Vip, neighbour: Vip) -> None:
    hasty.serve(web)
    stopped([hasty.worker])
    assert _listing(hasty) is None
    wait_for(lambda: hasty.driver._nodes[hasty.device.id][1]._silence.too_long, 5)
    hasty.serve(neighbour)
    assert request(web)[0] == request(neighbour)[0] == 200


def test_a_haproxy_that_answers_again_in_time_is_left_alone(lab: Lab, web: Vip) -> None:
    lab.driver.settings = replace(lab.driver.settings, hang_timeout_seconds=0.1, reload_timeout_seconds=1)
    lab.serve(web)
    before = lab.processes
    stopped([lab.worker])
    assert _listing(lab) is None
    os.kill(before.worker or 0, signal.SIGCONT)
    wait_for(lambda: lab.driver._nodes[lab.device.id][1]._silence.too_long, 5)
    assert _listing(lab) == {web.id: Version(1, 1)}
    assert lab.processes == before


def test_a_haproxy_that_hangs_stays_where_restarts_are_switched_off(lab: Lab, web: Vip) -> None:
    lab.driver.settings = replace(lab.driver.settings, hang_timeout_seconds=0, reload_timeout_seconds=1)
    lab.serve(web)
    before = lab.processes
    stopped([lab.worker])
    assert [_listing(lab) for _ in range(3)] == [None] * 3
    os.kill(before.worker or 0, signal.SIGCONT)
    assert _listing(lab) == {web.id: Version(1, 1)}
    assert lab.processes == before


@pytest.mark.parametrize("found_by", ["statistics", "a reload"])
def test_an_old_worker_that_hangs_is_ended_and_holds_up_nothing(
    hasty: Lab, web: Vip, neighbour: Vip, backends: list[Backend], found_by: str
) -> None:
    only = with_pool(web, members=(backends[0].member(),))
    hasty.serve(only)
    with socket.create_connection((web.address, web.protocol_port)) as client:
        client.sendall(b"GET /slow HTTP/1.1\r\nHost: x\r\n\r\n")
        wait_for(lambda: "/slow" in backends[0].paths, 5)
        old = hasty.worker
        hasty.serve(neighbour)
        assert hasty.processes.old == (old,)
        stopped([old])
        if found_by == "statistics":
            assert set(hasty.driver.read_stats(hasty.device)) == {web.id, neighbour.id}
        else:
            hasty.serve(replace(neighbour, connection_limit=5))
        assert old not in (*hasty.processes.old, hasty.worker)
    assert request(web)[0] == request(neighbour)[0] == 200
    assert set(hasty.driver.read_stats(hasty.device)) == {web.id, neighbour.id}


@pytest.mark.parametrize("fault", [errno.EMFILE, errno.ENOMEM])
def test_an_agent_that_can_ask_nobody_ends_no_haproxy(hasty: Lab, web: Vip, monkeypatch: pytest.MonkeyPatch, fault: int) -> None:
    hasty.serve(web)
    before = hasty.processes

    def full(*_: object) -> socket.socket:
        raise OSError(fault, os.strerror(fault))

    silence = hasty.driver._nodes[hasty.device.id][1]._silence
    with monkeypatch.context() as busy:
        busy.setattr("lbaas_scheduler.vendors.haproxy.runtime.socket.socket", full)
        assert _listing(hasty) is None
    assert silence._since is None
    stopped([before.worker or 0])
    assert _listing(hasty) is None
    wait_for(lambda: silence.too_long, 5)
    with monkeypatch.context() as busy:
        busy.setattr("lbaas_scheduler.vendors.haproxy.runtime.socket.socket", full)
        assert _listing(hasty) is None
    os.kill(before.worker or 0, signal.SIGCONT)
    assert _listing(hasty) == {web.id: Version(1, 1)}
    assert hasty.processes == before


def _listing(lab: Lab) -> object:
    """None where the device cannot be read."""
    try:
        return dict(lab.listed())
    except Exception:
        return None
