"""A VIP that moves between two devices of one host: for a moment both listen on its address."""

from __future__ import annotations

import socket
from dataclasses import replace

import pytest

from lbaas_scheduler.domain.loadbalancers import Vip
from lbaas_scheduler.sdk.conformance import documents
from lbaas_scheduler.sdk.conformance.traffic import load, send
from lbaas_scheduler.sdk.listening import listening
from lbaas_scheduler.vendors.haproxy import driver
from tests.functional.haproxy.lab import Lab, request


@pytest.fixture
def other(lab: Lab) -> Lab:
    """A second device of the same host and agent."""
    return Lab(lab.driver, replace(lab.device, id=documents.new_id()))


def test_a_vip_is_handed_over_to_another_device_of_the_host_under_load(lab: Lab, other: Lab, web: Vip, neighbour: Vip) -> None:
    """Both devices have another VIP each, so that both reload, and neither ends."""
    lab.serve(web, neighbour)
    other.serve(replace(neighbour, id=documents.new_id(), protocol_port=documents.free_port()))
    with load(send, web, connections=8) as outcomes:
        for source, target in ((lab, other), (other, lab)) * 3:
            target.serve(web)
            endpoint = (web.address, web.protocol_port)
            assert endpoint in listening([source.worker]) & listening([target.worker]), "both serve"
            source.remove(web)
            assert endpoint not in listening([source.worker])
    good = outcomes.pop("200")
    # What waits to be accepted when the source closes its socket is reset, unless the kernel passes it on (tcp_migrate_req).
    assert sum(outcomes.values()) <= 6 * 8, outcomes
    assert good > 100
    assert request(web)[0] == 200
    assert set(lab.listed()) == {web.id, neighbour.id}


def test_a_hand_over_that_is_given_up_leaves_the_source_as_it_was(lab: Lab, other: Lab, web: Vip) -> None:
    lab.serve(web)
    before = lab.processes
    other.serve(web)
    other.remove(web)
    assert other.listed() == {}
    assert lab.processes == before
    assert {request(web)[0] for _ in range(8)} == {200}


def test_a_device_that_starts_in_the_middle_of_a_hand_over_serves(lab: Lab, other: Lab, web: Vip) -> None:
    lab.serve(web)
    other.serve(web)
    other.kill(other.master)
    other.serve(web)
    assert set(other.listed()) == set(lab.listed()) == {web.id}
    lab.remove(web)
    assert {request(web)[0] for _ in range(8)} == {200}


def test_another_vip_does_not_get_a_share_of_an_address(lab: Lab, other: Lab, web: Vip, neighbour: Vip) -> None:
    lab.serve(web)
    (result,) = other.apply(replace(neighbour, protocol_port=web.protocol_port))
    assert result.error == f"127.0.0.1 port {web.protocol_port} is already in use on the device."
    assert other.listed() == {}


def test_the_same_vip_gets_no_share_of_an_address_that_a_stranger_has(lab: Lab, other: Lab, web: Vip) -> None:
    """The source has the VIP on another port."""
    lab.serve(web)
    moved = replace(web, protocol_port=documents.free_port())
    with socket.create_server(("127.0.0.1", moved.protocol_port), reuse_port=True):
        (result,) = other.apply(moved)
    assert "already in use" in (result.error or "")


def test_a_source_that_listens_without_sharing_keeps_its_address(
    lab: Lab, other: Lab, web: Vip, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that an earlier release started."""
    shared = driver.render_base
    monkeypatch.setattr(driver, "render_base", lambda *words: shared(*words).replace("global\n", "global\n    noreuseport\n", 1))
    lab.serve(web)
    monkeypatch.undo()
    (result,) = other.apply(web)
    assert "already in use" in (result.error or "")
    assert request(web)[0] == 200
