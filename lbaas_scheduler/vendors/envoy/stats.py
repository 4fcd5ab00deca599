"""What an Envoy counts, per VIP."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lbaas_scheduler.domain.deployments import MemberHealth, VipStats
from lbaas_scheduler.vendors.envoy.admin import Admin
from lbaas_scheduler.vendors.envoy.folder import Record
from lbaas_scheduler.vendors.envoy.process import COUNTERS
from lbaas_scheduler.vendors.envoy.resources import address_and_port


def read(admin: Admin, records: Mapping[str, Record]) -> dict[str, VipStats]:
    """:raises DriverError: Envoy does not answer."""
    counters = admin.stats(COUNTERS)
    hosts = {cluster["name"]: cluster.get("host_statuses", []) for cluster in admin.clusters()}
    return {
        vip_id: VipStats(
            bytes_in=_bytes(counters, vip_id, "rx"),
            bytes_out=_bytes(counters, vip_id, "tx"),
            active_connections=int(counters.get(f"listener.{vip_id}.downstream_cx_active", 0)),
            total_connections=int(counters.get(f"listener.{vip_id}.downstream_cx_total", 0)),
            members=_members(hosts.get(vip_id, []), record),
        )
        for vip_id, record in records.items()
    }


def _bytes(counters: Mapping[str, Any], vip_id: str, direction: str) -> int:
    """Seen from the client. A VIP is either HTTP or TCP; one that never saw a connection is not counted yet."""
    return sum(int(counters.get(f"{kind}.{vip_id}.downstream_cx_{direction}_bytes_total", 0)) for kind in ("http", "tcp"))


def _members(hosts: list[dict[str, Any]], record: Record) -> dict[str, MemberHealth]:
    found = {}
    for host in hosts:
        address = host["address"]["socket_address"]
        member_id = record.members.get(address_and_port(address["address"], address["port_value"]))
        if member_id is not None:
            found[member_id] = _health(host["health_status"], record.checked)
    return found


def _health(status: Mapping[str, Any], checked: bool) -> MemberHealth:
    """``pending_active_hc`` = the first check has not ended. Envoy does not tell how many checks failed."""
    if not checked or status.get("pending_active_hc"):
        return MemberHealth(None)
    if status.get("failed_active_health_check"):
        return MemberHealth(False, 1, "the health check failed")
    return MemberHealth(True)
