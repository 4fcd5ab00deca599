"""What operators and tenants type, and what they see."""

from __future__ import annotations

import csv
import io
import subprocess
from collections.abc import Iterator

import pytest
import requests
import yaml

from lbaas_scheduler.cmd.demo.backends import Backend
from tests.command_line import Cli
from tests.demo import Demo
from tests.rig.ports import free_port

pytestmark = [pytest.mark.xdist_group("cli"), pytest.mark.timeout(600)]


@pytest.fixture
def pool(cli: Cli, demo: Demo) -> Iterator[str]:
    """A pool's name. It goes with all that is below it."""
    # A test may have taken the way to the server out of the environment.
    here = ("--endpoint", demo.url)
    made = cli.json(*here, "pool", "create", "web", "--subnet", "front", "--protocol", "http", "--lb-method", "round_robin")
    yield "web"
    for vip in demo.get("lb/vips"):
        cli.run(*here, "vip", "delete", vip["id"], "--wait")
    cli.run(*here, "pool", "delete", made["id"])


def _vip(cli: Cli, pool: str, *words: str) -> dict:
    return cli.json("vip", "create", "door", "--pool", pool, "--protocol-port", str(free_port()), "--wait", *words)


def test_a_vip_lives_its_life_by_names(cli: Cli, demo: Demo, pool: str) -> None:
    backend = Backend("web", "127.0.0.1")
    backend.start()
    try:
        where = f"127.0.0.1:{backend.port}"
        member = cli.json("member", "create", pool, "--address", "127.0.0.1", "--protocol-port", str(backend.port))
        assert cli.json("member", "set", where, "--weight", "9")["id"] == member["id"]
        monitor = cli.json(
            "health-monitor", "create", "--pool", pool, "--type", "HTTP", "--delay", "2", "--timeout", "1", "--max-retries", "2"
        )
        assert [it["pool_id"] for it in monitor["pools"]] == [member["pool_id"]]
        vip = _vip(cli, pool, "--service-type", "fast")
        assert vip["status"] == "ACTIVE"
        assert requests.get(f"http://{vip['address']}:{vip['protocol_port']}", timeout=10).text == "web"

        placement = cli.json("vip", "placement", "door")
        assert placement["device_name"] == "haproxy-1"
        assert "least_loaded took haproxy-1" in placement["why"]
        assert [it["name"] for it in cli.json("device", "vips", "haproxy-1")] == ["door"]
        assert set(cli.json("pool", "stats", pool)) == {"bytes_in", "bytes_out", "active_connections", "total_connections"}

        changed = cli.json("vip", "set", "door", "--session-persistence", "type=SOURCE_IP", "--name", "gate", "--wait")
        assert (changed["status"], changed["session_persistence"]["type"]) == ("ACTIVE", "SOURCE_IP")
        assert cli.json("vip", "set", "gate", "--no-session-persistence", "--disable", "--wait")["status"] == "DISABLED"
        cli.run("health-monitor", "disassociate", monitor["id"], pool)
        cli.run("health-monitor", "associate", monitor["id"], pool)
        cli.run("health-monitor", "disassociate", monitor["id"], pool)
        cli.run("health-monitor", "delete", monitor["id"])
        cli.run("member", "delete", where)
        cli.run("vip", "delete", "gate", "--wait")
        assert demo.get("lb/vips") == []
    finally:
        backend.stop()


def test_devices_are_registered_changed_drained_and_removed(cli: Cli) -> None:
    words = ("--zone", "rack1", "--capacity", "VIPS=5", "--management", "address=10.0.0.9", "--management", "port=22")
    made = cli.json("device", "create", "spare", "--device-type", "haproxy", *words, "--interface", "name=eth1,max_vlans=10")
    assert (made["usage"]["VIPS"]["limit"], made["management"]["port"], made["interfaces"][0]["max_vlans"]) == (5, 22, 10)
    assert made["agent"] == "demo"
    assert [it["name"] for it in cli.json("device", "list", "--zone", "rack1")] == ["spare"]
    for verb, state in (("drain", "draining"), ("disable", "disabled"), ("enable", "enabled")):
        assert cli.json("device", verb, "spare")["admin_state"] == state
    assert cli.json("device", "set", "spare", "--description", "in the corner")["description"] == "in the corner"
    kept = cli.json("device", "set", "spare", "--management", "region=north", "--management", "port=", "--capacity", "CUSTOM_A=3")
    assert kept["management"] == {"address": "10.0.0.9", "port": None, "user": "", "region": "north", "secret_set": False}
    assert {name: it["limit"] for name, it in kept["usage"].items()} == {"VIPS": 5, "CUSTOM_A": 3}
    more = cli.json("device", "set", "spare", "--interface", "name=eth1,physical_network=r1", "--interface", "name=eth2")
    assert [(it["name"], it["max_vlans"], it["physical_network"]) for it in more["interfaces"]] == [
        ("eth1", 10, "r1"),
        ("eth2", -1, ""),
    ]
    less = cli.json("device", "set", "spare", "--no-interface", "eth1")
    assert [it["name"] for it in less["interfaces"]] == ["eth2"]
    assert "has no interface 'eth1'; it has: eth2" in cli.refused("device", "set", "spare", "--no-interface", "eth1")
    cli.run("device", "delete", "spare")
    assert cli.json("device", "list", "--zone", "rack1") == []


