"""Every command of ``neutron`` for load balancers, agents, quotas and service providers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
import requests

from lbaas_scheduler.cmd.demo import traffic
from lbaas_scheduler.cmd.demo.backends import Backend
from tests.demo import Demo
from tests.functional.neutronclient.conftest import Neutron
from tests.rig.ports import free_port
from tests.rig.waiting import wait_for

pytestmark = [pytest.mark.xdist_group("neutronclient"), pytest.mark.timeout(900)]

OURS = re.compile(r"^  ((?:lb|agent|quota)-\S+|service-provider-list) ", re.MULTILINE)


@pytest.fixture
def backend() -> Iterator[Backend]:
    server = Backend("web", "127.0.0.1")
    server.start()
    yield server
    server.stop()


def _pool(neutron: Neutron, name: str, protocol: str = "HTTP", *words: str) -> dict[str, Any]:
    needed = ("--lb-method", "ROUND_ROBIN", "--name", name, "--protocol", protocol, "--subnet-id", "front")
    return neutron.show("lb-pool-create", *needed, *words)


def _vip(neutron: Neutron, pool: str, name: str, protocol: str = "HTTP", *words: str) -> dict[str, Any]:
    needed = ("--name", name, "--protocol", protocol, "--protocol-port", str(free_port()), "--subnet-id", "front")
    return neutron.show("lb-vip-create", *needed, *words, pool)


def _wait_active(neutron: Neutron, name: str) -> dict[str, Any]:
    return wait_for(lambda: (vip := neutron.show("lb-vip-show", name))["status"] == "ACTIVE" and vip, 30, f"{name} to be ACTIVE")


def _delete_vip(neutron: Neutron, name: str) -> None:
    neutron.run("lb-vip-delete", name)
    wait_for(lambda: name not in [it["name"] for it in neutron.list("lb-vip-list")], 30, f"{name} to go")


def test_a_load_balancer_lives_its_whole_life_and_every_command_is_driven(neutron: Neutron, demo: Demo, backend: Backend) -> None:
    pool = _pool(neutron, "web", "HTTP", "--description", "first", "--provider", "any")
    assert (pool["status"], pool["provider"]) == ("ACTIVE", "any")
    member = neutron.show(
        "lb-member-create", "--address", backend.address, "--protocol-port", str(backend.port), "--weight", "5", "web"
    )
    monitor_words = ("--delay", "2", "--timeout", "1", "--max-retries", "2", "--type", "HTTP", "--url-path", "/")
    monitor = neutron.show("lb-healthmonitor-create", *monitor_words, "--http-method", "GET", "--expected-codes", "200-204")
    neutron.run("lb-healthmonitor-associate", monitor["id"], "web")
    _vip(neutron, "web", "door", "HTTP", "--address", "127.87.0.77", "--connection-limit", "100", "--description", "front")
    vip = _wait_active(neutron, "door")
    assert vip["address"] == "127.87.0.77"
    assert traffic.send(vip["address"], int(vip["protocol_port"]), 10).by_member == {"web": 10}

    _lists_show_it(neutron, pool, member, monitor)
    _stats_count_it(neutron)
    _agent_and_providers(neutron, pool)
    _quotas(neutron)

    neutron.run("lb-healthmonitor-disassociate", monitor["id"], "web")
    assert not neutron.show("lb-pool-show", "web")["health_monitors"]
    _delete_vip(neutron, "door")
    neutron.run("lb-member-delete", member["id"])
    neutron.run("lb-healthmonitor-delete", monitor["id"])
    neutron.run("lb-pool-delete", "web")
    for command in ("lb-vip-list", "lb-pool-list", "lb-member-list", "lb-healthmonitor-list"):
        assert neutron.run(command).strip() == "", command
    _updates(neutron)
    _agent_goes_and_comes_back(neutron, demo)

    assert set(OURS.findall(neutron.run("help"))) - neutron.driven == set()


def _lists_show_it(neutron: Neutron, pool: dict[str, Any], member: dict[str, Any], monitor: dict[str, Any]) -> None:
    assert [it["id"] for it in neutron.list("lb-pool-list")] == [pool["id"]]
    assert [it["id"] for it in neutron.list("lb-member-list", "--sort-key", "address", "--sort-dir", "asc")] == [member["id"]]
    assert [it["id"] for it in neutron.list("lb-healthmonitor-list")] == [monitor["id"]]
    assert neutron.show("lb-healthmonitor-show", monitor["id"])["expected_codes"] == "200-204"
    assert str(neutron.show("lb-member-show", member["id"])["weight"]) == "5"
    assert neutron.list("lb-vip-list", "--name", "nobody", "--fields", "id") == []
    assert [it["name"] for it in neutron.list("lb-vip-list", "--address", "127.87.0.77", "-P", "1")] == ["door"]


def _stats_count_it(neutron: Neutron) -> None:
    def counted() -> bool:
        stats = neutron.show("lb-pool-stats", "web")
        assert set(stats) == {"bytes_in", "bytes_out", "active_connections", "total_connections"}
        return int(stats["total_connections"]) >= 10

    wait_for(counted, 30, "the requests to be counted")


def _agent_and_providers(neutron: Neutron, pool: dict[str, Any]) -> None:
    (agent,) = neutron.list("agent-list")
    assert (agent["host"], agent["agent_type"], agent["alive"]) == ("demo", "Loadbalancer agent", ":-)")
    assert neutron.show("agent-show", agent["id"])["host"] == "demo"
    neutron.run("agent-update", agent["id"], "--description", "in the corner", "--admin-state-down")
    changed = neutron.show("agent-show", agent["id"])
    assert (changed["description"], changed["admin_state_up"]) == ("in the corner", False)
    neutron.run("agent-update", agent["id"], "--admin-state-up", "True")
    assert [it["host"] for it in neutron.list("lb-agent-hosting-pool", "web")] == ["demo"]
    assert [it["id"] for it in neutron.list("lb-pool-list-on-agent", agent["id"])] == [pool["id"]]
    assert {it["name"]: it["default"] for it in neutron.list("service-provider-list")} == {"any": True, "fast": False}


def _quotas(neutron: Neutron) -> None:
    assert str(neutron.show("quota-show")["vip"]) == "10"
    changed = neutron.show(
        "quota-update", "--tenant-id", "tess", "--vip", "3", "--pool", "4", "--member", "5", "--health-monitor", "6"
    )
    assert {name: str(changed[name]) for name in ("vip", "pool", "member", "health_monitor")} == {
        "vip": "3",
        "pool": "4",
        "member": "5",
        "health_monitor": "6",
    }
    assert str(neutron.show("quota-show", "--tenant-id", "tess")["vip"]) == "3"
    assert "tess" in neutron.run("quota-list")
    assert str(neutron.show("quota-default-show", "--tenant-id", "tess")["vip"]) == "10"
    neutron.run("quota-delete", "--tenant-id", "tess")
    assert "tess" not in neutron.run("quota-list")


def _updates(neutron: Neutron) -> None:
    """Every attribute that may be changed is, and shows."""
    # HAProxy, which can all of it.
    _pool(neutron, "one", "HTTP", "--provider", "fast")
    _pool(neutron, "two", "HTTP", "--provider", "fast")
    _vip(neutron, "one", "door")
    second = neutron.show("lb-pool-show", "two")["id"]
    cookie = ("--session-persistence", "type=dict", "type=APP_COOKIE,cookie_name=JSESSIONID")
    for words, name, shown in (
        (("--description", "new"), "description", "new"),
        (("--connection-limit", "77"), "connection_limit", "77"),
        (cookie, "session_persistence", "JSESSIONID"),
        (("--session-persistence", "type=dict", "type=HTTP_COOKIE"), "session_persistence", "HTTP_COOKIE"),
        (("--session-persistence", "type=dict", "type=SOURCE_IP"), "session_persistence", "SOURCE_IP"),
        (("--session-persistence", "action=clear"), "session_persistence", ""),
        (("--admin-state-up", "False"), "admin_state_up", "False"),
        (("--admin-state-up", "True"), "admin_state_up", "True"),
        (("--pool-id", second), "pool_id", second),
        (("--name", "gate"), "name", "gate"),
    ):
        neutron.run("lb-vip-update", "door", *words)
        found = str(neutron.show("lb-vip-show", "gate" if name == "name" else "door")[name])
        assert (shown in found) if shown else found in ("", "None"), (words, found)
    _wait_active(neutron, "gate")
    _update_each(neutron, "pool", "one", (("lb-method", "LEAST_CONNECTIONS"), ("description", "d"), ("admin-state-up", "False")))
    neutron.run("lb-pool-update", "one", "--name", "uno")
    member = neutron.show("lb-member-create", "--address", "127.0.0.1", "--protocol-port", "81", "uno")
    _update_each(neutron, "member", member["id"], (("weight", "7"), ("admin-state-up", "False"), ("pool-id", second)))
    monitor = neutron.show("lb-healthmonitor-create", "--delay", "9", "--timeout", "3", "--max-retries", "2", "--type", "HTTP")
    changes = (("delay", "20"), ("timeout", "20"), ("max-retries", "5"), ("http-method", "HEAD"), ("url-path", "/alive"))
    _update_each(neutron, "healthmonitor", monitor["id"], (*changes, ("expected-codes", "200,204"), ("admin-state-up", "False")))
    _delete_vip(neutron, "gate")
    neutron.run("lb-healthmonitor-delete", monitor["id"])
    neutron.run("lb-pool-delete", "uno")
    neutron.run("lb-pool-delete", "two")


def _update_each(neutron: Neutron, noun: str, name: str, changes: tuple[tuple[str, str], ...]) -> None:
    for option, value in changes:
        neutron.run(f"lb-{noun}-update", name, f"--{option}", value)
        assert str(neutron.show(f"lb-{noun}-show", name)[option.replace("-", "_")]) == value, (noun, option)


def _agent_goes_and_comes_back(neutron: Neutron, demo: Demo) -> None:
    (agent,) = neutron.list("agent-list")
    assert "no other live agent can take" in neutron.refused("agent-delete", agent["id"])
    for device in demo.get("devices"):
        requests.delete(f"{demo.url}/v2.0/devices/{device['id']}", timeout=10).raise_for_status()
    neutron.run("agent-delete", agent["id"])
    assert [it["id"] for it in neutron.list("agent-list")] != [agent["id"]]


MONITOR = ("lb-healthmonitor-create", "--type", "TCP")
POOL = ("lb-pool-create", "--lb-method", "ROUND_ROBIN", "--name", "x", "--protocol", "HTTP", "--subnet-id", "front")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((*POOL, "--provider", "nobody"), "nobody"),
        ((*POOL, "--description", "x" * 256), "description"),
        ((*MONITOR, "--delay", "1", "--timeout", "5", "--max-retries", "2"), "delay"),
        ((*MONITOR, "--delay", "5", "--timeout", "5", "--max-retries", "11"), "max_retries"),
        ((*MONITOR, "--delay", "5", "--timeout", "5", "--max-retries", "2", "--expected-codes", "2xx"), "expected_codes"),
        (("quota-update", "--tenant-id", "tess", "--vip", "-7"), "vip"),
        (("lb-vip-list", "--sort-key", "colour", "--sort-dir", "asc"), "colour"),
    ],
)
def test_wrong_input_is_answered_with_the_servers_message(neutron: Neutron, words: tuple[str, ...], message: str) -> None:
    said = neutron.refused(*words)
    assert message in said
    # The client adds it to what came from the server, and to nothing else.
    assert "Neutron server returns request_ids" in said


def test_a_wrong_vip_or_member_is_answered_with_the_servers_message(neutron: Neutron) -> None:
    _pool(neutron, "hostile")
    port = str(free_port())
    vip = ("lb-vip-create", "--name", "x", "--protocol-port", port, "--subnet-id", "front", "hostile")
    assert "protocol" in neutron.refused(*vip, "--protocol", "TCP")
    assert "connection_limit" in neutron.refused(*vip, "--protocol", "HTTP", "--connection-limit", "-4")
    assert "127.87.0.0/24" in neutron.refused(*vip, "--protocol", "HTTP", "--address", "10.9.9.9")
    persistence = ("--session-persistence", "type=dict", "type=APP_COOKIE")
    assert "cookie_name" in neutron.refused(*vip, "--protocol", "HTTP", *persistence)
    assert "address" in neutron.refused("lb-member-create", "--address", "here", "--protocol-port", "80", "hostile")
    assert "weight" in neutron.refused(
        "lb-member-create", "--address", "127.0.0.1", "--protocol-port", "80", "--weight", "999", "hostile"
    )
    neutron.run("lb-pool-delete", "hostile")
