"""What goes wrong stays with whom it went wrong, and heals."""

from __future__ import annotations

import errno
import os
import resource
import shutil
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import pytest

from lbaas_scheduler.domain.deployments import Version
from lbaas_scheduler.domain.loadbalancers import MonitorType, Vip
from lbaas_scheduler.errors import DriverError
from lbaas_scheduler.sdk import words
from lbaas_scheduler.sdk.conformance import documents
from lbaas_scheduler.sdk.conformance.documents import deployment, monitor, with_pool
from lbaas_scheduler.sdk.files import write_atomically
from lbaas_scheduler.vendors.haproxy import files, listeners
from lbaas_scheduler.vendors.haproxy.process import HaproxyProcess, ProcessFailed
from lbaas_scheduler.vendors.haproxy.runtime import Runtime, RuntimeUnavailable, ServerState
from tests.functional.haproxy.lab import Lab, alive, request
from tests.rig.waiting import wait_for

NOT_APPLIED = Version(0, 0)

E = TypeVar("E", bound=Exception)


@contextmanager
def taken(port: int, shares: bool = True) -> Iterator[None]:
    """Somebody else listens on the port, and may share it with anybody who lets them."""
    with socket.socket() as stranger:
        stranger.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, shares)
        # One of a process that was killed just now may still be open.
        wait_for(lambda: error_of(lambda: stranger.bind(("127.0.0.1", port)), OSError) is None, 5)
        stranger.listen()
        yield


@pytest.fixture
def hostile(web: Vip, monkeypatch: pytest.MonkeyPatch) -> Vip:
    """A VIP that HAProxy itself refuses: what if the renderer's own checks missed something?"""
    checked = words.url_path
    monkeypatch.setattr(words, "url_path", lambda path: path if path == '/"' else checked(path))
    other = replace(web, id=documents.new_id(), protocol_port=documents.free_port())
    return with_pool(other, health_monitors=(monitor(MonitorType.HTTP, url_path='/"'),))


@pytest.mark.parametrize("victim", ["master", "worker"])
def test_a_killed_process_is_noticed_and_comes_back_with_the_latest_state(
    lab: Lab, web: Vip, neighbour: Vip, victim: str
) -> None:
    lab.serve(web, neighbour)
    lab.serve(replace(neighbour, connection_limit=9))
    lab.kill(getattr(lab, victim))
    with pytest.raises(DriverError, match="not running"):
        lab.driver.read_stats(lab.device)
    assert lab.listed() == {web.id: NOT_APPLIED, neighbour.id: NOT_APPLIED}
    lab.serve(web)
    assert request(web)[0] == request(neighbour)[0] == 200
    assert lab.listed() == {web.id: Version(1, 3), neighbour.id: Version(1, 2)}
    assert "maxconn 9\n" in (lab.folder / f"vip-{neighbour.id}.cfg").read_text()


def test_a_vip_that_haproxy_refuses_fails_alone_and_says_why(lab: Lab, web: Vip, neighbour: Vip, hostile: Vip) -> None:
    results = {result.vip_id: result for result in lab.apply(web, hostile, neighbour)}
    assert results[web.id].ok
    assert results[neighbour.id].ok
    assert "unmatched quote" in (results[hostile.id].error or "")
    assert str(lab.folder) not in (results[hostile.id].error or "")
    assert request(web)[0] == request(neighbour)[0] == 200
    assert set(lab.listed()) == {web.id, neighbour.id}


def test_a_refused_update_leaves_the_last_good_state(lab: Lab, hostile: Vip) -> None:
    good = with_pool(hostile, health_monitors=())
    lab.serve(good)
    before = (lab.folder / f"vip-{good.id}.cfg").read_text()
    assert not lab.apply(hostile)[0].ok
    assert (lab.folder / f"vip-{good.id}.cfg").read_text() == before
    assert request(good)[0] == 200
    assert lab.listed() == {good.id: Version(1, 1)}


