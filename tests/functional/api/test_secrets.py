"""What gives access to a device goes in, and comes out nowhere: in no answer, no error, no message, no row and no log."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import Any

import pytest
import sqlalchemy as sa

from lbaas_scheduler.db.models import metadata
from lbaas_scheduler.domain.deployments import Deployment
from tests.functional.api.house import ADMIN, House

DEVICES = "/v2.0/devices"
SECRETS = {"password": "hunter2-of-the-device", "api_token": "t0ken-of-the-device", "private_key": "-----BEGIN-of-the-device"}
MANAGEMENT = {"address": "192.0.2.1", "user": "root", **SECRETS}
WRONG: tuple[Any, ...] = (
    {"device_type": "cisco", "management": MANAGEMENT},
    {"device_type": "fake", "management": {"password": {"value": SECRETS["password"]}}},
    {"device_type": "fake", "management": {"password": [SECRETS["password"]], "user": 5}},
    {"device_type": "fake", "management": {"password": SECRETS["password"] * 2000}},
    {"device_type": "fake", "management": {"password": SECRETS["password"] + "\x00"}},
    {"device_type": "fake", "management": SECRETS["password"]},
    {"device_type": "fake", "management": MANAGEMENT, "port": SECRETS["password"]},
    {"device_type": "fake", "management": MANAGEMENT, "extra": {"hang": SECRETS["password"]}},
    {"device_type": "fake", "management": MANAGEMENT, "extra": {"password": SECRETS["password"]}},
    {"device_type": "fake", "management": MANAGEMENT, "extra": {"deep": [{"Api-Key": SECRETS["api_token"]}]}},
    SECRETS["password"],
    [SECRETS["password"]],
)


@pytest.fixture
def said(house: House, caplog: pytest.LogCaptureFixture) -> list[str]:
    """The text of every answer, from now on. Everything that can log does so."""
    caplog.set_level(logging.DEBUG)
    logging.getLogger("sqlalchemy").setLevel(logging.DEBUG)
    answers: list[str] = []
    call = house.call

    def listening(*args: Any, **kwargs: Any) -> Any:
        answer = call(*args, **kwargs)
        answers.append(answer.text)
        return answer

    house.call = listening  # type: ignore[method-assign]
    return answers


def test_a_devices_secrets_come_out_nowhere(house: House, said: list[str], caplog: pytest.LogCaptureFixture) -> None:
    sent = record_what_is_sent(house)
    house.delete(f"{DEVICES}/{house.device['id']}", ADMIN)
    device = house.create(DEVICES, "device", {"device_type": "fake", "management": MANAGEMENT}, ADMIN)
    assert device["management"] == {"address": "192.0.2.1", "port": None, "user": "root", "secret_set": True}
    path = f"{DEVICES}/{device['id']}"
    assert house.put(path, {"device": {"management": {**MANAGEMENT, "user": "admin"}}}, ADMIN).status_code == 200
    stale = house.put(path, {"device": {"management": MANAGEMENT, "generation": 0}}, ADMIN)
    assert stale.status_code == 409
    assert house.vip()["status"] == "PENDING_CREATE"
    for reading in (path, DEVICES, "/v2.0/agents", "/metrics", "/healthcheck", "/v2.0/extensions"):
        house.get(reading, ADMIN)
    assert sent, "the device's description did not travel"
    assert_kept([*said, *sent, caplog.text, rows(house)])


def test_an_error_about_a_device_repeats_no_secret(house: House, said: list[str], caplog: pytest.LogCaptureFixture) -> None:
    for body in WRONG:
        assert house.post(DEVICES, {"device": body}, ADMIN).status_code == 400, body
        if not isinstance(body, Mapping) or body["device_type"] == "fake":
            changes = {key: value for key, value in body.items() if key != "device_type"} if isinstance(body, Mapping) else body
            assert house.put(f"{DEVICES}/{house.device['id']}", {"device": changes}, ADMIN).status_code == 400, body
    for outside in (MANAGEMENT, {"devices": [MANAGEMENT]}, [MANAGEMENT], SECRETS["password"]):
        assert house.post(DEVICES, outside, ADMIN).status_code == 400, outside
    assert_kept([*said, caplog.text, rows(house)])


def record_what_is_sent(house: House) -> list[str]:
    sent: list[str] = []
    create = house.agents.create_vip

    def recording(host: str, device: Mapping[str, Any], deployment: Deployment) -> None:
        sent.append(json.dumps(dict(device)))
        create(host, device, deployment)

    house.agents.create_vip = recording  # type: ignore[method-assign]
    return sent


def rows(house: House) -> str:
    tables = metadata.sorted_tables
    return house.database.read(lambda conn: repr([list(conn.execute(sa.select(table))) for table in tables]))


def assert_kept(texts: list[str]) -> None:
    for text in texts:
        for name, value in SECRETS.items():
            found = text.find(value)
            assert found < 0, f"{name} came out: …{text[max(0, found - 200) : found]}"
