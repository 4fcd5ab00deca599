"""What monitoring reads: health and metrics."""

from __future__ import annotations

import json
import re
import threading
import time
from typing import Any

import pytest
import sqlalchemy as sa
from oslo_messaging import MessageDeliveryFailure

from lbaas_scheduler.api.health import Health
from lbaas_scheduler.db.models import agents
from lbaas_scheduler.domain.clock import DATABASE_CLOCK, utcnow
from lbaas_scheduler.errors import Unavailable
from tests.database import open_database
from tests.factories import add_agent
from tests.functional.api.house import ADMIN, House
from tests.rig.waiting import wait_for

NOBODY: dict[str, str] = {"X-Roles": ""}


def metrics(house: House) -> dict[str, float]:
    """Name with labels → value."""
    answer = house.get("/metrics", NOBODY)
    assert answer.status_code == 200
    assert answer.headers["Content-Type"].startswith("text/plain")
    return {name: float(value) for name, value in re.findall(r"^(lbaas_\S+) (\S+)$", answer.text, re.MULTILINE)}


def test_a_healthy_server_says_so_to_everybody(house: House) -> None:
    answer = house.get("/healthcheck", NOBODY)
    assert answer.status_code == 200
    agents = {"alive": 1, "dead": 0, "disabled": 0}
    assert answer.json == {"status": "ok", "checks": {"database": "ok", "bus": "ok", "clock": "ok", "agents": agents}}


def test_a_server_whose_bus_is_away_is_not_healthy(house: House) -> None:
    def ping(_seconds: float) -> None:
        raise MessageDeliveryFailure("the broker of 10.0.0.9 is away")

    health = Health(house.database, ping, house.plant.assignments.heard_since)
    answer = health.check()
    assert (answer["status"], answer["checks"]["bus"], answer["checks"]["database"]) == ("failed", "failed", "ok")
    assert "10.0.0.9" not in str(answer)


