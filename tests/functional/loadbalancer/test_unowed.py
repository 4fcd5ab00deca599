"""What is in PENDING while nobody owes an answer is found and finished, whatever brought it there, and the log says so."""

from __future__ import annotations

from typing import Any

import pytest
import sqlalchemy as sa

from lbaas_scheduler.db import unowed
from lbaas_scheduler.db.models import deployments, members, placements, pool_monitors, pools, vips
from lbaas_scheduler.plugins.loadbalancer.finishing import INTERVAL_SECONDS, NOWHERE, Finishing
from tests.functional.loadbalancer.lab import Lab, addresses


def break_rows(lab: Lab, *statements: sa.Executable) -> None:
    """What no code of ours should ever leave behind."""
    lab.database.write(lambda conn: [conn.execute(statement) for statement in statements])


def finish(lab: Lab) -> None:
    Finishing(lab.database, lab.connector, lab.caster).finish_what_nobody_answers_for()


def left(lab: Lab) -> list[list[str]]:
    return [lab.database.read(lambda conn, find=find: find(conn, 9)) for find in (unowed.vip_ids, unowed.pool_ids)]


def status(lab: Lab, vip: dict[str, Any]) -> tuple[str, str | None]:
    shown = lab.plugin.get_vip(lab.me, vip["id"])
    return shown["status"], shown["status_description"]


def test_nothing_is_found_while_all_is_well(any_lab: Lab, caplog: pytest.LogCaptureFixture) -> None:
    lab = any_lab
    pool = lab.pool()
    member = lab.member(pool)
    lab.monitor(pool)
    assert left(lab) == [[], []]
    vip = lab.vip(pool)
    assert left(lab) == [[], []]
    lab.confirm(vip["id"], error="full")
    assert left(lab) == [[], []]
    lab.confirm(vip["id"])
    lab.plugin.delete_member(lab.me, member["id"])
    assert left(lab) == [[], []]
    lab.confirm(vip["id"])
    lab.plugin.delete_vip(lab.me, vip["id"])
    assert left(lab) == [[], []]
    finish(lab)
    assert "waited" not in caplog.text


def test_a_deletion_that_no_device_has_to_confirm_is_finished(any_lab: Lab, caplog: pytest.LogCaptureFixture) -> None:
    lab = any_lab
    vip = lab.active_vip()
    lab.plugin.delete_vip(lab.me, vip["id"])
    break_rows(lab, sa.delete(deployments))
    finish(lab)
    assert [lab.count(table) for table in (vips, placements, addresses)] == [0, 0, 0]
    assert lab.used() == 0
    assert [record.levelname for record in caplog.records if vip["id"] in record.getMessage()] == ["ERROR"]


def test_a_deletion_that_no_device_was_asked_for_is_asked_for(any_lab: Lab) -> None:
    lab = any_lab
    vip = lab.active_vip()
    break_rows(lab, sa.update(vips).values(status="PENDING_DELETE"))
    lab.caster.casts.clear()
    finish(lab)
    assert lab.caster.casts == [[vip["id"]]]
    assert lab.confirm(vip["id"], removed=True) == [vip["id"]]


@pytest.mark.parametrize("found", ["PENDING_CREATE", "PENDING_UPDATE", "ERROR"])
def test_a_vip_whose_device_owes_nothing_is_applied_anew(any_lab: Lab, found: str) -> None:
    lab = any_lab
    vip = lab.active_vip()
    break_rows(lab, sa.update(vips).values(status=found))
    before = lab.version(vip["id"])
    lab.caster.casts.clear()
    finish(lab)
    assert lab.caster.casts == [[vip["id"]]]
    assert lab.version(vip["id"]).epoch > before.epoch
    assert left(lab) == [[], []]
    lab.confirm(vip["id"])
    assert status(lab, vip) == ("ACTIVE", None)


