"""Devices in network namespaces, attached to bridges and VXLANs of the host: real links, real traffic through them."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from oslo_config import cfg

from lbaas_scheduler.domain.deployments import Deployment, Result, Version
from lbaas_scheduler.domain.devices import FLAT, VLAN, VXLAN, Device, Interface
from lbaas_scheduler.domain.loadbalancers import Protocol, Vip
from lbaas_scheduler.sdk.conformance import documents
from lbaas_scheduler.sdk.conformance.documents import deployment
from lbaas_scheduler.sdk.conformance.traffic import load, send
from lbaas_scheduler.vendors.haproxy.driver import HaproxyDriver
from lbaas_scheduler.vendors.haproxy.node import NOT_APPLIED
from tests.functional.haproxy.backends import Backend
from tests.functional.haproxy.lab import Lab, alive, request
from tests.rig.waiting import wait_for


def ip(*words: str, check: bool = True) -> str:
    return subprocess.run(["ip", *words], check=check, capture_output=True, text=True).stdout


def missing() -> str:
    if os.geteuid() != 0 or shutil.which("ip") is None:
        return "network namespaces need root and iproute2"
    name = f"lbaas-try-{uuid.uuid4().hex[:8]}"
    made = subprocess.run(["ip", "netns", "add", name], capture_output=True, text=True, check=False)
    if made.returncode:
        return f"this machine makes no network namespaces: {made.stderr.strip()}"
    ip("netns", "delete", name)
    return ""


MISSING = missing()
# One after the other: each looks at all links of the machine that are ours.
pytestmark = [pytest.mark.skipif(bool(MISSING), reason=MISSING), pytest.mark.xdist_group("namespaces")]


class Wired(Lab):
    """A device in a namespace. ``wirings``: VIP id → how it is reached; ``usual`` for all others."""

    wirings: dict[str, dict[str, Any]]
    usual: dict[str, Any]

    @classmethod
    def of(cls, conf: cfg.ConfigOpts, usual: dict[str, Any]) -> Wired:
        interfaces = (Interface(usual["interface"], kind=usual["kind"]),)
        device = Device(documents.new_id(), "lab", "LoadBalancer", "haproxy", interfaces=interfaces, extra={"netns": True})
        lab = cls(HaproxyDriver(conf), device)
        lab.wirings, lab.usual = {}, usual
        return lab

    @property
    def namespace(self) -> str:
        return f"lbaas-{self.device.id}"

    def apply(self, *vips: Vip) -> list[Result]:
        self.revision += 1
        return list(self.driver.apply(self.device, [self._deployment(vip) for vip in vips]))

    def _deployment(self, vip: Vip) -> Deployment:
        return replace(deployment(vip, 1, self.revision), wiring=self.wirings.get(vip.id, self.usual))

    def inside(self) -> list[str]:
        """Addresses in the namespace, without the loopback's."""
        shown = ip("-n", self.namespace, "-brief", "-4", "address", "show", check=False)
        return sorted(word for line in shown.splitlines() if not line.startswith("lo ") for word in line.split()[2:])


def wiring(interface: str, kind: str = FLAT, **more: Any) -> dict[str, Any]:
    return {"network_id": documents.new_id(), "interface": interface, "kind": kind, "segment": None, "vni": None} | more


def ours() -> set[str]:
    """Links of the host that the driver made."""
    return {path.name for path in Path("/sys/class/net").iterdir() if path.name.startswith("lb") and len(path.name) == 15}


@pytest.fixture
def net() -> str:
    """The first three numbers of a network that nobody else uses."""
    return f"198.{random.choice((18, 19))}.{random.randrange(256)}"


@pytest.fixture
def bridge(net: str) -> Iterator[str]:
    """A bridge of the host, with the address .1."""
    name = f"br{uuid.uuid4().hex[:10]}"
    # With a hardware address of its own: else it takes the lowest of its links', and forgets its neighbours when that changes.
    ip("link", "add", "name", name, "address", f"02:00:{uuid.uuid4().hex[:2]}:00:00:01", "type", "bridge")
    ip("address", "add", f"{net}.1/24", "dev", name)
    ip("link", "set", "dev", name, "up")
    yield name
    ip("link", "delete", "dev", name)