def test_networks_service_types_agents_and_quotas_have_their_commands(cli: Cli) -> None:
    cli.run("network", "create", "back", "--share")
    subnet = cli.json("subnet", "create", "back-v4", "--network", "back", "--cidr", "127.88.0.0/28", "--no-gateway")
    assert subnet["gateway_ip"] is None
    assert [it["name"] for it in cli.json("subnet", "list", "--network", "back")] == ["back-v4"]
    cli.run("subnet", "delete", "back-v4")
    cli.run("network", "delete", "back")

    made = cli.json("service-type", "create", "gold", "--definition", "service=LoadBalancer,driver=haproxy")
    assert made["service_definitions"] == [{"service": "LoadBalancer", "plugin": "LoadBalancer", "driver": "haproxy"}]
    assert cli.json("service-type", "set", "gold", "--disable")["enabled"] is False
    cli.run("service-type", "delete", "gold")

    assert cli.json("agent", "set", "demo", "--description", "here")["description"] == "here"
    assert cli.json("quota", "set", "tess", "--vip", "3")["vip"] == 3
    assert [it["tenant_id"] for it in cli.json("quota", "list")] == ["tess"]
    cli.run("quota", "delete", "tess")
    assert cli.json("quota", "show", "tess")["vip"] == 10


def test_the_same_comes_as_table_json_yaml_csv_and_values(cli: Cli) -> None:
    devices = cli.json("device", "list", "-c", "name", "-c", "usage")
    assert devices[0]["usage"]["VIPS"] == {"used": 0, "limit": 10}
    assert yaml.safe_load(cli.run("device", "list", "-f", "yaml", "-c", "name", "-c", "usage")) == devices
    rows = list(csv.DictReader(io.StringIO(cli.run("device", "list", "-f", "csv", "-c", "name"))))
    assert sorted(row["name"] for row in rows) == sorted(it["name"] for it in devices)
    assert set(cli.run("device", "list", "-f", "value", "-c", "name").split()) == {it["name"] for it in devices}
    assert "VIPS=0/10" in cli.run("device", "list")


def test_an_ambiguous_name_is_refused_with_the_ids(cli: Cli) -> None:
    needed = ("--subnet", "front", "--protocol", "TCP", "--lb-method", "SOURCE_IP")
    ids = [cli.json("pool", "create", "twin", *needed)["id"] for _ in range(2)]
    line = cli.refused("pool", "show", "twin")
    assert line.startswith("2 pools are called 'twin'")
    assert all(id_ in line for id_ in ids)
    assert cli.json("pool", "show", ids[1])["id"] == ids[1]
    cli.run("pool", "delete", *ids)


