"""What Acme's devices can take."""

from __future__ import annotations

from functools import cached_property
from ipaddress import ip_network

import sqlalchemy as sa
from oslo_config import cfg

from acme_mesh.tables import acme_meshes
from lbaas_scheduler.db.models import device_networks, subnets
from lbaas_scheduler.db.session import Database
from lbaas_scheduler.domain import traits
from lbaas_scheduler.domain.devices import Candidate, Device
from lbaas_scheduler.domain.requests import ScheduleRequest, Verdict
from lbaas_scheduler.errors import InvalidRequest
from lbaas_scheduler.sdk.handlers import DeviceHandler

OPTIONS = [
    cfg.IntOpt(
        "max_vlans_per_interface",
        default=128,
        min=1,
        max=4094,
        help="How many VLANs one interface of an appliance carries at most. Lower it where older cards are in use; devices that "
        "are registered with more are refused.",
    )
]


class MeshHandler(DeviceHandler):
    """Devices of a mesh share their state, have one routing table each, and carry few VLANs per interface."""

    device_type = "acme_mesh"
    traits = traits.STANDARD - {traits.OVERLAPPING_IPS} | {"CUSTOM_ACME_MESH"}

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        self._conf = conf

    @classmethod
    def register_opts(cls, conf: object) -> None:
        conf.register_opts(OPTIONS, group="acme_mesh")  # type: ignore[attr-defined]

    @cached_property
    def _database(self) -> Database:
        """Opened when it is first needed: a handler is also built where nothing is placed."""
        return Database.open(self._conf)

    def validate_device(self, device: Device) -> None:
        mesh = device.extra.get("mesh")
        if not isinstance(mesh, str) or not 1 <= len(mesh) <= 64:
            raise InvalidRequest(reason="extra.mesh must be the name of the device's mesh, 1 to 64 characters")
        most = self._conf.acme_mesh.max_vlans_per_interface
        for interface in device.interfaces:
            if not 0 <= interface.max_vlans <= most:
                raise InvalidRequest(reason=f"interfaces: max_vlans of {interface.name} must be 0 to {most} on an Acme appliance")

    def is_good(self, device: Candidate, request: ScheduleRequest) -> Verdict:
        mesh = device.device.extra["mesh"]
        frozen, wired = self._database.read(lambda conn: (_is_frozen(conn, mesh), _wired(conn, device.device.id)))
        if frozen:
            return Verdict.no(f"belongs to mesh {mesh}, which is under maintenance")
        cidr, network_id = request.resource.subnet_cidr, request.resource.network_id
        clash = next((other for network, other in wired if network != network_id and cidr and _overlap(cidr, other)), None)
        return Verdict.yes() if clash is None else Verdict.no(f"carries {clash} of another network, which overlaps {cidr}")

    def weigh(self, device: Candidate, request: ScheduleRequest) -> float:
        return 100.0 if device.hosts_tenant else 50.0


def _is_frozen(conn: sa.Connection, mesh: str) -> bool:
    return bool(conn.scalar(sa.select(acme_meshes.c.frozen).where(acme_meshes.c.name == mesh)))


def _wired(conn: sa.Connection, device_id: str) -> list[tuple[str, str]]:
    """Networks on the device, each with the prefix of each of its subnets."""
    c = device_networks.c
    query = sa.select(c.network_id, subnets.c.cidr).join(subnets, subnets.c.network_id == c.network_id)
    return [(row.network_id, row.cidr) for row in conn.execute(query.where(c.device_id == device_id))]


def _overlap(one: str, other: str) -> bool:
    first, second = ip_network(one), ip_network(other)
    return first.version == second.version and first.overlaps(second)
