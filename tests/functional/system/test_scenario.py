"""A load balancer over REST alone, with real traffic: the scenario of LBaaS v1's own suite, and what became of it later."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import requests

from lbaas_scheduler.cmd.demo import traffic
from lbaas_scheduler.cmd.demo.backends import Backend
from tests.demo import Demo
from tests.rig.ports import free_port
from tests.rig.run import Run
from tests.rig.waiting import wait_for

REQUESTS = 50


class Tenant:
    """What a tenant does, in few words."""

    def __init__(self, demo: Demo) -> None:
        self._demo = demo
        self.subnet_id = demo.find("subnets")["id"]

    def call(self, method: str, path: str, **body: Any) -> dict[str, Any]:
        answer = requests.request(method, f"{self._demo.url}/v2.0/lb/{path}", json=body or None, timeout=10)
        assert answer.ok, answer.text
        return next(iter(answer.json().values())) if answer.content else {}

    def show(self, path: str) -> dict[str, Any]:
        return self.call("GET", path)

    def wait(self, path: str, status: str) -> dict[str, Any]:
        wait_for(lambda: self.show(path)["status"] == status, 30, f"{path} to become {status}", interval=0.1)
        return self.show(path)

    def is_gone(self, path: str) -> bool:
        return requests.get(f"{self._demo.url}/v2.0/lb/{path}", timeout=10).status_code == 404


@pytest.fixture
def tenant(rig: Run, folder: Any) -> Iterator[Tenant]:
    with Demo(rig, folder) as demo:
        yield Tenant(demo)


def test_two_members_share_the_requests_one_dies_and_returns_and_sessions_persist(
    tenant: Tenant, backends: list[Backend]
) -> None:
    mine = backends[:2]
    pool = tenant.call("POST", "pools", pool={"subnet_id": tenant.subnet_id, "protocol": "HTTP", "lb_method": "ROUND_ROBIN"})
    members = [
        tenant.call("POST", "members", member={"pool_id": pool["id"], "address": it.address, "protocol_port": it.port})["id"]
        for it in mine
    ]
    check = {"type": "HTTP", "delay": 1, "timeout": 1, "max_retries": 1}
    monitor = tenant.call("POST", "health_monitors", health_monitor=check)
    tenant.call("POST", f"pools/{pool['id']}/health_monitors", health_monitor={"id": monitor["id"]})
    wanted = {"subnet_id": tenant.subnet_id, "protocol": "HTTP", "protocol_port": free_port(), "pool_id": pool["id"]}
    path = f"vips/{tenant.call('POST', 'vips', vip=wanted)['id']}"
    vip = tenant.wait(path, "ACTIVE")

    def shared() -> dict[str, int]:
        tally = traffic.send(vip["address"], vip["protocol_port"], REQUESTS)
        assert tally.failures == []
        return dict(tally.by_member)

    assert shared() == {it.name: REQUESTS // 2 for it in mine}
    counted = tenant.show(f"pools/{pool['id']}/stats")
    assert counted.keys() == {"bytes_in", "bytes_out", "active_connections", "total_connections"}
    wait_for(lambda: tenant.show(f"pools/{pool['id']}/stats")["total_connections"] >= REQUESTS, 20, "the requests to be counted")

    mine[0].stop()
    tenant.wait(f"members/{members[0]}", "INACTIVE")
    assert shared() == {mine[1].name: REQUESTS}
    mine[0].start()
    tenant.wait(f"members/{members[0]}", "ACTIVE")
    assert set(shared()) == {it.name for it in mine}

    tenant.call("PUT", path, vip={"session_persistence": {"type": "SOURCE_IP"}})
    tenant.wait(path, "ACTIVE")
    assert list(shared().values()) == [REQUESTS]
    tenant.call("PUT", path, vip={"session_persistence": None})
    tenant.wait(path, "ACTIVE")
    assert set(shared()) == {it.name for it in mine}

    tenant.call("DELETE", path)
    wait_for(lambda: tenant.is_gone(path), 30, "the VIP to go")
    assert traffic.send(vip["address"], vip["protocol_port"], 1).failures
    tenant.call("DELETE", f"pools/{pool['id']}")
    assert tenant.is_gone(f"members/{members[0]}")