def test_a_first_vip_that_is_refused_leaves_nothing(lab: Lab, hostile: Vip) -> None:
    assert not lab.apply(hostile)[0].ok
    assert not lab.folder.exists()
    assert lab.listed() == {}


def test_a_port_of_somebody_else_is_refused_without_a_reload(lab: Lab, web: Vip, neighbour: Vip) -> None:
    lab.serve(web)
    before = lab.processes
    with taken(neighbour.protocol_port):
        (result,) = lab.apply(neighbour)
    assert result.error == f"127.0.0.1 port {neighbour.protocol_port} is already in use on the device."
    assert lab.processes == before
    assert set(lab.listed()) == {web.id}
    lab.serve(neighbour)
    assert request(neighbour)[0] == 200


def test_a_port_of_another_vip_is_refused(lab: Lab, web: Vip, neighbour: Vip) -> None:
    lab.serve(web)
    thief = replace(neighbour, protocol_port=web.protocol_port)
    (result,) = lab.apply(thief)
    assert "already in use" in (result.error or "")
    twins = [replace(thief, id=documents.new_id(), protocol_port=neighbour.protocol_port) for _ in range(2)]
    assert [result.ok for result in lab.apply(*twins)] == [True, False]


def test_an_address_of_somebody_else_is_refused(lab: Lab, web: Vip) -> None:
    (result,) = lab.apply(replace(web, address="203.0.113.9"))
    assert result.error == f"203.0.113.9 port {web.protocol_port} is not an address of the device."


