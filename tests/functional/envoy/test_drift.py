"""What Envoy serves is compared with what it was told to: drift is put right, a process that hangs is replaced."""

from __future__ import annotations

import errno
import http.client
import json
import os
import signal
import socket
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lbaas_scheduler.domain.deployments import Version
from lbaas_scheduler.domain.devices import Device
from lbaas_scheduler.domain.loadbalancers import Protocol, Vip
from lbaas_scheduler.errors import DriverError
from lbaas_scheduler.sdk.conformance.documents import deployment, free_port, new_id, vip
from lbaas_scheduler.sdk.conformance.traffic import Backend, load, send
from lbaas_scheduler.sdk.listening import listening
from lbaas_scheduler.vendors.envoy import node, resources
from lbaas_scheduler.vendors.envoy.admin import _UnixConnection
from lbaas_scheduler.vendors.envoy.driver import EnvoyDriver
from tests.functional.envoy.conftest import pids
from tests.rig.waiting import wait_for

NOT_APPLIED = Version(0, 0)


@pytest.fixture
def web(backends: list[Backend]) -> Vip:
    return vip(protocol=Protocol.HTTP, members=tuple(server.member() for server in backends))


@pytest.fixture
def other(web: Vip) -> Vip:
    return replace(web, id=new_id(), protocol_port=free_port())


def tell(state_path: Path, device: Device, path: str) -> None:
    """As somebody on the host would, who found the socket."""
    connection = _UnixConnection(state_path / device.id)
    connection.request("POST", path)
    assert connection.getresponse().status == http.client.OK
    connection.close()


@pytest.mark.parametrize("found_by", ["a look", "a change"])
def test_listeners_that_somebody_had_drained_are_drift_and_open_again(
    driver: EnvoyDriver, device: Device, state_path: Path, web: Vip, other: Vip, found_by: str
) -> None:
    """Envoy goes on naming them, with the version that it was given."""
    driver.apply(device, [deployment(web), deployment(other)])
    tell(state_path, device, "/drain_listeners")
    wait_for(lambda: not listening(pids(state_path, device)), 5, "closed listeners")
    if found_by == "a look":
        assert driver.list_deployed(device) == {web.id: NOT_APPLIED, other.id: NOT_APPLIED}
    else:
        assert driver.apply(device, [deployment(replace(web, connection_limit=7), 1, 2)])[0].ok
    assert {send(web).status, send(other).status} == {200}
    assert driver.apply(device, [deployment(web, 1, 3), deployment(other, 1, 3)])[1].ok
    assert driver.list_deployed(device) == {web.id: Version(1, 3), other.id: Version(1, 3)}


@pytest.mark.parametrize("spoil", ["another port", "no JSON"])
def test_a_file_changed_by_hand_is_drift_although_its_version_is_the_same(
    driver: EnvoyDriver, device: Device, state_path: Path, web: Vip, other: Vip, spoil: str
) -> None:
    driver.apply(device, [deployment(web), deployment(other)])
    path = state_path / device.id / "lds.json"
    good = path.read_text()
    if spoil == "another port":
        document = json.loads(good)
        [listener] = [item for item in document["resources"] if item["name"] == web.id]
        listener["address"]["socket_address"]["port_value"] = free_port()
        edited, drifted = json.dumps(document), {web.id}
    else:
        edited, drifted = good[:-40], {web.id, other.id}
    path.with_suffix(".new").write_text(edited)
    os.replace(path.with_suffix(".new"), path)
    if spoil == "another port":
        wait_for(lambda: (web.address, web.protocol_port) not in listening(pids(state_path, device)), 5)
    found = driver.list_deployed(device)
    assert {vip_id for vip_id, version in found.items() if version == NOT_APPLIED} == drifted
    assert json.loads(path.read_text()) == json.loads(good)
    assert {send(web).status, send(other).status} == {200}
    assert driver.list_deployed(device) == {web.id: Version(1, 1), other.id: Version(1, 1)}


def test_an_envoy_that_nobody_touched_has_not_drifted(driver: EnvoyDriver, device: Device, web: Vip, other: Vip) -> None:
    off = replace(other, admin_state_up=False)
    driver.apply(device, [deployment(web), deployment(off)])
    assert driver.list_deployed(device) == {web.id: Version(1, 1), off.id: Version(1, 1)}


@pytest.fixture
def hasty(driver: EnvoyDriver, monkeypatch: pytest.MonkeyPatch) -> EnvoyDriver:
    """One whose Envoys may be silent for half a second."""
    monkeypatch.setattr("lbaas_scheduler.vendors.envoy.admin.TIMEOUT_SECONDS", 0.3)
    driver._settings = replace(driver._settings, hang_timeout=0.5)
    return driver


