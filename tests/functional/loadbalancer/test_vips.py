"""VIPs: their creation, changes and end."""

from __future__ import annotations

from typing import Any

from tests.functional.loadbalancer.lab import Lab


def test_a_new_vip_has_its_defaults_its_address_and_a_port_and_waits_for_its_device(lab: Lab) -> None:
    pool = lab.pool()
    vip = lab.vip(pool)
    expected: dict[str, Any] = {
        "tenant_id": "tenant",
        "name": "",
        "description": "",
        "address": "10.0.0.2",
        "protocol": "HTTP",
        "protocol_port": 80,
        "pool_id": pool["id"],
        "session_persistence": None,
        "connection_limit": -1,
        "admin_state_up": True,
        "status": "PENDING_CREATE",
        "status_description": None,
        "service_type": "default",
    }
    assert {name: vip[name] for name in expected} == expected
    assert vip["port_id"]
    assert lab.plugin.get_pool(lab.me, pool["id"])["vip_id"] == vip["id"]
    assert lab.caster.casts == [[vip["id"]]]
    assert lab.plugin.get_vip(lab.me, vip["id"]) == vip
