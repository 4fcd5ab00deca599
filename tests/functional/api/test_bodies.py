"""Bodies: what is read as one, and what is refused before it is looked at."""

from __future__ import annotations

import json
from typing import Any

import falcon.testing
import pytest

from lbaas_scheduler.api.operations import UUID_IN_PATH
from lbaas_scheduler.api.routes import ROUTES
from tests.functional.api.house import ADMIN, ANNE, House, error_of

POOLS = "/v2.0/lb/pools"


def send(house: House, data: bytes | str, content_type: str | None = "application/json", **headers: str) -> falcon.testing.Result:
    given = {**house.me, **headers, **({"Content-Type": content_type} if content_type else {})}
    return house.client.simulate_post(POOLS, headers=given, body=data)


def valid(house: House) -> str:
    return json.dumps({"pool": {"subnet_id": house.subnet["id"], "protocol": "HTTP", "lb_method": "ROUND_ROBIN"}})


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"null",
        b"[]",
        b'"pool"',
        b"{}",
        b'{"pools": [{}]}',
        b'{"vip": {}}',
        b'{"pool": null}',
        b'{"pool": []}',
        b'{"pool": {"name": NaN}}',
        b'{"pool": {"name": "\xff"}}',
        b'{"pool": {"name": "\\ud800"}}',
        b'{"pool": {}, "more": 1}',
        b"[" * 100_000,
        b'{"pool": {"weight": ' + b"9" * 5000 + b"}}",
    ],
    ids=lambda data: data[:24].decode("latin-1"),
)
def test_what_is_no_body_is_refused(house: House, data: bytes) -> None:
    answer = send(house, data)
    assert answer.status_code == 400, answer.text
    assert answer.json["NeutronError"]["type"] == "HTTPBadRequest"


def test_a_number_beyond_all_floats_is_refused_as_such(house: House) -> None:
    """Python reads it as an infinity, which is no JSON any more."""
    answer = send(house, b'{"pool": {"subnet_id": -1e400}}')
    assert (answer.status_code, "the number '-1e400' is too large" in answer.text) == (400, True)


def test_several_at_once_are_not_supported_of_most_nouns(house: House) -> None:
    answer = house.post("/v2.0/networks", {"networks": [{"name": "a"}]})
    assert answer.status_code == 400
    assert "bulk operation not supported" in answer.json["NeutronError"]["message"].lower()


@pytest.mark.parametrize(
    "content_type", ["application/json", "application/json; charset=utf-8", None, "application/x-www-form-urlencoded"]
)
def test_a_body_is_json_unless_it_says_otherwise(house: House, content_type: str | None) -> None:
    assert send(house, valid(house), content_type).status_code == 201


@pytest.mark.parametrize("content_type", ["application/xml", "multipart/form-data; boundary=x", "image/png"])
def test_a_body_that_says_that_it_is_something_else_is_refused(house: House, content_type: str) -> None:
    assert send(house, valid(house), content_type).status_code == 415


def test_a_body_that_is_too_large_is_refused(house: House) -> None:
    answer = send(house, json.dumps({"pool": {"name": "x" * house.conf.api.max_body_bytes}}))
    assert answer.status_code == 413
    assert answer.json["NeutronError"]["type"] == "HTTPContentTooLarge"


def test_old_clients_may_append_json_to_every_path(house: House) -> None:
    pool = house.pool()
    for path in (
        "/v2.0.json",
        "/v2.0/extensions.json",
        f"{POOLS}.json",
        f"{POOLS}/{pool['id']}.json",
        "/v2.0/subnets.json?name=x",
    ):
        assert house.get(path).status_code == 200, path
    assert house.put(f"{POOLS}/{pool['id']}.json", {"pool": {"name": "new"}}).json["pool"]["name"] == "new"
    assert house.get(f"{POOLS}.xml").status_code == 404


def test_a_slash_at_the_end_is_no_matter(house: House) -> None:
    assert house.get(f"{POOLS}/").json == {"pools": []}


@pytest.mark.parametrize(
    "id_", ["not-a-uuid", "x" * 300, "%00", "a%20b", "%F0%9F%98%80", "..%2f..%2fetc%2fpasswd", "'; DROP TABLE pools"]
)
@pytest.mark.parametrize(
    "path", ["lb/vips", "lb/pools", "lb/members", "lb/health_monitors", "devices", "agents", "service-types", "networks", "ports"]
)
def test_an_id_that_cannot_be_is_not_found(house: House, path: str, id_: str) -> None:
    answer = house.get(f"/v2.0/{path}/{id_}", ADMIN)
    assert answer.status_code == 404
    assert answer.json["NeutronError"]["message"]


UNKNOWN = "00000000-0000-4000-8000-000000000000"


def test_an_id_that_cannot_be_reads_as_one_that_is_not_there(house: House) -> None:
    for path, methods in ROUTES.items():
        one, _, several = path.partition("{id}")
        if "GET" not in methods or "{" in one + several or path == one or methods["GET"].ids is not UUID_IN_PATH:
            continue
        for who in (ADMIN, ANNE):
            right, answer = (house.get(f"{one}{id_}{several}", who) for id_ in (UNKNOWN, "no-uuid"))
            if right.status_code == 200:
                continue  # a list of what is on something, which is empty
            said = answer.json["NeutronError"]
            assert (answer.status_code, said["type"]) == error_of(right), path
            assert said["message"] == right.json["NeutronError"]["message"].replace(UNKNOWN, "no-uuid"), path


def test_every_answer_has_a_request_id_and_errors_are_json(house: House) -> None:
    answers: list[Any] = [house.get(POOLS), house.get("/nowhere"), house.call("PATCH", POOLS), house.get(f"{POOLS}/x")]
    assert [answer.status_code for answer in answers] == [200, 404, 405, 404]
    for answer in answers:
        assert answer.headers["X-OpenStack-Request-ID"].startswith("req-")
        assert answer.headers["Content-Type"].startswith("application/json")
    assert set(answers[2].headers["Allow"].split(", ")) == {"GET", "POST", "OPTIONS"}
    said = [answer.json["NeutronError"]["message"] for answer in answers[1:3]]
    assert said == [
        "There is nothing at '/nowhere'; /openapi.json says what there is.",
        "PATCH is not possible here; these are: GET, POST, OPTIONS.",
    ]
    assert len({answer.headers["X-OpenStack-Request-ID"] for answer in answers}) == len(answers)