def test_an_envoy_that_hangs_is_started_again_with_all_its_vips(
    hasty: EnvoyDriver, device: Device, state_path: Path, web: Vip, other: Vip, caplog: pytest.LogCaptureFixture
) -> None:
    hasty.apply(device, [deployment(web), deployment(other)])
    [old] = pids(state_path, device)
    os.kill(old, signal.SIGSTOP)
    with pytest.raises(DriverError, match="does not answer"):
        hasty.read_stats(device)

    def listed() -> bool:
        try:
            return hasty.list_deployed(device) == {web.id: Version(1, 1), other.id: Version(1, 1)}
        except DriverError:
            return False

    wait_for(listed, 20, "the restart")
    assert "is killed and started again" in caplog.text
    assert pids(state_path, device) != [old]
    assert {send(web).status, send(other).status} == {200}


def test_an_envoy_that_answers_again_in_time_is_left_alone(
    hasty: EnvoyDriver, device: Device, state_path: Path, web: Vip
) -> None:
    hasty.apply(device, [deployment(web)])
    [pid] = pids(state_path, device)
    os.kill(pid, signal.SIGSTOP)
    with pytest.raises(DriverError):
        hasty.list_deployed(device)
    os.kill(pid, signal.SIGCONT)
    wait_for(lambda: hasty._silences[device.id].too_long, 5)
    assert hasty.list_deployed(device) == {web.id: Version(1, 1)}
    assert pids(state_path, device) == [pid]


def test_an_agent_that_can_ask_nobody_ends_no_envoy(
    hasty: EnvoyDriver, device: Device, web: Vip, monkeypatch: pytest.MonkeyPatch
) -> None:
    hasty.apply(device, [deployment(web)])

    def full(*_: object) -> None:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    with monkeypatch.context() as busy:
        busy.setattr(_UnixConnection, "connect", full)
        with pytest.raises(DriverError):
            hasty.list_deployed(device)
    assert hasty._silences[device.id]._since is None
    assert hasty.list_deployed(device) == {web.id: Version(1, 1)}


def test_a_vip_is_handed_over_to_another_device_of_the_host_under_load(
    driver: EnvoyDriver, device: Device, state_path: Path, web: Vip, other: Vip
) -> None:
    second = replace(device, id=new_id())
    driver.apply(device, [deployment(web), deployment(other)])
    driver.apply(second, [deployment(replace(other, id=new_id(), protocol_port=free_port()))])
    endpoint = (web.address, web.protocol_port)
    with load(send, web, connections=8) as outcomes:
        for source, target in ((device, second), (second, device)) * 3:
            assert driver.apply(target, [deployment(web)])[0].ok
            assert endpoint in listening(pids(state_path, source)) & listening(pids(state_path, target)), "both serve"
            assert driver.remove(source, [web.id])[0].removed
            assert endpoint not in listening(pids(state_path, source))
    good = outcomes.pop("200")
    # What waits to be accepted when the source closes its socket is reset, unless the kernel passes it on (tcp_migrate_req).
    assert sum(outcomes.values()) <= 6 * 8, outcomes
    assert good > 100
    assert send(web).status == 200


def test_another_vip_and_a_stranger_do_not_get_a_share_of_an_address(
    driver: EnvoyDriver, device: Device, web: Vip, other: Vip
) -> None:
    driver.apply(device, [deployment(web)])
    second = replace(device, id=new_id())
    (result,) = driver.apply(second, [deployment(replace(other, protocol_port=web.protocol_port))])
    assert result.error == f"127.0.0.1 port {web.protocol_port} is already in use on the device."
    with socket.create_server(("127.0.0.1", other.protocol_port), reuse_port=True):
        (result,) = driver.apply(second, [deployment(other)])
    assert result.error == f"127.0.0.1 port {other.protocol_port} is already in use on the device."
    assert driver.list_deployed(second) == {}


def test_what_an_earlier_release_opened_can_be_changed_and_is_shared_after_the_next_start(
    driver: EnvoyDriver, device: Device, state_path: Path, web: Vip, other: Vip, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as earlier:

        def alone(*words: Any) -> resources.Rendered:
            found = resources.render(*words)
            return replace(found, resources=resources.sharing(found.resources, False))

        earlier.setattr(node, "render", alone)
        earlier.setattr(node.Node, "_opened_anew", lambda _, records: dict(records))
        driver.apply(device, [deployment(web), deployment(other)])
    changed = replace(web, connection_limit=9)
    assert driver.apply(device, [deployment(changed, 1, 2)])[0].ok
    second = replace(device, id=new_id())
    assert "already in use" in (driver.apply(second, [deployment(web)])[0].error or "")
    [pid] = pids(state_path, device)
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: not pids(state_path, device), 5)
    assert driver.list_deployed(device) == {web.id: Version(1, 2), other.id: Version(1, 1)}
    assert driver.list_deployed(device) == {web.id: Version(1, 2), other.id: Version(1, 1)}
    assert driver.apply(second, [deployment(web)])[0].ok
