"""What the demo does, step by step. Each step checks what it shows."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from oslo_context.context import RequestContext

from lbaas_scheduler.cmd.demo import furniture, traffic
from lbaas_scheduler.cmd.demo.backends import Backend
from lbaas_scheduler.cmd.demo.report import Reporter, Unexpected
from lbaas_scheduler.errors import NotFound
from lbaas_scheduler.rpc.lbaas_api import DeviceSchedulerClient, LoadBalancerClient

BACKEND_ADDRESSES = ("127.87.1.1", "127.87.1.2", "127.87.1.3")
PATIENCE_SECONDS = 30.0
REQUESTS = 60

ADMIN = furniture.ADMIN
TENANT = RequestContext(project_id="demo", is_admin=False, overwrite=False)


class Story:
    """The main job, told once.

    :param device_types: those with a data plane on this host, the preferred one first.
    :param vip_port: a free TCP port.
    """

    def __init__(
        self,
        devices: DeviceSchedulerClient,
        balancers: LoadBalancerClient,
        device_types: Sequence[str],
        vip_port: int,
        reporter: Reporter,
    ) -> None:
        self._devices = devices
        self._balancers = balancers
        self._device_types = device_types
        self._vip_port = vip_port
        self._report = reporter
        self._backends = [Backend(f"web{n}", address) for n, address in enumerate(BACKEND_ADDRESSES, 1)]
        self._members: dict[str, dict[str, Any]] = {}
        self._subnet: dict[str, Any] = {}
        self._pool: dict[str, Any] = {}
        self._monitor: dict[str, Any] = {}
        self._vip: dict[str, Any] = {}

    def run(self) -> None:
        """Tell it.

        :raises Unexpected: something did not hold.
        """
        steps: Sequence[tuple[str, Callable[[], None]]] = (
            ("Register three devices", self._register_devices),
            ("Define two service types", self._define_service_types),
            ("Start three HTTP backends", self._start_backends),
            ("Create a pool with members and an HTTP monitor", self._create_pool),
            ("Create a VIP", self._create_vip),
            ("See where it landed, and why", self._show_placement),
            ("Wait until it is ACTIVE", self._wait_until_active),
            (f"Send {REQUESTS} requests through it", self._send_requests),
            ("Stop a backend", self._stop_backend),
            ("Bring it back", self._bring_backend_back),
            ("Change weights under load", self._change_weights),
            ("Delete everything", self._delete_everything),
        )
        try:
            for name, step in steps:
                with self._report.step(name):
                    step()
        finally:
            for backend in self._backends:
                backend.stop()

    def _register_devices(self) -> None:
        furniture.register_devices(self._devices, self._device_types, 3)
        rows = [(d["name"], d["device_type"], d["admin_state"], d["status"]) for d in self._fleet()]
        self._report.table("", ("device", "type", "admin state", "status"), rows)

    def _define_service_types(self) -> None:
        fastest = furniture.define_service_types(self._devices, self._device_types)
        self._report.say(f"'any' leaves the choice to the scheduler; 'fast' asks for {fastest}.")

    def _start_backends(self) -> None:
        for backend in self._backends:
            backend.start()
        self._report.say(", ".join(f"{backend.name} on {backend.address}:{backend.port}" for backend in self._backends))

    def _create_pool(self) -> None:
        self._subnet = furniture.create_subnet(self._devices)
        pool = {"name": "web", "protocol": "HTTP", "lb_method": "ROUND_ROBIN", "subnet_id": self._subnet["id"]}
        self._pool = self._balancers.create_pool(TENANT, pool=pool)
        for backend in self._backends:
            member = {"pool_id": self._pool["id"], "address": backend.address, "protocol_port": backend.port, "weight": 10}
            self._members[backend.name] = self._balancers.create_member(TENANT, member=member)
        monitor = {"type": "HTTP", "delay": 1, "timeout": 1, "max_retries": 2, "url_path": "/"}
        self._monitor = self._balancers.create_health_monitor(TENANT, health_monitor=monitor)
        self._balancers.create_pool_health_monitor(TENANT, self._monitor["id"], self._pool["id"])

    def _create_vip(self) -> None:
        vip = {
            "name": "front door",
            "subnet_id": self._subnet["id"],
            "protocol": "HTTP",
            "protocol_port": self._vip_port,
            "pool_id": self._pool["id"],
            "service_type_id": "any",
        }
        self._vip = self._balancers.create_vip(TENANT, vip=vip)
        self._report.say(f"{self._vip['address']}:{self._vip_port}, {self._vip['status']}")

    def _show_placement(self) -> None:
        placement = self._devices.get_placement(ADMIN, self._vip["id"])
        self._report.record.placement = placement
        self._report.say(
            f"On {placement['device_name']} ({placement['device_type']}), driven by agent {placement['agent_host']}."
        )
        self._report.say(placement["why"])

    def _wait_until_active(self) -> None:
        self._wait_for("the VIP to turn ACTIVE", lambda: self._vip_status() == "ACTIVE")
        self._wait_for("all members to be found healthy", lambda: set(self._member_statuses().values()) == {"ACTIVE"})

    def _send_requests(self) -> None:
        tally = self._send(REQUESTS)
        self._show_spread(tally)
        if len(tally.by_member) != len(self._backends):
            raise Unexpected(f"only {sorted(tally.by_member)} answered, of {len(self._backends)} members")

    def _stop_backend(self) -> None:
        victim = self._backends[-1]
        victim.stop()
        self._wait_for(f"{victim.name} to turn INACTIVE", lambda: self._member_statuses()[victim.name] == "INACTIVE")
        tally = self._send(REQUESTS // 2)
        self._show_spread(tally)
        if victim.name in tally.by_member:
            raise Unexpected(f"{victim.name} answered after it had been stopped")

    def _bring_backend_back(self) -> None:
        back = self._backends[-1]
        back.start()
        self._wait_for(f"{back.name} to turn ACTIVE", lambda: self._member_statuses()[back.name] == "ACTIVE")
        self._wait_for(f"{back.name} to answer", lambda: back.name in self._send(len(self._backends)).by_member)

    def _change_weights(self) -> None:
        favourite = self._backends[0].name
        with traffic.Load(self._vip["address"], self._vip_port) as load:
            for name, member in self._members.items():
                weight = 80 if name == favourite else 10
                self._balancers.update_member(TENANT, member["id"], member={"weight": weight})
            self._wait_for("the new weights to be applied", lambda: set(self._member_statuses().values()) == {"ACTIVE"})
        self._check(load.tally)
        tally = self._send(REQUESTS)
        self._show_spread(tally)
        if tally.by_member[favourite] <= REQUESTS // 2:
            raise Unexpected(f"{favourite} has 80 % of the weight and answered {tally.by_member[favourite]} of {REQUESTS}")

    def _delete_everything(self) -> None:
        self._balancers.delete_vip(TENANT, self._vip["id"])
        self._wait_for("the device to let go of the VIP", lambda: self._vip_status() == "gone")
        for member in self._members.values():
            self._balancers.delete_member(TENANT, member["id"])
        self._balancers.delete_pool_health_monitor(TENANT, self._monitor["id"], self._pool["id"])
        self._balancers.delete_health_monitor(TENANT, self._monitor["id"])
        self._balancers.delete_pool(TENANT, self._pool["id"])
        fleet = self._fleet()
        rows = [(d["name"], f"{d['usage']['VIPS']['used']} of {d['usage']['VIPS']['limit']}") for d in fleet]
        self._report.table("", ("device", "VIPs"), rows)
        if any(device["usage"]["VIPS"]["used"] for device in fleet):
            raise Unexpected("a device still counts a VIP that is gone")
        for device in fleet:
            self._devices.delete_device(ADMIN, device["id"])

    def _fleet(self) -> list[dict[str, Any]]:
        return sorted(self._devices.get_devices(ADMIN), key=lambda device: str(device["name"]))

    def _vip_status(self) -> str:
        try:
            vip = self._balancers.get_vip(TENANT, self._vip["id"])
        except NotFound:
            return "gone"
        if vip["status"] == "ERROR":
            raise Unexpected(f"the VIP is in ERROR: {vip['status_description']}")
        return str(vip["status"])

    def _member_statuses(self) -> dict[str, str]:
        members = {member["id"]: member for member in self._balancers.get_members(TENANT)}
        return {name: members[member["id"]]["status"] for name, member in self._members.items()}

    def _send(self, count: int) -> traffic.Tally:
        tally = traffic.send(self._vip["address"], self._vip_port, count)
        self._check(tally)
        return tally

    def _check(self, tally: traffic.Tally) -> None:
        self._report.count(tally)
        if tally.failures:
            raise Unexpected(f"{len(tally.failures)} of {tally.sent} requests failed; the first: {tally.failures[0]}")

    def _show_spread(self, tally: traffic.Tally) -> None:
        rows = [(name, answered, "█" * round(40 * answered / tally.sent)) for name, answered in _sorted(tally.by_member)]
        self._report.table("", ("member", "requests", ""), rows)

    def _wait_for(self, what: str, holds: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not holds():
            if time.monotonic() > deadline:
                raise Unexpected(f"waited {PATIENCE_SECONDS:g} s in vain for {what}")
            time.sleep(0.05)


def _sorted(by_member: Mapping[str, int]) -> list[tuple[str, int]]:
    return sorted(by_member.items())
