"""Run where acme_mesh is installed: registers meshed devices, places VIPs as ``scheduler.conf`` says, prints where they went."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from typing import Any

import sqlalchemy as sa
from acme_mesh.tables import acme_meshes  # type: ignore[import-not-found]
from oslo_config import cfg

from lbaas_scheduler.conf import loading
from lbaas_scheduler.db.models import networks, subnets
from lbaas_scheduler.db.session import Database
from lbaas_scheduler.domain.clock import utcnow
from lbaas_scheduler.domain.devices import Interface
from lbaas_scheduler.domain.loadbalancers import Method, Pool, Protocol, Vip
from lbaas_scheduler.errors import InvalidRequest, NoValidDevice
from lbaas_scheduler.plugins.device_scheduler.build import build_gates, build_placer
from lbaas_scheduler.scheduler.services import LoadBalancerService
from tests.factories import add_agent, add_devices, new_device

NETWORKS = {"one": "10.0.0.0/24", "two": "10.0.1.0/24", "clash": "10.0.0.128/25"}
POOL = Pool("pool", Protocol.TCP, Method.ROUND_ROBIN)


def furnish(database: Database, handler: Any) -> list[str]:
    """Two meshes of two devices and one without VLANs. :returns: what the handler refuses at registration."""
    now = utcnow()
    wires = (Interface("eth0", 2),)
    made = [new_device(f"{mesh}{number}", device_type="acme_mesh", traits=handler.traits, interfaces=wires, extra={"mesh": mesh})
            for mesh in ("a", "b") for number in (1, 2)]  # fmt: skip
    wrong = [replace(made[0], extra={}), replace(made[0], interfaces=(Interface("eth9", -1),))]
    add_agent(database)
    add_devices(database, *made)

    def work(conn: sa.Connection) -> None:
        conn.execute(sa.insert(acme_meshes), [{"name": "a", "frozen": False}, {"name": "b", "frozen": False}])
        for name, cidr in NETWORKS.items():
            conn.execute(sa.insert(networks).values(id=name, tenant_id="t", created_at=now))
            values = {"id": name, "network_id": name, "tenant_id": "t", "cidr": cidr, "ip_version": 4, "allocation_pools": []}
            conn.execute(sa.insert(subnets).values(created_at=now, **values))

    database.write(work)
    return [_refusal(handler, device) for device in wrong]


def _refusal(handler: Any, device: Any) -> str:
    try:
        handler.validate_device(device)
    except InvalidRequest as error:
        return error.message
    return ""


def main(config: str) -> None:
    conf = cfg.ConfigOpts()
    loading.read(conf, ["--config-file", config], "place-on-meshes")
    database, gates = Database.open(conf), build_gates(conf)
    placer = build_placer(conf, database, gates)
    refused = furnish(database, gates["LoadBalancer"].handlers["acme_mesh"])

    def place(name: str, tenant: str, network: str) -> Any:
        vip = Vip(name, tenant, "", 80, Protocol.TCP, POOL, subnet_cidr=NETWORKS[network], network_id=network)
        request = LoadBalancerService().request_for(vip, resource_id=name, tenant_id=tenant)
        try:
            return placer.place(request).device_id
        except NoValidDevice as error:
            return sorted({it["reason"] for it in error.kwargs["trail"]["rejections"]})

    together = [place(f"mine-{number}", "mine", "one") for number in range(6)]
    home = together[0][0]
    clashing = place("clash", "mine", "clash")
    database.write(lambda conn: conn.execute(sa.update(acme_meshes).values(frozen=True)))
    frozen = place("late", "mine", "one")
    answers = {"together": together, "home": home, "clashing": clashing, "frozen": frozen, "refused": refused}
    print(json.dumps(answers))
    database.dispose()


if __name__ == "__main__":
    main(sys.argv[1])