@pytest.fixture
def wired(conf: cfg.ConfigOpts, bridge: str, net: str) -> Iterator[Wired]:
    before = ours()
    lab = Wired.of(conf, wiring(bridge, gateway_ip=f"{net}.1"))
    yield lab
    fresh = HaproxyDriver(conf)
    for device_id in fresh.local_devices():
        fresh.purge(device_id)
    assert not Path(f"/run/netns/{lab.namespace}").exists()
    assert ours() == before


@pytest.fixture
def vips(net: str, bridge: str) -> Iterator[tuple[Vip, Vip]]:  # noqa: ARG001  # its address is the backend's
    """Two VIPs on the bridge, over one backend on the host."""
    backend = Backend("web", f"{net}.1")
    made = documents.vip(protocol=Protocol.HTTP, members=(backend.member(),))
    first, second = (
        replace(made, id=documents.new_id(), address=f"{net}.{last}", subnet_cidr=f"{net}.0/24", protocol_port=80)
        for last in (10, 11)
    )
    yield first, documents.with_pool(second, id=documents.new_id())
    backend.close()


def test_a_device_serves_in_its_namespace_for_as_long_as_it_has_a_vip(wired: Wired, vips: tuple[Vip, Vip], net: str) -> None:
    first, second = vips
    wired.serve(first)
    assert request(first)[0] == 200
    assert Path(f"/proc/{wired.worker}/ns/net").stat().st_ino == Path(f"/run/netns/{wired.namespace}").stat().st_ino
    wired.serve(second)
    assert wired.inside() == [f"{net}.10/24", f"{net}.11/24"]
    assert f"default via {net}.1" in ip("-n", wired.namespace, "route")

    reloads, before = wired.processes.reloads, ours()
    wired.serve(first, second)
    assert (wired.processes.reloads, ours(), len(before)) == (reloads, before, 1), "twice is once"
    assert set(wired.restarted().listed()) == {first.id, second.id}

    wired.remove(first)
    assert wired.inside() == [f"{net}.11/24"]
    assert request(second)[0] == 200

    wired.kill(wired.master)
    ip("netns", "delete", wired.namespace)  # as a restart of the host does
    wait_for(lambda: not ours(), 10, "the links to go with their namespace")
    wired.serve(first)
    assert [request(vip)[0] for vip in vips] == [200, 200]

    wired.remove(first, second)
    assert not Path(f"/run/netns/{wired.namespace}").exists()
    assert not wired.folder.exists()
    assert list(Path(f"/sys/class/net/{wired.usual['interface']}/brif").iterdir()) == []


def test_ipv6_addresses_are_had_beside_ipv4_ones_and_found_again(wired: Wired, vips: tuple[Vip, Vip], bridge: str) -> None:
    first, second = vips
    prefix = f"fd{uuid.uuid4().hex[:2]}:{uuid.uuid4().hex[:4]}:0:0"
    ip("address", "add", f"{prefix}::1/64", "dev", bridge, "nodad")
    # Not in the spelling of the kernel.
    sixth = replace(second, address=f"{prefix.upper()}:0:0:0:10", subnet_cidr=f"{prefix}::/64")
    wired.wirings[sixth.id] = wired.usual | {"network_id": documents.new_id(), "gateway_ip": f"{prefix}::1"}
    wired.serve(first, sixth)
    assert [request(vip)[0] for vip in (first, sixth)] == [200, 200]
    assert wired.listed() == {vip.id: Version(1, 1) for vip in (first, sixth)}
    wired.serve(first, sixth)
    assert wired.listed() == {vip.id: Version(1, 2) for vip in (first, sixth)}