def test_a_server_whose_database_is_away_is_not_healthy(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(_work: Any) -> Any:
        raise Unavailable(dependency="The database", reason="gone")

    monkeypatch.setattr(house.database, "try_write", away)
    monkeypatch.setattr(house.database, "glance", away)
    answer = house.get("/healthcheck", NOBODY)
    assert answer.status_code == 503
    checks = {"database": "failed", "bus": "ok", "clock": "ok", "agents": "unknown"}
    assert answer.json == {"status": "failed", "checks": checks}
    assert house.get("/healthcheck/live", NOBODY).json == {"status": "ok"}, "to restart it would help nobody"
    assert metrics(house)["lbaas_scheduler_database_up"] == 0


def test_a_server_whose_clock_is_wrong_is_not_healthy(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DATABASE_CLOCK, "ahead_seconds", 600.0)
    answer = house.get("/healthcheck", NOBODY)
    assert (answer.status_code, answer.json["checks"]["clock"]) == (503, "failed")


@pytest.mark.parametrize("hanging", ["database", "bus", "both"])
def test_what_hangs_has_failed_within_two_seconds_and_is_asked_once(
    house: House, monkeypatch: pytest.MonkeyPatch, hanging: str
) -> None:
    back, asked = threading.Event(), []

    def hang(*_: Any) -> None:
        asked.append(1)
        back.wait(30)

    if hanging != "bus":
        monkeypatch.setattr(house.database, "try_write", hang)
    ping = hang if hanging != "database" else lambda _seconds: None
    monkeypatch.setattr("lbaas_scheduler.api.health.FRESH_SECONDS", 0.0)
    health = Health(house.database, ping, house.plant.assignments.heard_since)
    try:
        for _ in range(2):
            began = time.monotonic()
            answer = health.check()
            assert time.monotonic() - began < 2
            failed = {name for name, outcome in answer["checks"].items() if outcome == "failed"}
            assert failed == ({"database", "bus"} if hanging == "both" else {hanging})
        assert len(asked) == (2 if hanging == "both" else 1)
    finally:
        back.set()
    wait_for(lambda: health.check()["checks"]["bus"] == "ok", 10, "the bus to be well again")


@pytest.mark.parametrize("database_url", ["postgresql", "mariadb"], indirect=True)
def test_a_server_whose_database_takes_no_writes_is_not_ready(database_url: str) -> None:
    database = open_database(database_url)
    health = Health(database, lambda _seconds: None, utcnow)
    assert health.check()["status"] == "ok"
    read_only = "SET default_transaction_read_only = on" if "postgresql" in database_url else "SET SESSION tx_read_only = 1"

    def demote(connection: Any, _record: Any) -> None:
        with connection.cursor() as cursor:
            cursor.execute(read_only)
        connection.commit()

    database.dispose()
    sa.event.listen(database.engine, "connect", demote)
    health = Health(database, lambda _seconds: None, utcnow)
    answer = health.check()
    assert (answer["status"], answer["checks"]["database"]) == ("failed", "failed")
    database.dispose()


def test_an_answer_holds_for_a_moment(house: House) -> None:
    asked = []
    health = Health(house.database, asked.append, house.plant.assignments.heard_since)
    for _ in range(5):
        health.check()
    assert len(asked) == 1


def test_placements_are_counted_by_outcome_and_reason(house: House) -> None:
    house.vip()
    house.put(f"/v2.0/devices/{house.device['id']}", {"device": {"admin_state": "draining"}}, ADMIN)
    house.post("/v2.0/lb/vips", {"vip": house.vip_body(house.pool())})
    found = metrics(house)
    assert found['lbaas_scheduler_placements_total{outcome="placed",reason="",role="current"}'] == 1
    refused = {name: value for name, value in found.items() if 'placements_total{outcome="refused"' in name}
    assert list(refused.values()) == [1]
    assert found['lbaas_scheduler_placement_seconds_count{outcome="placed",role="current"}'] == 1


def test_a_move_is_counted_apart(house: House) -> None:
    vip = house.vip()
    house.create("/v2.0/devices", "device", {"name": "spare", "device_type": "fake"}, ADMIN)
    assert house.post(f"/v2.0/lb/vips/{vip['id']}/move", {"move": {}}, ADMIN).status_code == 202
    found = metrics(house)
    placed = 'lbaas_scheduler_placements_total{{outcome="placed",reason="",role="{}"}}'
    assert (found[placed.format("current")], found[placed.format("target")]) == (1, 1)


def test_casts_are_counted_and_what_waits_is_counted_by_age(house: House) -> None:
    house.vip()
    house.agents.away = True
    house.vip()
    found = metrics(house)
    assert found['lbaas_scheduler_casts_total{outcome="sent",verb="create_vip"}'] == 1
    assert found['lbaas_scheduler_casts_total{outcome="bus_away",verb="create_vip"}'] == 1
    assert found['lbaas_scheduler_unapplied_deployments{younger_than_seconds="60"}'] == 1
    assert found['lbaas_scheduler_unapplied_deployments{younger_than_seconds="+Inf"}'] == 1
    assert found['lbaas_scheduler_vips{status="ACTIVE"}'] == 1
    assert found['lbaas_scheduler_vips{status="PENDING_CREATE"}'] == 1


def test_devices_and_agents_are_counted_by_state(own_any_house: House) -> None:
    own_any_house.create("/v2.0/devices", "device", {"device_type": "fake", "admin_state": "disabled"}, ADMIN)
    found = metrics(own_any_house)
    assert found['lbaas_scheduler_devices{admin_state="enabled",status="ONLINE"}'] == 1
    assert found['lbaas_scheduler_devices{admin_state="disabled",status="ONLINE"}'] == 1
    assert found["lbaas_scheduler_devices_open"] == 1
    assert found['lbaas_scheduler_agents{state="alive"}'] == 1


@pytest.mark.parametrize(("said", "counted"), [(["3", "4"], 7), (["3", "null"], 3), (["3", '"many"'], 3), (["5", "-"], 5)])
def test_what_agents_repaired_is_summed_and_what_none_said_is_none(own_any_house: House, said: list[str], counted: int) -> None:
    for number, text in enumerate(said):
        configurations = {} if text == "-" else {"repaired_vips": json.loads(text)}
        add_agent(own_any_house.database, f"more-{number}")
        own_any_house.database.write(
            lambda conn, number=number, value=configurations: conn.execute(  # type: ignore[misc]
                sa.update(agents).where(agents.c.id == f"more-{number}").values(configurations=value)
            )
        )
    assert metrics(own_any_house)["lbaas_scheduler_repaired_vips"] == counted


def test_requests_are_timed_by_route_and_strangers_make_no_labels(house: House) -> None:
    house.get("/v2.0/lb/pools/11111111-2222-3333-4444-555555555555")
    house.get("/made/up/path")
    house.call("PATCH", "/v2.0/lb/pools")
    found = metrics(house)
    assert found['lbaas_scheduler_request_seconds_count{method="GET",route="/v2.0/lb/pools/{id}",status="404"}'] == 1
    assert not [name for name in found if "made/up" in name or "PATCH" in name]
