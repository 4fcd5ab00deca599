"""Tenants' own devices at the command line."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.command_line import Cli
from tests.functional.api.house import House
from tests.functional.api.serving import served

ANNE = ("--as-project", "anne")


@pytest.fixture
def house(sqlite_tables_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[House]:
    made = House(sqlite_tables_url, tmp_path)
    made.furnish()
    made.conf.set_override("tenant_device_types", ["fake"], "devices")
    made.conf.set_override("tenant_management_networks", ["192.0.2.0/24"], "devices")
    with served(made) as url:
        monkeypatch.setenv("LBAAS_ENDPOINT", url)
        yield made
    made.close()


def refused(cli: Cli, *words: str) -> str:
    """The last line: the server, which is in this process as well, may have said something before."""
    code, _, err = cli.call(*words)
    assert code == 1, words
    return err.splitlines()[-1]


def test_a_member_registers_uses_changes_and_removes_his_own_device(house: House, capsys: pytest.CaptureFixture[str]) -> None:
    cli = Cli(capsys)
    reached = ("--management", "address=192.0.2.7", "--management", "port=443", "--management", "password=x")
    made = cli.json(*ANNE, "device", "create", "own", "--device-type", "fake", *reached, "--capacity", "VIPS=2")
    assert (made["tenant_id"], made["shared"], made["agent"], made["agent_host"]) == ("anne", False, "alive", None)
    assert made["management"] == {"address": "192.0.2.7", "port": 443, "user": "", "secret_set": True}
    assert [it["name"] for it in cli.json(*ANNE, "device", "list")] == ["own"]
    pool = house.pool()
    vip = cli.json(*ANNE, "vip", "create", "door", "--pool", pool["id"], "--protocol-port", "80", "--wait")
    assert [it["id"] for it in cli.json(*ANNE, "device", "vips", "own")] == [vip["id"]]
    assert cli.json(*ANNE, "device", "show", "own")["usage"]["VIPS"] == {"used": 1, "limit": 2}
    assert cli.json(*ANNE, "device", "drain", "own")["admin_state"] == "draining"
    assert "still carries 1 placement(s)" in refused(cli, *ANNE, "device", "delete", "own")
    cli.run(*ANNE, "vip", "delete", "door", "--wait")
    cli.run(*ANNE, "device", "delete", "own")
    assert cli.json(*ANNE, "device", "list") == []


def test_what_a_member_may_not_do_with_devices_is_said_in_one_line(house: House, capsys: pytest.CaptureFixture[str]) -> None:
    cli = Cli(capsys)
    assert house.device["name"] == "box"
    create = (*ANNE, "device", "create", "own", "--device-type", "fake", "--management")
    for words, expected in (
        ((*create, "address=10.0.0.1"), "these are: 192.0.2.0/24"),
        ((*create, "address=box.example.org"), "names are not looked up"),
        ((*create, "address=192.0.2.7", "--share"), "only an administrator may set shared to true"),
        ((*ANNE, "device", "create", "own", "--device-type", "haproxy"), "types that they may: fake"),
        ((*ANNE, "device", "show", "box"), "No device is called 'box'"),
        ((*ANNE, "device", "drain", house.device["id"]), "No device is called"),
        ((*ANNE, "placement-rule", "list"), "Use the credentials of somebody who may"),
        ((*ANNE, "breaker", "show"), "Use the credentials of somebody who may"),
    ):
        assert expected in refused(cli, *words), words