def test_what_somebody_takes_away_is_noticed_and_put_back(wired: Wired, vips: tuple[Vip, Vip], net: str) -> None:
    first, second = vips
    wired.serve(first, second)
    reloads = wired.processes.reloads
    (outer,) = ours()

    def noticed(*gone: Vip) -> None:
        assert wired.listed() == {vip.id: NOT_APPLIED if vip in gone else Version(1, wired.revision) for vip in vips}
        wired.serve(first, second)
        assert wired.listed() == {vip.id: Version(1, wired.revision) for vip in vips}
        assert [request(vip)[0] for vip in vips] == [200, 200]

    ip("-n", wired.namespace, "address", "delete", f"{net}.11/24", "dev", outer.replace("lbo", "lbi"))
    noticed(second)
    ip("link", "set", "dev", outer, "nomaster")
    noticed(first, second)
    ip("link", "delete", "dev", outer)
    noticed(first, second)
    assert wired.processes.reloads == reloads
    # The process keeps the old one alive for a moment, with the links that it has.
    ip("netns", "delete", wired.namespace)
    noticed(first, second)
    ip("link", "delete", "dev", outer)
    ip("link", "add", "name", outer, "type", "veth", "peer", "name", f"far{outer[3:]}")
    noticed(first, second)


def test_a_vip_that_cannot_be_reached_does_not_cost_the_others(wired: Wired, vips: tuple[Vip, Vip], bridge: str) -> None:
    first, second = vips
    for wrong, words in (
        ({}, "no registered interface"),
        (wiring("br-absent"), "lacks the bridge"),
        (wiring("x; reboot"), "no usable name"),
        (wiring("-n"), "no usable name"),
        (wiring(bridge, VXLAN), "no number"),
        (wiring(bridge, VLAN, segment=4095), "no number"),
        (wiring(bridge, gateway_ip="1.2.3"), "gateway"),
    ):
        wired.wirings[second.id] = wrong
        good, bad = wired.apply(first, second)
        assert good.error is None
        assert words in (bad.error or "")
    assert request(first)[0] == 200
    assert set(wired.listed()) == {first.id}
    assert len(ours()) == 1
    del wired.wirings[second.id]
    wired.serve(second)
    assert request(second)[0] == 200


def test_a_device_is_moved_into_a_namespace_and_out_of_it(wired: Wired, vips: tuple[Vip, Vip], net: str) -> None:
    first, _ = vips
    outside = replace(first, address=f"{net}.1")
    wired.device = replace(wired.device, extra={})
    wired.serve(replace(outside, protocol_port=8080))
    wired.device = replace(wired.device, extra={"netns": True})
    wired.serve(first)
    assert request(first)[0] == 200
    wired.device = replace(wired.device, extra={"netns": False})
    wired.serve(replace(outside, protocol_port=8080))
    assert request(replace(outside, protocol_port=8080))[0] == 200
    assert not Path(f"/run/netns/{wired.namespace}").exists()


