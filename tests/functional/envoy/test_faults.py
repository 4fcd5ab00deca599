"""What goes wrong around an Envoy, and what is left of it."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import socket
import subprocess
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest
from oslo_config import cfg

from lbaas_scheduler.domain.deployments import Version
from lbaas_scheduler.domain.devices import Device
from lbaas_scheduler.domain.loadbalancers import MonitorType, Protocol, Vip
from lbaas_scheduler.errors import DriverError
from lbaas_scheduler.sdk import processes
from lbaas_scheduler.sdk.conformance.documents import (
    LOOPBACK,
    deployment,
    free_port,
    member,
    monitor,
    new_id,
    vip,
    with_pool,
)
from lbaas_scheduler.sdk.conformance.traffic import Backend, load, send, wait_until
from lbaas_scheduler.vendors.envoy import delivery, folder
from lbaas_scheduler.vendors.envoy.admin import Admin
from lbaas_scheduler.vendors.envoy.driver import EnvoyDriver
from lbaas_scheduler.vendors.envoy.folder import Folder
from tests.functional.envoy.conftest import pids


@pytest.fixture
def web(backends: list[Backend]) -> Vip:
    return vip(protocol=Protocol.HTTP, members=tuple(server.member() for server in backends))


def kill(state_path: Path, device: Device) -> None:
    (pid,) = pids(state_path, device)
    os.kill(pid, signal.SIGKILL)
    assert processes.wait_gone(pid, device.id, 10)


def test_a_killed_process_is_reported_by_stats_and_brought_back_by_the_next_look(
    driver: EnvoyDriver, device: Device, state_path: Path, web: Vip
) -> None:
    driver.apply(device, [deployment(web, 1, 4)])
    kill(state_path, device)
    with pytest.raises(DriverError):
        driver.read_stats(device)
    assert dict(driver.list_deployed(device)) == {web.id: Version(1, 4)}
    assert send(web).status == 200


def test_a_killed_process_comes_back_with_everything_when_one_vip_changes(
    driver: EnvoyDriver, device: Device, state_path: Path, web: Vip
) -> None:
    other = replace(web, id=new_id(), protocol_port=free_port())
    driver.apply(device, [deployment(web), deployment(other)])
    kill(state_path, device)
    assert driver.apply(device, [deployment(with_pool(web, members=web.pool.members[:1]), 1, 2)])[0].ok
    assert {send(web).body for _ in range(6)} == {web.pool.members[0].id}
    assert send(other).status == 200


def took(thief: socket.socket, victim: Vip) -> bool:
    try:
        thief.bind((victim.address, victim.protocol_port))
    except OSError:
        return False
    return True


def test_a_vip_whose_port_was_taken_while_the_process_was_dead_is_no_longer_listed(
    driver: EnvoyDriver, device: Device, state_path: Path, web: Vip
) -> None:
    robbed = replace(web, id=new_id(), protocol_port=free_port())
    driver.apply(device, [deployment(web), deployment(robbed)])
    kill(state_path, device)
    with socket.socket() as thief:
        thief.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        wait_until(lambda: took(thief, robbed))  # the port of a process that was killed just now may still be open
        thief.listen()
        assert set(driver.list_deployed(device)) == {web.id}
        assert send(web).status == 200
        (result,) = driver.apply(device, [deployment(robbed, 1, 2)])
        assert result.error is not None
        assert str(robbed.protocol_port) in result.error
    assert driver.apply(device, [deployment(robbed, 1, 2)])[0].ok
    assert send(robbed).status == 200


def test_an_agent_that_died_between_delivery_and_record_is_put_right(
    driver: EnvoyDriver, device: Device, state_path: Path, web: Vip
) -> None:
    """The VIP is served but not recorded: it must not go on unseen."""
    orphan = replace(web, id=new_id(), protocol_port=free_port())
    driver.apply(device, [deployment(web), deployment(orphan)])
    Folder(state_path / device.id).drop_record(orphan.id)
    assert set(driver.list_deployed(device)) == {web.id}
    with pytest.raises(ConnectionRefusedError):
        send(orphan)
    assert send(web).status == 200


def test_a_process_whose_folder_was_removed_is_replaced(driver: EnvoyDriver, device: Device, state_path: Path, web: Vip) -> None:
    driver.apply(device, [deployment(web)])
    before = pids(state_path, device)
    Folder(state_path / device.id).destroy()
    assert driver.apply(device, [deployment(web)])[0].ok
    assert len(pids(state_path, device)) == 1
    assert pids(state_path, device) != before
    assert send(web).status == 200


def test_a_file_that_envoy_cannot_read_as_a_whole_fails_only_the_vip_that_broke_it(
    driver: EnvoyDriver, device: Device, web: Vip
) -> None:
    """Port 70000 passes no check of Envoy; a server that sends it is broken, its neighbours are not."""
    bad = replace(web, id=new_id(), protocol_port=70000)
    good = [replace(web, id=new_id(), protocol_port=free_port()) for _ in range(4)]
    wanted = [deployment(item) for item in (*good[:2], bad, *good[2:])]
    results = driver.apply(device, wanted)
    assert [item.ok for item in results] == [True, True, False, True, True]
    assert {send(item).status for item in good} == {200}


def test_two_devices_cannot_share_an_address(driver: EnvoyDriver, device: Device, web: Vip) -> None:
    """With SO_REUSEPORT they could, and each would get a part of the connections."""
    other = replace(device, id=new_id())
    assert driver.apply(device, [deployment(web)])[0].ok
    assert not driver.apply(other, [deployment(replace(web, id=new_id()))])[0].ok
    assert dict(driver.list_deployed(other)) == {}


def test_a_dying_member_costs_no_request_before_its_check_notices(
    driver: EnvoyDriver, device: Device, web: Vip, backends: list[Backend]
) -> None:
    slow = monitor(MonitorType.HTTP, delay=60, timeout=5)
    driver.apply(device, [deployment(with_pool(web, health_monitors=(slow,)))])
    for server in backends:
        server.delay_seconds = 0.05
    with load(send, web, connections=10) as outcomes:
        wait_until(lambda: driver.read_stats(device)[web.id].total_connections > 20)
        backends[0].close()
        seen = driver.read_stats(device)[web.id].total_connections
        wait_until(lambda: driver.read_stats(device)[web.id].total_connections > seen + 40)
    assert set(outcomes) == {"200"}


@pytest.fixture
def black_hole() -> object:
    """A server that takes connections and never answers."""
    with socket.socket() as server:
        server.bind((LOOPBACK, 0))
        server.listen(64)
        yield member(port=server.getsockname()[1])


def test_a_member_that_never_answers_its_check_does_not_hold_up_the_others(
    driver: EnvoyDriver, device: Device, state_path: Path, web: Vip, black_hole: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery, "FIRST_CHECK_SECONDS", 0.5)
    patient = monitor(MonitorType.HTTP, delay=60, timeout=60)
    neighbour = replace(web, id=new_id(), protocol_port=free_port())
    stuck = with_pool(web, members=(*web.pool.members, black_hole), health_monitors=(patient,))
    begin = time.monotonic()
    results = driver.apply(device, [deployment(stuck), deployment(neighbour)])
    assert [item.error for item in results] == [None, None]
    assert send(neighbour).status == 200
    kill(state_path, device)
    assert set(driver.list_deployed(device)) == {web.id, neighbour.id}
    assert send(neighbour).status == 200
    assert time.monotonic() - begin < 30


def test_an_envoy_that_does_not_answer_fails_the_call_and_nothing_hangs(
    driver: EnvoyDriver, device: Device, state_path: Path, web: Vip, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lbaas_scheduler.vendors.envoy.admin.TIMEOUT_SECONDS", 0.5)
    driver.apply(device, [deployment(web)])
    (pid,) = pids(state_path, device)
    os.kill(pid, signal.SIGSTOP)
    try:
        with pytest.raises(DriverError):
            driver.read_stats(device)
        with pytest.raises(DriverError):
            driver.apply(device, [deployment(replace(web, admin_state_up=False), 1, 2)])
    finally:
        os.kill(pid, signal.SIGCONT)
    assert driver.apply(device, [deployment(web, 1, 3)])[0].ok
    assert send(web).status == 200


def test_more_devices_vips_than_linux_grants_file_watches(driver: EnvoyDriver, device: Device, state_path: Path) -> None:
    """An Envoy that watches a file per VIP aborts at the 128th."""
    wanted = [deployment(vip(members=(member(),))) for _ in range(200)]
    assert [item.error for item in driver.apply(device, wanted)] == [None] * 200
    (pid,) = pids(state_path, device)
    watches = [path for path in Path(f"/proc/{pid}/fd").iterdir() if os.readlink(path) == "anon_inode:inotify"]
    assert len(watches) <= 2


def test_the_administration_interface_is_closed_to_others(
    driver: EnvoyDriver, device: Device, state_path: Path, web: Vip
) -> None:
    driver.apply(device, [deployment(web)])
    folder = state_path / device.id
    assert Admin(folder).ready()
    assert (folder / "admin.sock").stat().st_mode & 0o077 == 0
    assert folder.stat().st_mode & 0o077 == 0


def test_stats_can_be_read_while_a_change_is_under_way(driver: EnvoyDriver, device: Device, web: Vip) -> None:
    driver.apply(device, [deployment(web)])
    failures: list[Exception] = []
    over = threading.Event()

    def watch() -> None:
        while not over.is_set():
            try:
                driver.read_stats(device)
            except DriverError as error:
                failures.append(error)

    watcher = threading.Thread(target=watch)
    watcher.start()
    for revision in range(2, 8):
        driver.apply(device, [deployment(with_pool(web, members=web.pool.members[: revision % 3]), 1, revision)])
    over.set()
    watcher.join()
    assert failures == []


def test_a_folder_that_is_not_ours_is_left_alone(driver: EnvoyDriver, device: Device, state_path: Path) -> None:
    foreign = state_path / device.id / "vips" / "precious.json"
    foreign.parent.mkdir(parents=True)
    foreign.touch()
    driver.purge(device.id)
    driver.remove(device, [new_id()])
    assert dict(driver.list_deployed(device)) == {}
    assert device.id not in driver.local_devices()
    assert foreign.exists()


def test_a_full_disk_is_said_and_costs_no_traffic(
    driver: EnvoyDriver, device: Device, web: Vip, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = replace(web, id=new_id(), protocol_port=free_port())
    driver.apply(device, [deployment(web), deployment(other)])

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(folder, "write_atomically", full)
        for call in (
            lambda: driver.apply(device, [deployment(replace(other, connection_limit=7), 1, 2)]),
            lambda: driver.remove(device, [other.id]),
        ):
            with pytest.raises(DriverError, match="files cannot be kept") as caught:
                call()
            assert "No space left" in caught.value.operator_message
    assert send(web).status == send(other).status == 200
    assert driver.remove(device, [other.id])[0].removed
    assert dict(driver.list_deployed(device)) == {web.id: Version(1, 1)}


def test_envoy_does_not_see_the_agents_environment(
    driver: EnvoyDriver, device: Device, state_path: Path, web: Vip, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OS_SECURITY__ENCRYPTION_KEYS", "top-secret")
    driver.apply(device, [deployment(web)])
    (pid,) = pids(state_path, device)
    assert b"top-secret" not in Path(f"/proc/{pid}/environ").read_bytes()


def test_settings_that_the_agent_does_not_know_are_no_fault_of_its_own(driver: EnvoyDriver, device: Device, web: Vip) -> None:
    with pytest.raises(DriverError, match="settings") as caught:
        driver.apply(replace(device, extra={"quantum": True}), [deployment(web)])
    assert "'quantum'" in caught.value.operator_message


def test_what_a_killed_check_left_goes_with_the_next_start(conf: cfg.ConfigOpts, state_path: Path) -> None:
    state_path.mkdir()
    left = state_path / ".candidate-abc.json"
    left.touch()
    assert list(EnvoyDriver(conf).local_devices()) == []
    assert not left.exists()


def test_a_vip_that_may_not_move_to_another_port_fails_alone_and_stays(
    driver: EnvoyDriver, device: Device, web: Vip, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver, "_settings", replace(driver._settings, change_timeout=3))
    neighbour, third = (replace(web, id=new_id(), protocol_port=free_port()) for _ in range(2))
    driver.apply(device, [deployment(document) for document in (web, neighbour, third)])
    moved = replace(web, protocol_port=neighbour.protocol_port)
    results = driver.apply(device, [deployment(moved, 1, 2), deployment(replace(third, connection_limit=9), 1, 2)])
    assert [item.ok for item in results] == [False, True]
    assert {send(document).status for document in (web, neighbour, third)} == {200}
    assert driver.list_deployed(device)[web.id] == Version(1, 1)


@pytest.mark.parametrize("found_by", ["local devices", "a look"])
def test_a_process_that_lost_its_folder_is_found_and_ended(
    driver: EnvoyDriver, device: Device, state_path: Path, web: Vip, found_by: str
) -> None:
    driver.apply(device, [deployment(web)])
    shutil.rmtree(state_path / device.id)
    assert driver.local_devices() == [device.id]
    if found_by == "a look":
        assert driver.list_deployed(device) == {}
    else:
        driver.purge(device.id)
    assert pids(state_path, device) == []
    assert driver.local_devices() == []


def test_a_start_that_fails_shows_the_first_critical_line_and_no_trace(
    driver: EnvoyDriver, device: Device, tmp_path: Path, web: Vip
) -> None:
    """A real Envoy that may make no inotify instance, as where fs.inotify.max_user_instances is used up."""
    if subprocess.run(["unshare", "-Ur", "true"], check=False, capture_output=True).returncode:
        pytest.skip("this machine makes no user namespaces")
    limited = tmp_path / "envoy"
    limited.write_text(
        "#!/bin/sh\n"
        "exec unshare -Ur sh -c 'echo 0 > /proc/sys/user/max_inotify_instances; exec \"$@\"' sh "
        f'{driver._settings.binary} "$@"\n'
    )
    limited.chmod(0o755)
    driver._settings = replace(driver._settings, binary=limited)
    with pytest.raises(DriverError, match="did not start") as caught:
        driver.apply(device, [deployment(web)])
    assert "fs.inotify.max_user_instances" in caught.value.operator_message
    assert "\n" not in caught.value.operator_message
    assert "backtrace" not in caught.value.operator_message


def test_a_fenced_device_refuses_and_comes_back_with_the_next_look(
    driver: EnvoyDriver, device: Device, state_path: Path, web: Vip
) -> None:
    driver.apply(device, [deployment(web)])
    driver.fence(device.id)
    driver.fence(device.id)
    with pytest.raises(ConnectionRefusedError):
        send(web)
    assert driver.local_devices() == [device.id]
    assert driver.list_deployed(device) == {web.id: Version(1, 1)}
    assert send(web).status == 200
    driver.purge(device.id)
    driver.fence(device.id)
    assert not (state_path / device.id).exists()
