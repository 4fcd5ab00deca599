"""Pools of resources at the command line."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.command_line import Cli
from tests.functional.api.house import House
from tests.functional.api.serving import served


@pytest.fixture
def cli(
    sqlite_tables_url: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Cli]:
    """A server without any agent is enough for pools."""
    # It is in this process, and its log is not the command's.
    caplog.set_level(logging.ERROR, "lbaas_scheduler")
    house = House(sqlite_tables_url, tmp_path)
    with served(house) as url:
        monkeypatch.setenv("LBAAS_ENDPOINT", url)
        yield Cli(capsys)
    house.close()


def test_pools_and_values_from_their_definition_to_their_end(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    made = cli.json("resource", "define", "vlan", "rack-1", "ranges=100-199", "pick=lowest")
    assert (made["config"]["ranges"], made["state"]) == ("100-199", "active")
    first = cli.json("resource", "allocate", "vlan", "rack-1", "--owner", "network:blue")
    assert (first["value"], first["owner"]) == (100, {"type": "network", "id": "blue"})
    again = cli.json("resource", "allocate", "vlan", "rack-1", "--owner", "network:blue")
    assert (again["id"], again["created"]) == (first["id"], False)
    wanted = cli.json("resource", "allocate", "vlan", "rack-1", "--owner", "network:red", "--value", "150", "--slot", "b")
    held = cli.json("resource", "allocate", "vlan", "rack-1", "--owner", "network:red", "--hold", "60")
    assert (wanted["value"], held["status"]) == (150, "held")
    assert cli.json("resource", "commit", "vlan", "rack-1", held["id"], "--generation", "1")["status"] == "active"

    assert [it["name"] for it in cli.json("resource", "list")] == ["rack-1"]
    assert [it["value"] for it in cli.json("resource", "list", "vlan", "rack-1", "--long")] == [100, held["value"], 150]
    assert {it["value"] for it in cli.json("resource", "list", "--owner", "network:red")} == {150, held["value"]}
    usage = cli.json("resource", "usage", "vlan", "rack-1")
    assert (usage["total"], usage["used"], usage["free"]) == (100, 3, 97)

    assert cli.json("resource", "release", "vlan", "rack-1", first["id"], "--generation", "1") == {"released": 1}
    assert cli.json("resource", "release", "vlan", "rack-1", "--value", "150", "--owner", "network:red") == {"released": 1}
    assert cli.json("resource", "resize", "vlan", "rack-1", "ranges=100-300", "pick=lowest")["generation"] == 2
    assert cli.json("resource", "undefine", "vlan", "rack-1", "--drain") == {"removed": False}
    assert cli.json("resource", "show", "vlan", "rack-1")["state"] == "draining"
    assert cli.json("resource", "release", "--owner", "network:red") == {"released": 1}
    assert cli.json("resource", "reconcile")["undefined"] == ["vlan rack-1"]
    assert cli.json("resource", "reconcile", "--apply")["undefined"] == ["vlan rack-1"]
    assert cli.json("resource", "list", "vlan") == []
    ops = [it["op"] for it in cli.json("resource", "history", "vlan", "rack-1")]
    assert (ops[0], ops[-1], ops.count("release")) == ("undefine", "define", 3)
    assert [it["op"] for it in cli.json("resource", "history", "--owner", "network:blue")] == ["release", "allocate"]

    assert "/lbaas_scheduler/1/pool/<kind>/<scope>/<name>" in cli.run("resource", "keys", "-f", "value")
    assert cli.json("resource", "check") == []
    cli.run(
        "resource", "define", "subnet", "front", "--config", '{"cidr": "10.0.0.0/16", "alloc_len": 24}', "--scope", "tenant:anne"
    )
    assert cli.json("resource", "undefine", "subnet", "front", "--scope", "tenant:anne", "--force") == {"removed": True}

    for line, words in (
        ("resource define vlan x ranges=5--100", "'5--100' is no range"),
        ("resource define warp x", 'No resource found for description: "warp"'),
        ("resource define vlan x ranges=100", "ranges is 100; give text"),
        ("resource define vlan x range", "'range' is not of the form KEY=VALUE"),
        ("resource allocate vlan none --owner a:b", 'and id: "none"'),
        ("resource allocate vlan none --owner a", "is not of the form TYPE:ID"),
        ("resource release", "say what to release"),
        ("resource release vlan x --owner a:b", "by --owner alone"),
        ("resource history vlan", "give KIND and NAME"),
        ("resource usage vlan x --scope moon", "cluster, tenant:ID or host:NAME"),
    ):
        assert words in cli.refused(*line.split()), line
    monkeypatch.setenv("LBAAS_PROJECT", "anne")
    assert "does not let you do this" in cli.refused("resource", "define", "vlan", "x")