class FarHost:
    """Another host: a namespace with its own end of the VXLAN, and a web server there."""

    def __init__(self, net: str, vni: int) -> None:
        mark = uuid.uuid4().hex[:8]
        self.name, self.underlay = f"far-{mark}", f"u{mark}"
        ip("netns", "add", self.name)
        ip("link", "add", "name", self.underlay, "type", "veth", "peer", "name", "uplink", "netns", self.name)
        ip("address", "add", f"{net}.201/30", "dev", self.underlay)
        ip("link", "set", "dev", self.underlay, "up")
        group = ".".join(map(str, (239, *vni.to_bytes(3, "big"))))
        for words in (
            f"address add {net}.202/30 dev uplink",
            "link set dev uplink up",
            f"link add name far type vxlan id {vni} dev uplink group {group} dstport 4789",
            f"address add {net}.1/26 dev far",
            "link set dev far up",
        ):
            ip("-n", self.name, *words.split())
        command = [sys.executable, "-m", "http.server", "--bind", f"{net}.1", "8000"]
        self.server = subprocess.Popen(
            ["ip", "netns", "exec", self.name, *command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd="/proc/self"
        )

    def status(self, vip: Vip) -> str:
        """What a client there gets of a VIP."""
        url = f"http://{vip.address}:{vip.protocol_port}/"
        script = f"import urllib.request as r; print(r.urlopen({url!r}, timeout=5).status)"
        command = ["ip", "netns", "exec", self.name, sys.executable, "-c", script]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return done.stdout.strip() or done.stderr.strip().splitlines()[-1]

    def close(self) -> None:
        self.server.terminate()
        self.server.wait()
        ip("netns", "delete", self.name)


def test_devices_on_a_vxlan_reach_hosts_beyond_it_and_share_their_end(conf: cfg.ConfigOpts, net: str) -> None:
    before, vni = ours(), random.randrange(1, 2**24)
    far = FarHost(net, vni)
    conf.set_override("network_namespaces", True, group="haproxy")
    try:
        usual = wiring(far.underlay, VXLAN, segment=5, vni=vni)
        one, two = (Wired.of(conf, usual) for _ in range(2))
        two.device = replace(two.device, extra={})  # as the option says
        made = documents.vip(protocol=Protocol.HTTP, members=(documents.member(f"{net}.1", 8000),))
        vips = [
            replace(made, id=documents.new_id(), address=f"{net}.{last}", subnet_cidr=f"{net}.0/26", protocol_port=80)
            for last in (5, 6)
        ]
        for lab, vip in zip((one, two), vips, strict=True):
            lab.serve(vip)
            wait_for(lambda vip=vip: far.status(vip) == "200", 20, "traffic through the VXLAN")  # type: ignore[misc]
        assert len(ours() - before) == 4, "a bridge, its VXLAN, and a link for each device"
        one.remove(vips[0])
        assert far.status(vips[1]) == "200"
        two.driver.purge(two.device.id)
        assert ours() == before
    finally:
        far.close()
        for device_id in HaproxyDriver(conf).local_devices():
            HaproxyDriver(conf).purge(device_id)


def test_what_the_kernel_cannot_do_is_said_and_leaves_nothing(wired: Wired, vips: tuple[Vip, Vip]) -> None:
    first, _ = vips
    wired.wirings[first.id] = wiring("lo", VLAN, segment=7)
    [result] = wired.apply(first)
    if result.error is None:  # a kernel with 802.1q
        assert len(ours()) == 3
        return
    assert "could not be attached" in result.error
    assert not ours()
    assert not Path(f"/run/netns/{wired.namespace}").exists()


def test_an_address_that_moves_to_another_device_is_found_there_at_once(
    conf: cfg.ConfigOpts, wired: Wired, vips: tuple[Vip, Vip], net: str
) -> None:
    first, second = vips
    wired.serve(first, second)  # of which one stays: a bridge without a link forgets all by itself
    assert request(first)[0] == 200
    other = Wired.of(conf, wired.usual)
    wired.remove(first)
    other.serve(first)
    [link] = json.loads(ip("-n", other.namespace, "-json", "link", "show", "up", "type", "veth"))
    [neighbour] = json.loads(ip("-json", "neighbour", "show", f"{net}.10"))
    assert neighbour["lladdr"] == link["address"]
    assert request(first)[0] == 200


def test_a_vip_is_handed_over_between_two_devices_in_namespaces_of_one_host_under_load(
    conf: cfg.ConfigOpts, wired: Wired, vips: tuple[Vip, Vip]
) -> None:
    """Both have the address for a moment; the target says so to the neighbours when it gets it."""
    first, second = vips
    wired.serve(first, second)
    other = Wired.of(conf, wired.usual)
    with load(send, first, connections=4) as outcomes:
        for source, target in ((wired, other), (other, wired)):
            target.serve(first)
            source.remove(first)
            wait_for(lambda: request(first)[0] == 200, 5)
    good = outcomes.pop("200")
    assert good > 50
    # Connections that were open while the neighbours learned of the target end at the one that does not know them.
    assert sum(outcomes.values()) <= 2 * 4, outcomes
    assert set(wired.listed()) == {first.id, second.id}


def test_an_ipv6_address_that_moves_to_another_device_is_found_there_at_once(
    conf: cfg.ConfigOpts, wired: Wired, vips: tuple[Vip, Vip], bridge: str
) -> None:
    first, _ = vips
    prefix = f"fd00:{uuid.uuid4().hex[:4]}::"
    ip("address", "add", f"{prefix}1/64", "dev", bridge, "nodad")
    six = replace(first, address=f"{prefix}10", subnet_cidr=f"{prefix}/64")
    wired.usual |= {"gateway_ip": None}
    wired.serve(six)
    assert request(six)[0] == 503, "the member has an IPv4 address only"
    other = Wired.of(conf, wired.usual)
    other.serve(six)
    [link] = json.loads(ip("-n", other.namespace, "-json", "link", "show", "up", "type", "veth"))

    def known() -> list[str]:
        return [line.get("lladdr", "") for line in json.loads(ip("-6", "-json", "neighbour", "show", six.address))]

    wait_for(lambda: known() == [link["address"]], 5, "the neighbour's new hardware address")
    wired.remove(six)
    assert request(six)[0] == 503, "the member has an IPv4 address only"


@pytest.mark.parametrize("found_by", ["local devices", "a look", "a change", "a removal"])
def test_a_namespace_goes_or_is_used_anew_when_the_state_folder_was_lost(
    wired: Wired, vips: tuple[Vip, Vip], found_by: str
) -> None:
    first, second = vips
    before = ours()
    wired.serve(first, second)
    master = wired.master
    shutil.rmtree(wired.folder)
    after = wired.restarted()
    assert list(after.driver.local_devices()) == [wired.device.id]
    if found_by == "local devices":
        after.driver.purge(wired.device.id)
    elif found_by == "a look":
        assert after.driver.list_deployed(wired.device) == {}
    elif found_by == "a removal":
        assert after.driver.remove(wired.device, [first.id])[0].removed
    else:
        wired.serve(first)
        assert not alive(master)
        assert request(first)[0] == 200
        assert len(wired.inside()) == 1, "the second one's address went with the rest"
        return
    assert not alive(master)
    assert not Path(f"/run/netns/{wired.namespace}").exists()
    assert ours() == before
    assert list(after.driver.local_devices()) == []


def test_a_namespace_whose_process_ended_too_is_found_by_its_mark(wired: Wired, vips: tuple[Vip, Vip]) -> None:
    wired.serve(vips[0])
    wired.kill(wired.master)
    shutil.rmtree(wired.folder)
    assert list(wired.driver.local_devices()) == [wired.device.id]
    wired.driver.purge(wired.device.id)
    assert not Path(f"/run/netns/{wired.namespace}").exists()


def test_bridges_of_ours_go_with_a_namespace_that_nobody_knows_the_networks_of(
    wired: Wired, vips: tuple[Vip, Vip], bridge: str
) -> None:
    before = ours()
    wired.wirings[vips[0].id] = wiring(bridge, VXLAN, segment=5, vni=random.randrange(1, 2**24))
    wired.serve(vips[0])
    assert len(ours() - before) == 3, "a bridge, its VXLAN, and a link"
    shutil.rmtree(wired.folder)
    wired.driver.purge(wired.device.id)
    assert ours() == before


def test_a_namespace_of_another_agent_is_left_alone(
    wired: Wired, conf: cfg.ConfigOpts, tmp_path: Path, vips: tuple[Vip, Vip]
) -> None:
    wired.serve(vips[0])
    conf.set_override("state_path", str(tmp_path / "another"), group="haproxy")
    other = HaproxyDriver(conf)
    conf.set_override("state_path", str(wired.driver.settings.state_path), group="haproxy")
    assert list(other.local_devices()) == []
    other.purge(wired.device.id)
    assert other.list_deployed(wired.device) == {}
    assert request(vips[0])[0] == 200


def test_a_fenced_device_has_no_address_until_the_next_change(wired: Wired, vips: tuple[Vip, Vip]) -> None:
    wired.serve(*vips)
    wired.driver.fence(wired.device.id)
    assert wired.inside() == []
    assert wired.listed() == {vip.id: NOT_APPLIED for vip in vips}
    wired.serve(vips[0])
    assert len(wired.inside()) == 2
    assert request(vips[0])[0] == request(vips[1])[0] == 200