def test_what_goes_wrong_is_said_in_one_line_that_says_what_to_do(cli: Cli, pool: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for words, expected in (
        (("vip", "show", "nobody"), "No VIP is called 'nobody'; 'lbaas-scheduler vip list' shows"),
        (("vip", "create", "x"), "the following arguments are required: --pool, --protocol-port; see 'lbaas-scheduler help vip"),
        (("pool", "create", "x", "--subnet", "front", "--protocol", "FTP", "--lb-method", "SOURCE_IP"), "choose from"),
        (("vip", "create", "x", "--pool", pool, "--protocol-port", "many"), "'many' is no whole number"),
        (("vip", "create", "x", "--pool", pool, "--protocol-port", "99999"), "protocol_port"),
        (("device", "set", "haproxy-1"), "nothing to change; see 'lbaas-scheduler help device set'"),
        (("device", "create", "x", "--device-type", "toaster"), "toaster"),
        (("--as-project", "anne", "agent", "list"), "Use the credentials of somebody who may"),
    ):
        assert expected in cli.refused(*words), words
    monkeypatch.setenv("LBAAS_ENDPOINT", f"http://127.0.0.1:{free_port()}")
    assert "Is the server running?" in cli.refused("vip", "list")
    monkeypatch.delenv("LBAAS_ENDPOINT")
    assert "Where is the server?" in cli.refused("vip", "list")


def test_waiting_ends_with_the_cause_when_nothing_comes_of_it(cli: Cli, pool: str) -> None:
    cli.run("agent", "list")
    line = cli.refused(
        "vip", "create", "x", "--pool", pool, "--protocol-port", str(free_port()), "--wait", "--wait-timeout", "0.000001"
    )
    assert "Wait longer with --wait-timeout" in line


@pytest.mark.filterwarnings("ignore")  # openstacksdk's own, at its import
def test_credentials_come_from_clouds_yaml_and_from_the_environment(
    cli: Cli, demo: Demo, tmp_path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LBAAS_ENDPOINT")
    monkeypatch.setenv("OS_AUTH_TYPE", "none")
    monkeypatch.setenv("OS_ENDPOINT", demo.url)
    assert len(cli.json("device", "list")) == 2
    for name in ("OS_AUTH_TYPE", "OS_ENDPOINT"):
        monkeypatch.delenv(name)
    clouds = {"clouds": {"lab": {"auth_type": "none", "auth": {"endpoint": f"{demo.url}/v2.0/"}}}}
    (tmp_path / "clouds.yaml").write_text(yaml.safe_dump(clouds))
    monkeypatch.setenv("OS_CLIENT_CONFIG_FILE", str(tmp_path / "clouds.yaml"))
    assert len(cli.json("--os-cloud", "lab", "device", "list")) == 2
    assert "clouds.yaml" in cli.refused("--os-cloud", "nowhere", "device", "list")


def test_a_member_of_a_project_sees_his_own_only(cli: Cli, pool: str) -> None:
    assert [it["name"] for it in cli.json("pool", "list")] == [pool]
    assert cli.json("--as-project", "anne", "pool", "list") == []


def test_the_fleet_shows_every_device_with_its_fill_state_and_agent(cli: Cli, pool: str) -> None:
    _vip(cli, pool, "--service-type", "fast")
    text = cli.run("fleet")
    row = next(line for line in text.splitlines() if line.startswith("haproxy-1"))
    for expected in ("██", "1/10", "open", "demo"):
        assert expected in row
    assert "VIPs: 1 ACTIVE" in text


def test_bash_completes_nouns_verbs_and_options(cli: Cli) -> None:
    script = cli.run("complete")
    probe = "COMP_WORDS=(lbaas-scheduler device dr); COMP_CWORD=2; _lbaas_scheduler; echo ${COMPREPLY[@]}"
    shown = subprocess.run(["bash", "-c", f"{_HELPERS}\n{script}\n{probe}"], capture_output=True, text=True, check=False)
    assert shown.stdout.split() == ["drain"], shown.stderr


_HELPERS = """
_get_comp_words_by_ref() { cur=${COMP_WORDS[COMP_CWORD]}; prev=${COMP_WORDS[COMP_CWORD-1]}; words=("${COMP_WORDS[@]}"); }
"""
"""Of bash-completion, which is not everywhere."""


def test_operators_look_ahead_move_and_even_out(cli: Cli, pool: str) -> None:
    found = cli.json("simulate", "--protocol", "http", "--count", "3")
    assert (found["wanted"], found["placed"]) == (3, 3)
    assert sum(it["count"] for it in found["devices"]) == 3
    _vip(cli, pool, "--service-type", "any")
    source = cli.json("vip", "placement", "door")["device_name"]
    (target,) = (it["name"] for it in cli.json("device", "list") if it["name"] != source)
    moved = cli.json("vip", "move", "door", "--target", target)
    assert (moved["target_id"], moved["cause"]) == (cli.json("device", "show", target)["id"], "operator")
    assert "nowhere" in cli.refused("vip", "move", "door", "--target", "nowhere")

    cli.run("device", "create", "spare", "--device-type", "haproxy")
    assert cli.json("device", "evacuate", "spare")["left"] == 0
    assert cli.json("device", "show", "spare")["admin_state"] == "draining"
    assert "cannot be asked" in cli.refused("device", "check", "spare")
    assert "disable it first" in cli.refused("device", "write-off", "spare")
    cli.run("device", "disable", "spare")
    assert cli.json("device", "write-off", "--force", "spare")["settled"] == 0
    cli.run("device", "delete", "spare")

    plan = cli.json("rebalance", "--bound", "1")
    assert (plan["moves"], plan["queued"]) == ([], 0)
    assert cli.json("rebalance", "--apply", "--bound", "1")["queued"] == 0
    assert "queued" in cli.run("rebalance")