def test_the_vip_at_fault_is_found_when_only_haproxys_reload_fails(
    lab: Lab, web: Vip, neighbour: Vip, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab.serve(web)
    monkeypatch.setattr(listeners, "why_not", lambda *_: None)
    more = [replace(neighbour, id=documents.new_id(), protocol_port=documents.free_port()) for _ in range(3)]
    with taken(neighbour.protocol_port, shares=False):
        results = {result.vip_id: result for result in lab.apply(more[0], neighbour, *more[1:])}
    assert not results.pop(neighbour.id).ok
    assert all(result.ok for result in results.values())
    assert {request(vip)[0] for vip in (web, *more)} == {200}
    assert set(lab.listed()) == {vip.id for vip in (web, *more)}
    assert not (lab.folder / "journal").exists()


def test_a_start_puts_aside_the_vip_whose_port_is_taken_meanwhile(lab: Lab, web: Vip, neighbour: Vip) -> None:
    lab.serve(web, neighbour)
    lab.kill(lab.master)
    with taken(neighbour.protocol_port):
        lab.serve(web)
        assert request(web)[0] == 200
        assert lab.listed() == {web.id: Version(1, 2), neighbour.id: NOT_APPLIED}
        assert not lab.apply(neighbour)[0].ok
    lab.serve(neighbour)
    assert request(neighbour)[0] == 200
    assert set(lab.listed().values()) == {Version(1, 2), Version(1, 4)}


def test_a_port_that_closes_a_moment_after_its_process_is_waited_for(lab: Lab, web: Vip, neighbour: Vip) -> None:
    lab.serve(web, neighbour)
    lab.kill(lab.master)
    with socket.socket() as dying:
        wait_for(lambda: error_of(lambda: dying.bind(("127.0.0.1", neighbour.protocol_port)), OSError) is None, 5)
        closing = threading.Timer(0.3, dying.close)
        closing.start()
        lab.serve(web)
        closing.join()
    assert request(neighbour)[0] == 200
    assert lab.listed() == {web.id: Version(1, 2), neighbour.id: Version(1, 1)}


def test_a_file_that_no_longer_loads_does_not_keep_the_others_from_starting(lab: Lab, web: Vip, neighbour: Vip) -> None:
    lab.serve(web, neighbour)
    lab.kill(lab.master)
    path = lab.folder / f"vip-{neighbour.id}.cfg"
    path.write_text(path.read_text() + "    no such keyword\n")
    lab.serve(web)
    assert request(web)[0] == 200
    assert lab.listed() == {web.id: Version(1, 2), neighbour.id: NOT_APPLIED}
    lab.serve(neighbour)
    assert request(neighbour)[0] == 200


def test_a_file_changed_by_hand_is_listed_as_not_applied_and_repaired(lab: Lab, web: Vip) -> None:
    lab.serve(web)
    path = lab.folder / f"vip-{web.id}.cfg"
    good = path.read_text()
    path.write_text(good.replace("balance roundrobin", "balance leastconn"))
    assert lab.listed() == {web.id: NOT_APPLIED}
    lab.revision = 0
    lab.serve(web)
    assert path.read_text() == good
    assert lab.listed() == {web.id: Version(1, 1)}


@pytest.mark.parametrize("change", ["live", "structural"])
def test_an_agent_killed_in_the_middle_of_a_change_does_not_lie_afterwards(
    lab: Lab, web: Vip, neighbour: Vip, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    class Killed(BaseException):
        pass

    def kill(*_: object) -> None:
        raise Killed

    lab.serve(web, neighbour)
    first, second = web.pool.members
    members = (first, replace(second, weight=0)) if change == "live" else (first,)
    with monkeypatch.context() as patch:
        patch.setattr(HaproxyProcess, "reload", kill)
        patch.setattr("lbaas_scheduler.vendors.haproxy.runtime.Runtime.change", kill)
        with pytest.raises(Killed):
            lab.apply(with_pool(web, members=members))
    after = lab.restarted()
    assert after.listed() == {web.id: NOT_APPLIED, neighbour.id: Version(1, 1)}
    after.serve(with_pool(web, members=members))
    assert {request(web)[1] for _ in range(6)} == {first.id}
    assert after.listed() == {web.id: Version(1, 3), neighbour.id: Version(1, 1)}


def test_a_removal_that_was_cut_short_is_finished_by_the_next(
    lab: Lab, web: Vip, neighbour: Vip, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab.serve(web, neighbour)
    with monkeypatch.context() as patch:
        patch.setattr(HaproxyProcess, "reload", lambda _: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            lab.remove(web)
    after = lab.restarted()
    assert after.listed()[web.id] == NOT_APPLIED
    after.remove(web)
    with pytest.raises(ConnectionRefusedError):
        request(web)
    assert set(after.listed()) == {neighbour.id}


def test_a_removal_that_fails_says_so_and_keeps_serving(
    lab: Lab, web: Vip, neighbour: Vip, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: object) -> None:
        raise ProcessFailed("HAProxy refused to reload.")

    lab.serve(web, neighbour)
    with monkeypatch.context() as patch:
        patch.setattr(HaproxyProcess, "reload", fail)
        (result,) = lab.driver.remove(lab.device, [web.id])
    assert not result.removed
    assert "refused to reload" in (result.error or "")
    assert request(web)[0] == 200
    lab.remove(web)


def test_files_that_are_not_ours_are_left_alone(lab: Lab, web: Vip, caplog: pytest.LogCaptureFixture) -> None:
    lab.folder.mkdir(parents=True)
    stranger, in_the_way = lab.folder / "extra.cfg", lab.folder / f"vip-{web.id}.cfg"
    port = documents.free_port()
    stranger.write_text(f"frontend operators-own\n    mode http\n    bind 127.0.0.1:{port}\n    http-request return status 204\n")
    in_the_way.write_text("# somebody else's\n")
    (result,) = lab.apply(web)
    assert "not ours" in (result.error or "")
    in_the_way.unlink()
    lab.serve(web)
    assert request(replace(web, protocol_port=port))[0] == 204
    for _ in range(3):
        assert set(lab.listed()) == {web.id}
    assert caplog.text.count("left alone, not written by lbaas-scheduler: extra.cfg") == 1
    lab.remove(web)
    assert [path.name for path in lab.folder.iterdir()] == ["extra.cfg"]


def test_a_pid_file_that_names_a_stranger_harms_nobody(lab: Lab, web: Vip) -> None:
    lab.serve(web)
    lab.kill(lab.master)
    (lab.folder / "pid").write_text(f"{os.getpid()}\n")
    assert lab.listed() == {web.id: NOT_APPLIED}
    lab.remove(web)
    assert not lab.folder.exists()


def test_a_worker_that_lost_its_pid_file_is_found_and_replaced(lab: Lab, web: Vip) -> None:
    lab.serve(web)
    master = lab.master
    (lab.folder / "pid").unlink()
    lab.serve(web)
    assert not alive(master)
    assert request(web)[0] == 200
    pid = lab.master
    (lab.folder / "pid").unlink()
    lab.remove(web)
    assert not alive(pid)


def test_the_last_vip_takes_the_process_and_the_folder_with_it(lab: Lab, web: Vip, neighbour: Vip) -> None:
    lab.serve(web, neighbour)
    master, worker = lab.master, lab.worker
    lab.remove(neighbour)
    assert alive(master)
    lab.remove(web)
    assert not alive(master)
    assert not alive(worker)
    assert not lab.folder.exists()
    assert lab.driver.read_stats(lab.device) == {}
    assert not lab.folder.exists()


def test_devices_of_dead_runs_are_found_and_purged(lab: Lab, web: Vip) -> None:
    lab.serve(web)
    after, master = lab.restarted(), lab.master
    assert list(after.driver.local_devices()) == [lab.device.id]
    os.kill(master, signal.SIGKILL)
    assert list(after.driver.local_devices()) == [lab.device.id]
    after.driver.purge(lab.device.id)
    assert list(after.driver.local_devices()) == []


def test_a_device_folder_may_be_deeper_than_a_sockets_path_can_be_long(lab: Lab, web: Vip) -> None:
    deep = lab.driver.settings.state_path / ("d" * 100) / ("e" * 100)
    lab.driver.settings = replace(lab.driver.settings, state_path=deep)
    lab.serve(web)
    lab.serve(replace(web, connection_limit=3))
    assert set(lab.driver.read_stats(lab.device)) == {web.id}
    lab.remove(web)
    assert not Path(lab.folder).exists()


def test_a_process_of_another_user_is_reported_and_its_files_are_kept(
    lab: Lab, web: Vip, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    lab.serve(web)
    with monkeypatch.context() as patch:
        patch.setattr("lbaas_scheduler.vendors.haproxy.process.os.kill", refuse)
        (result,) = lab.driver.remove(lab.device, [web.id])
        with pytest.raises(DriverError):
            lab.driver.purge(lab.device.id)
    assert "belongs to another user" in (result.error or "")
    assert set(lab.listed()) == {web.id}
    assert request(web)[0] == 200


def test_a_haproxy_that_hangs_is_told_once_and_no_vip_is_blamed(
    lab: Lab, web: Vip, neighbour: Vip, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab.serve(web, neighbour)
    others = [replace(web, id=documents.new_id(), protocol_port=documents.free_port()) for _ in range(4)]
    process = lab.driver._nodes[lab.device.id][1].process
    with monkeypatch.context() as hasty:
        hasty.setattr(process, "timeout_seconds", 0.3)
        hasty.setattr(process.runtime, "timeout_seconds", 0.3)
        told: list[None] = []
        hasty.setattr(process, "reload", lambda: (told.append(None), HaproxyProcess.reload(process)))
        os.kill(lab.master, signal.SIGSTOP)
        try:
            with pytest.raises(DriverError) as caught:
                lab.apply(*others)
            (left,) = lab.driver.remove(lab.device, [neighbour.id])
        finally:
            os.kill(lab.master, signal.SIGCONT)
    assert caught.value.message == "HAProxy cannot be controlled on the device."
    assert left.error == "HAProxy could not remove the VIP: HAProxy cannot be controlled on the device."
    assert not left.removed
    assert len(told) <= 2, "as many as calls"
    assert request(web)[0] == request(neighbour)[0] == 200
    lab.serve(*others)
    assert request(others[-1])[0] == 200


def test_a_mistake_in_an_operators_addition_blames_no_vip(
    lab: Lab, web: Vip, neighbour: Vip, caplog: pytest.LogCaptureFixture
) -> None:
    lab.serve(web, neighbour)
    reloads = lab.processes.reloads
    addition = lab.folder / "50-ours.cfg"
    addition.write_text("frontend ours\n  bindd :1\n")
    others = [replace(web, id=documents.new_id(), protocol_port=documents.free_port()) for _ in range(4)]
    with pytest.raises(DriverError) as caught:
        lab.apply(*others)
    assert caught.value.message == "HAProxy refuses what else is on the device."
    assert "50-ours.cfg:2] : unknown keyword 'bindd'" in caught.value.operator_message
    assert lab.processes.reloads <= reloads + 1
    (left,) = lab.driver.remove(lab.device, [neighbour.id])
    assert left.error == "HAProxy could not remove the VIP: HAProxy refused to reload."
    assert "50-ours.cfg:2]" in caplog.text
    assert request(web)[0] == request(neighbour)[0] == 200
    addition.unlink()
    lab.serve(*others)
    lab.remove(neighbour)


def test_a_program_that_is_gone_blames_no_vip(lab: Lab, web: Vip, neighbour: Vip, monkeypatch: pytest.MonkeyPatch) -> None:
    lab.serve(web)
    monkeypatch.setattr(lab.driver._nodes[lab.device.id][1].process, "binary", "/nonexistent/haproxy")
    with pytest.raises(DriverError, match="cannot be controlled") as caught:
        lab.apply(neighbour)
    assert "/nonexistent/haproxy" in caught.value.operator_message
    assert lab.listed() == {web.id: Version(1, 1)}


def test_a_full_disk_is_said_and_costs_no_traffic(lab: Lab, web: Vip, neighbour: Vip, monkeypatch: pytest.MonkeyPatch) -> None:
    lab.serve(web, neighbour)
    for room in range(8):
        with monkeypatch.context() as full:
            fill(full, room)
            said = [
                error_of(lambda room=room: lab.apply(replace(neighbour, connection_limit=100 + room))),  # type: ignore[misc]
                error_of(lambda: lab.driver.remove(lab.device, [neighbour.id])),
            ]
        assert {error.message for error in said if error} <= {"The device's files cannot be kept."}
        assert all("No space left" in error.operator_message for error in said if error)
        assert request(web)[0] == 200
    assert lab.listed()[web.id] == Version(1, 1)
    lab.serve(neighbour)
    assert request(neighbour)[0] == 200
    assert lab.listed() == {web.id: Version(1, 1), neighbour.id: Version(1, lab.revision)}


def error_of(call: Callable[[], object], kind: type[E] = DriverError) -> E | None:  # type: ignore[assignment]
    try:
        call()
    except kind as error:
        return error
    return None


def fill(patch: pytest.MonkeyPatch, room: int) -> None:
    """Let the disk have room for so many files more."""
    left = iter(range(room))

    def write(path: Path, data: str) -> None:
        if next(left, None) is None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        write_atomically(path, data)

    patch.setattr(files, "write_atomically", write)


def test_an_agent_that_can_open_no_file_takes_no_process_for_dead(lab: Lab, web: Vip) -> None:
    lab.serve(web)
    master, limits = lab.master, resource.getrlimit(resource.RLIMIT_NOFILE)
    lowest = os.open("/", os.O_RDONLY)
    os.close(lowest)
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest, limits[1]))
    try:
        with pytest.raises(OSError, match="Too many open files"):
            lab.driver._nodes[lab.device.id][1].process.running()
        said = [error_of(lab.listed), error_of(lambda: lab.apply(web)), error_of(lambda: lab.remove(web))]
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert {error.message for error in said if error} == {"The device's files cannot be kept."}
    assert len([error for error in said if error]) == 3
    assert lab.master == master
    assert lab.listed() == {web.id: Version(1, 1)}
    assert request(web)[0] == 200


def test_what_the_last_reload_knew_of_members_is_not_taken_for_new(
    lab: Lab, web: Vip, neighbour: Vip, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab.serve(web)
    (lab.folder / "state").write_text("1\n# of an earlier reload\n")

    def silent(*_: object) -> list[ServerState]:
        raise RuntimeUnavailable("no answer")

    monkeypatch.setattr(Runtime, "servers", silent)
    lab.serve(neighbour)
    assert (lab.folder / "state").read_text() == "1\n"


def test_what_a_killed_agent_left_half_written_goes_with_the_next_change(lab: Lab, web: Vip, neighbour: Vip) -> None:
    lab.serve(web)
    (lab.folder / ".new-abc").mkdir()
    (lab.folder / ".new-abc" / "vip-x.cfg").write_text("frontend x\n")
    (lab.folder / ".pid.abc.tmp").touch()
    lab.serve(neighbour)
    assert [path.name for path in lab.folder.iterdir() if path.name.startswith(".")] == []
    other = lab.folder.parent / documents.new_id()
    (other / ".new-abc").mkdir(parents=True)
    assert other.name in lab.driver.local_devices()
    lab.driver.purge(other.name)
    assert not other.exists()


def test_damaged_files_cost_no_more_than_what_they_said(lab: Lab, web: Vip, neighbour: Vip) -> None:
    lab.serve(web, neighbour)
    (lab.folder / "journal").write_text("[1,")
    with (lab.folder / f"vip-{web.id}.cfg").open("ab") as file:
        file.write("# gr\xfc\xdfe\n".encode("latin-1"))
    with (lab.folder / "00-base.cfg").open("ab") as file:
        file.write("# gr\xfc\xdfe\n".encode("latin-1"))
    lab = lab.restarted()
    assert lab.listed() == {web.id: NOT_APPLIED, neighbour.id: NOT_APPLIED}
    lab.serve(web, neighbour)
    assert lab.listed() == {web.id: Version(1, 2), neighbour.id: Version(1, 2)}
    assert request(web)[0] == request(neighbour)[0] == 200


def test_settings_that_the_agent_does_not_know_are_no_fault_of_its_own(lab: Lab, web: Vip) -> None:
    newer = replace(lab.device, extra={"quantum": True})
    with pytest.raises(DriverError, match="settings") as caught:
        lab.driver.apply(newer, [deployment(web)])
    assert "'quantum'" in caught.value.operator_message


def test_a_process_that_lost_its_folder_is_found_and_ended(lab: Lab, web: Vip) -> None:
    for found_by in ("local devices", "a look"):
        lab.serve(web)
        master = lab.master
        shutil.rmtree(lab.folder)
        assert list(lab.driver.local_devices()) == [lab.device.id]
        if found_by == "a look":
            assert lab.listed() == {}
        else:
            lab.driver.purge(lab.device.id)
        assert not alive(master)
        assert list(lab.driver.local_devices()) == []


def test_a_fenced_device_refuses_and_comes_back_with_the_next_change(lab: Lab, web: Vip, neighbour: Vip) -> None:
    lab.serve(web, neighbour)
    lab.driver.fence(lab.device.id)
    lab.driver.fence(lab.device.id)
    for vip in (web, neighbour):
        with pytest.raises(ConnectionRefusedError):
            request(vip)
    assert lab.listed() == {web.id: NOT_APPLIED, neighbour.id: NOT_APPLIED}
    lab.serve(web)
    assert request(web)[0] == request(neighbour)[0] == 200


def test_a_fenced_device_that_went_elsewhere_is_purged_as_any_other(lab: Lab, web: Vip) -> None:
    lab.serve(web)
    lab.driver.fence(lab.device.id)
    assert list(lab.driver.local_devices()) == [lab.device.id]
    lab.driver.purge(lab.device.id)
    lab.driver.fence(lab.device.id)
    assert not lab.folder.exists()