@pytest.mark.parametrize("table", [pools, members, pool_monitors], ids=lambda table: table.name)
def test_what_waits_below_a_vip_that_owes_nothing_is_applied_anew(any_lab: Lab, table: sa.Table) -> None:
    lab = any_lab
    pool = lab.pool()
    lab.member(pool)
    lab.monitor(pool)
    vip = lab.active_vip(pool)
    break_rows(lab, sa.update(table).values(status="PENDING_UPDATE"))
    finish(lab)
    lab.confirm(vip["id"])
    assert lab.database.read(lambda conn: conn.scalars(sa.select(table.c.status)).all()) == ["ACTIVE"]


def test_a_vip_that_is_not_deployed_where_it_has_its_place_is_deployed_there(any_lab: Lab) -> None:
    lab = any_lab
    vip = lab.vip()
    break_rows(lab, sa.delete(deployments))
    finish(lab)
    lab.confirm(vip["id"])
    assert (status(lab, vip), left(lab)) == (("ACTIVE", None), [[], []])


def test_a_vip_without_a_place_is_an_error_that_is_told_once(lab: Lab, caplog: pytest.LogCaptureFixture) -> None:
    vip = lab.vip()
    break_rows(lab, sa.delete(deployments), sa.delete(placements))
    for _ in range(2):
        finish(lab)
    assert status(lab, vip) == ("ERROR", NOWHERE)
    assert caplog.text.count("on no device") == 1


def test_a_pool_without_a_vip_waits_for_no_device(any_lab: Lab) -> None:
    lab = any_lab
    pool = lab.pool()
    lab.member(pool)
    break_rows(lab, sa.update(pools).values(status="PENDING_UPDATE"), sa.update(members).values(status="PENDING_CREATE"))
    finish(lab)
    assert lab.plugin.get_pool(lab.me, pool["id"])["status"] == "ACTIVE"
    assert [it["status"] for it in lab.plugin.get_members(lab.me)] == ["ACTIVE"]


def test_one_that_cannot_be_finished_keeps_no_other_waiting(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    made = sorted((lab.active_vip() for _ in range(2)), key=lambda vip: str(vip["id"]))
    break_rows(lab, sa.delete(deployments), sa.update(vips).values(status="PENDING_DELETE"))
    release = lab.connector.release

    def refuse(conn: Any, vip_id: str) -> None:
        if vip_id == made[0]["id"]:
            raise ValueError("no")
        release(conn, vip_id)

    monkeypatch.setattr(lab.connector, "release", refuse)
    finish(lab)
    assert [it["id"] for it in lab.plugin.get_vips(lab.me)] == [made[0]["id"]]
    assert "cannot be finished" in caplog.text


def test_it_is_looked_for_from_time_to_time_only(lab: Lab) -> None:
    seconds = [0.0]
    finishing = Finishing(lab.database, lab.connector, lab.caster, lambda: seconds[0])
    finishing.finish_what_nobody_answers_for()
    lab.active_vip()
    break_rows(lab, sa.delete(deployments), sa.update(vips).values(status="PENDING_DELETE"))
    seconds[0] += INTERVAL_SECONDS - 1
    finishing.finish_what_nobody_answers_for()
    assert lab.count(vips) == 1
    seconds[0] += 1
    finishing.finish_what_nobody_answers_for()
    assert lab.count(vips) == 0


def test_a_single_object_that_failed_is_tried_again_with_the_rest_of_its_vip(any_lab: Lab) -> None:
    lab = any_lab
    pool = lab.pool()
    member = lab.member(pool)
    vip = lab.active_vip(pool)
    lab.confirm(vip["id"], object_errors={member["id"]: "no route"})
    row = lab.deployment(vip["id"])
    assert row is not None
    assert (row.due_at is not None, row.pending_since, row.applied_revision) == (True, None, row.version.revision)
    lab.confirm(vip["id"])
    row = lab.deployment(vip["id"])
    assert row is not None
    assert row.due_at is None
    assert lab.plugin.get_member(lab.me, member["id"])["status"] == "ACTIVE"
