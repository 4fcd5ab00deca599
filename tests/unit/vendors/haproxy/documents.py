"""VIPs with fixed ids, for comparison with files."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from lbaas_scheduler.domain.deployments import Deployment, Version
from lbaas_scheduler.domain.loadbalancers import HealthMonitor, Member, Method, MonitorType, Pool, Protocol, Vip

MEMBERS = (Member("m1", "10.0.0.11", 8080), Member("m2", "10.0.0.12", 8080, weight=5))
MONITOR = HealthMonitor("h1", MonitorType.HTTP, delay=10, timeout=3, max_retries=4, url_path="/health", expected_codes="200-204")


def vip(protocol: Protocol = Protocol.HTTP, *, pool: dict[str, Any] | None = None, **changes: Any) -> Vip:
    """``pool`` and ``changes`` are attributes that differ from a plain VIP with two members."""
    document = Vip("v1", "t" * 32, "192.0.2.10", 80, protocol, Pool("p1", protocol, Method.ROUND_ROBIN, members=MEMBERS))
    return replace(document, pool=replace(document.pool, **(pool or {})), **changes)


def deployment(document: Vip, epoch: int = 1, revision: int = 1) -> Deployment:
    return Deployment(document, Version(epoch, revision))
