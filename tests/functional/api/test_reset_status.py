"""What is stuck, and set anew by an administrator."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from lbaas_scheduler.db import deployments
from lbaas_scheduler.db.models import deployments as rows
from tests.functional.api.house import ADMIN, House, error_of

UNKNOWN = "00000000-0000-4000-8000-000000000000"


def reset(house: House, vip: dict[str, Any], who: Any = ADMIN) -> Any:
    return house.post(f"/v2.0/lb/vips/{vip['id']}/reset-status", None, who)


def shown(house: House, kind: str, it: dict[str, Any]) -> tuple[str, str | None]:
    found = next(iter(house.get(f"/v2.0/lb/{kind}/{it['id']}").json.values()))
    return found["status"], found["status_description"]


def wear_out(house: House, vip: dict[str, Any]) -> None:
    """As after many tries, of which the last said something."""
    worn = {"attempts": 9, "error": "It said no.", "pending_since": None}
    house.database.write(lambda conn: conn.execute(sa.update(rows).where(rows.c.resource_id == vip["id"]).values(**worn)))


def test_what_failed_is_applied_anew_as_if_it_had_just_been_asked_for(any_house: House) -> None:
    house = any_house
    pool = house.pool()
    member, vip = house.member(pool), house.vip(pool)
    house.agents.error = "The device is full of bees."
    house.put(f"/v2.0/lb/members/{member['id']}", {"member": {"weight": 7}})
    assert shown(house, "vips", vip) == shown(house, "members", member) == ("ERROR", "The device is full of bees.")
    wear_out(house, vip)

    house.agents.idle = True
    answer = reset(house, vip)
    assert (answer.status_code, answer.json["vip"]["status"]) == (202, "PENDING_UPDATE")
    assert shown(house, "vips", vip) == shown(house, "members", member) == ("PENDING_UPDATE", None)
    row = house.database.read(lambda conn: deployments.get(conn, vip["id"]))
    assert row is not None
    assert (row.attempts, row.error, row.pending_since is not None, row.due_at is not None) == (0, "", True, True)
    assert house.agents.casts[-1] == ("create_vip", vip["id"])

    # It still does not answer: what is pending may be reset as well.
    house.agents.idle, house.agents.error = False, None
    assert reset(house, vip).status_code == 202
    assert shown(house, "vips", vip) == shown(house, "members", member) == ("ACTIVE", None)


def test_a_deletion_that_is_stuck_is_asked_for_again(any_house: House) -> None:
    house = any_house
    vip = house.vip()
    house.agents.idle = True
    house.delete(f"/v2.0/lb/vips/{vip['id']}")
    wear_out(house, vip)
    assert reset(house, vip).json["vip"]["status"] == "PENDING_DELETE"
    house.agents.idle = False
    answer = reset(house, vip)
    assert (answer.status_code, answer.json["vip"]["status"]) == (202, "PENDING_DELETE")
    assert house.get(f"/v2.0/lb/vips/{vip['id']}").status_code == 404


def test_one_member_that_its_device_refused_is_tried_again(shared_house: House) -> None:
    house = shared_house
    pool = house.pool()
    member, vip = house.member(pool), house.vip(pool)
    house.agents.object_errors = {member["id"]: "No route to it."}
    house.put(f"/v2.0/lb/vips/{vip['id']}", {"vip": {"name": "x"}})
    assert (shown(house, "vips", vip)[0], shown(house, "members", member)[0]) == ("ACTIVE", "ERROR")
    house.agents.object_errors = {}
    assert reset(house, vip).status_code == 202
    assert shown(house, "members", member) == ("ACTIVE", None)


def test_what_cannot_be_reset_is_refused_with_the_reason_and_stays_as_it_is(shared_house: House) -> None:
    house = shared_house
    vip = house.vip()
    before = house.database.read(lambda conn: deployments.get(conn, vip["id"]))
    refused = reset(house, vip)
    assert error_of(refused) == (409, "Conflict")
    assert "is ACTIVE" in refused.json["NeutronError"]["message"]
    assert house.database.read(lambda conn: deployments.get(conn, vip["id"])) == before
    assert error_of(reset(house, vip, None)) == (403, "NotAuthorized")
    assert error_of(reset(house, {"id": UNKNOWN})) == (404, "VipNotFound")
    house.agents.error = "no"
    house.put(f"/v2.0/lb/vips/{vip['id']}", {"vip": {"name": "x"}})
    house.database.write(lambda conn: deployments.delete(conn, vip["id"]))
    refused = reset(house, vip)
    assert error_of(refused) == (409, "Conflict")
    assert "delete it" in refused.json["NeutronError"]["message"]
    assert house.delete(f"/v2.0/lb/vips/{vip['id']}").status_code == 204
