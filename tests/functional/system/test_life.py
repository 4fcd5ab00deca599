"""The main job, end to end, as operators run it: two servers, two agents, RabbitMQ, a real database, real HAProxy."""

from __future__ import annotations

import pytest
import sqlalchemy as sa

from lbaas_scheduler.cmd.demo import traffic
from lbaas_scheduler.cmd.demo.backends import Backend
from lbaas_scheduler.db import models
from lbaas_scheduler.db.allocator_models import allocator_allocations
from lbaas_scheduler.errors import NotFound
from lbaas_scheduler.networks.local import VIP
from lbaas_scheduler.networks.segments import WIRING
from tests.functional.system.cluster import ADMIN, TENANT, Cluster, Site
from tests.rig.rabbitmq import RabbitMQ
from tests.rig.waiting import wait_for

pytestmark = pytest.mark.parametrize("database_url", ["postgresql", "mariadb"], indirect=True)

RESOURCES = (models.vips, models.pools, models.members, models.health_monitors, models.pool_monitors)
ALLOCATIONS = (
    sa.select(allocator_allocations).where(allocator_allocations.c.owner_type.in_((VIP, WIRING))).subquery("allocations")
)
WHAT_A_VIP_HOLDS = (models.placements, models.deployments, models.device_networks, ALLOCATIONS)


def test_a_vip_lands_on_a_device_serves_is_changed_and_goes_without_a_trace(
    site_cluster: Cluster, backends: list[Backend], rabbitmq_server: RabbitMQ, rabbitmq_url: str
) -> None:
    # One story, not several tests: a cluster takes longer to start than all of this takes.
    site_cluster.register_devices(3, vips=5)
    site = Site(site_cluster)
    pool_id = site.pool({backend.address: backend.port for backend in backends})
    monitor_id = site.monitor(pool_id)
    vip = site.vip(pool_id)
    assert vip["status"] == "PENDING_CREATE"
    vip = site.wait_active(vip["id"])
    assert sum(site_cluster.used().values()) == 1
    _is_explained(site_cluster, vip["id"])
    owner = {"type": "vip", "id": vip["id"]}
    assert [grant["value"] for grant in site_cluster.allocator.allocations(ADMIN, owner=owner)] == [vip["address"]]
    assert _kinds_of_queues(rabbitmq_server, rabbitmq_url) == {"quorum"}

    _serves(vip, 200, len(backends))
    _follows_a_change(site_cluster, site, vip, backends)

    balancers = site_cluster.balancers
    balancers.delete_vip(TENANT, vip["id"])
    wait_for(lambda: _gone(site_cluster, vip["id"]), 30, "the VIP to go")
    assert traffic.send(vip["address"], vip["protocol_port"], 1).failures
    assert site_cluster.allocator.allocations(ADMIN, owner=owner) == []
    assert site_cluster.allocator.check(ADMIN) == []
    balancers.delete_pool_health_monitor(TENANT, monitor_id, pool_id)
    balancers.delete_health_monitor(TENANT, monitor_id)
    balancers.delete_pool(TENANT, pool_id)

    assert {table.name: site_cluster.count(table) for table in (*RESOURCES, *WHAT_A_VIP_HOLDS)} == {
        table.name: 0 for table in (*RESOURCES, *WHAT_A_VIP_HOLDS)
    }
    assert set(site_cluster.used().values()) == {0}
    assert site_cluster.device_folders() == []


def _is_explained(cluster: Cluster, vip_id: str) -> None:
    placement = cluster.devices.get_placement(ADMIN, vip_id)
    assert placement["agent_host"] in cluster.agents
    assert placement["trail"]["algorithm"] == "least_loaded"
    assert placement["revision"] == placement["applied_revision"]


def _kinds_of_queues(broker: RabbitMQ, url: str) -> set[str]:
    """Of the queues that last; replies and fanouts go to queues that live no longer than their process."""
    return {
        queue["type"]
        for queue in broker.queues(url)
        if queue["name"].startswith("lbaas_scheduler") and "fanout" not in queue["name"]
    }


def _serves(vip: dict, requests: int, members: int) -> None:
    tally = traffic.send(vip["address"], vip["protocol_port"], requests)
    assert tally.failures == []
    assert len(tally.by_member) == members
    assert min(tally.by_member.values()) >= requests // members - members


def _follows_a_change(cluster: Cluster, site: Site, vip: dict, backends: list[Backend]) -> None:
    """One member goes into maintenance; the VIP's name changes; both are confirmed, and traffic follows."""
    balancers = cluster.balancers
    resting = next(m for m in balancers.get_members(TENANT) if m["address"] == backends[0].address)
    balancers.update_member(TENANT, resting["id"], {"admin_state_up": False})
    changed = balancers.update_vip(TENANT, vip["id"], {"name": "renamed", "connection_limit": 100})
    assert changed["status"] == "PENDING_UPDATE"
    site.wait_active(vip["id"])
    wait_for(lambda: balancers.get_member(TENANT, resting["id"])["status"] == "DISABLED", 20, "the member to rest")
    tally = traffic.send(vip["address"], vip["protocol_port"], 40)
    assert tally.failures == []
    assert backends[0].name not in tally.by_member


def _gone(cluster: Cluster, vip_id: str) -> bool:
    try:
        cluster.balancers.get_vip(TENANT, vip_id)
    except NotFound:
        return True
    return False
