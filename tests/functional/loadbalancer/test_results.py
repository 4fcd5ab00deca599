"""What agents report, and what becomes of states."""

from __future__ import annotations

import logging

import pytest

from lbaas_scheduler import errors
from lbaas_scheduler.db.models import members, vips
from lbaas_scheduler.domain.deployments import Result, Version
from tests.functional.loadbalancer.lab import Body, Lab


def _statuses(lab: Lab, vip: Body, pool: Body) -> dict[str, str]:
    shown = lab.plugin.get_pool(lab.me, pool["id"])
    return {
        "vip": lab.plugin.get_vip(lab.me, vip["id"])["status"],
        "pool": shown["status"],
        **{each["address"]: each["status"] for each in lab.plugin.get_members(lab.me, filters={"pool_id": pool["id"]})},
        **{each["monitor_id"]: each["status"] for each in shown["health_monitors_status"]},
    }


def test_success_makes_everything_active_and_what_is_administratively_down_disabled(lab: Lab) -> None:
    pool = lab.pool()
    vip = lab.vip(pool)
    lab.member(pool)
    lab.member(pool, "10.1.0.2", admin_state_up=False)
    up, down = lab.monitor(pool), lab.monitor(pool, type="TCP", admin_state_up=False)
    lab.plugin.update_pool(lab.me, pool["id"], {"admin_state_up": False})
    before = _statuses(lab, vip, pool)
    assert set(before.values()) == {"PENDING_CREATE", "PENDING_UPDATE"}
    lab.confirm(vip["id"])
    expected = {"vip": "ACTIVE", "pool": "DISABLED", "10.1.0.1": "ACTIVE", "10.1.0.2": "DISABLED"}
    assert _statuses(lab, vip, pool) == {**expected, up["id"]: "ACTIVE", down["id"]: "DISABLED"}


def test_a_vip_that_is_administratively_down_is_disabled(lab: Lab) -> None:
    assert lab.active_vip(admin_state_up=False)["status"] == "DISABLED"


def test_a_failure_makes_the_vip_an_error_with_the_vendors_words_and_leaves_the_pool(lab: Lab) -> None:
    pool = lab.pool()
    lab.member(pool)
    vip = lab.vip(pool)
    lab.confirm(vip["id"], error="out of licences")
    shown = lab.plugin.get_vip(lab.me, vip["id"])
    assert (shown["status"], shown["status_description"]) == ("ERROR", "out of licences")
    assert _statuses(lab, vip, pool) == {"vip": "ERROR", "pool": "ACTIVE", "10.1.0.1": "ACTIVE"}


def test_a_later_success_repairs_and_clears_the_words(lab: Lab) -> None:
    vip = lab.vip()
    lab.confirm(vip["id"], error="out of licences")
    lab.confirm(vip["id"])
    shown = lab.plugin.get_vip(lab.me, vip["id"])
    assert (shown["status"], shown["status_description"]) == ("ACTIVE", None)


def test_single_objects_fail_while_the_vip_works(lab: Lab) -> None:
    pool = lab.pool()
    vip = lab.active_vip(pool)
    bad = lab.member(pool)
    lab.member(pool, "10.1.0.2")
    monitor = lab.monitor(pool)
    lab.confirm(vip["id"], object_errors={bad["id"]: "no route", monitor["id"]: "no such check"})
    expected = {"vip": "ACTIVE", "pool": "ACTIVE", "10.1.0.1": "ERROR", "10.1.0.2": "ACTIVE", monitor["id"]: "ERROR"}
    assert _statuses(lab, vip, pool) == expected
    assert lab.plugin.get_member(lab.me, bad["id"])["status_description"] == "no route"
    lab.plugin.update_member(lab.me, bad["id"], {"weight": 2})
    lab.confirm(vip["id"])
    assert set(_statuses(lab, vip, pool).values()) == {"ACTIVE"}
    assert lab.plugin.get_member(lab.me, bad["id"])["status_description"] is None


def test_a_failed_pool_is_marked(lab: Lab) -> None:
    pool = lab.pool()
    vip = lab.vip(pool)
    lab.confirm(vip["id"], object_errors={pool["id"]: "method refused"})
    assert _statuses(lab, vip, pool) == {"vip": "ACTIVE", "pool": "ERROR"}


def test_a_result_of_an_old_revision_changes_nothing(lab: Lab) -> None:
    pool = lab.pool()
    vip = lab.active_vip(pool)
    old = lab.version(vip["id"])
    member = lab.member(pool)
    lab.confirm(vip["id"], old)
    lab.confirm(vip["id"], old, error="too late")
    assert lab.plugin.get_member(lab.me, member["id"])["status"] == "PENDING_CREATE"
    assert lab.plugin.get_vip(lab.me, vip["id"])["status"] == "ACTIVE"


def test_a_result_of_an_old_epoch_changes_nothing(lab: Lab) -> None:
    vip = lab.vip()
    now = lab.version(vip["id"])
    lab.confirm(vip["id"], Version(now.epoch - 1, now.revision))
    assert lab.plugin.get_vip(lab.me, vip["id"])["status"] == "PENDING_CREATE"


def test_of_one_report_each_result_counts_by_itself(any_lab: Lab) -> None:
    lab = any_lab
    pools = [lab.pool() for _ in range(4)]
    current, changed, moved, failed = (lab.vip(pool)["id"] for pool in pools)
    results = [Result(id_, lab.version(id_)) for id_ in (current, changed)]
    results.append(Result(moved, Version(lab.version(moved).epoch - 1, 1)))
    results.append(Result(failed, lab.version(failed), error="out of licences"))
    lab.plugin.update_vip(lab.me, changed, {"name": "x"})
    lab.report(*results)
    shown = [lab.plugin.get_vip(lab.me, id_)["status"] for id_ in (current, changed, moved, failed)]
    assert shown == ["ACTIVE", "PENDING_UPDATE", "PENDING_CREATE", "ERROR"]
    applied = [row.applied_revision for id_ in (current, changed, moved) if (row := lab.deployment(id_)) is not None]
    assert applied == [1, 1, 0]


def test_quick_changes_end_in_the_last_one(lab: Lab) -> None:
    pool = lab.pool()
    member = lab.member(pool)
    vip = lab.active_vip(pool)
    versions = []
    for weight in range(1, 21):
        lab.plugin.update_member(lab.me, member["id"], {"weight": weight})
        versions.append(lab.version(vip["id"]))
    for version in versions:
        lab.confirm(vip["id"], version)
    shown = lab.plugin.get_member(lab.me, member["id"])
    assert (shown["status"], shown["weight"]) == ("ACTIVE", 20)


def test_the_same_report_twice_is_the_same_as_once(lab: Lab) -> None:
    pool = lab.pool()
    lab.member(pool)
    vip = lab.vip(pool)
    lab.confirm(vip["id"])
    once = _statuses(lab, vip, pool)
    lab.confirm(vip["id"])
    assert _statuses(lab, vip, pool) == once


def test_a_removal_reported_twice_gives_capacity_back_once(lab: Lab) -> None:
    lab.vip()
    vip = lab.active_vip()
    lab.plugin.delete_vip(lab.me, vip["id"])
    version = lab.version(vip["id"])
    assert lab.report(Result(vip["id"], version, removed=True)) == [vip["id"]]
    assert lab.report(Result(vip["id"], version, removed=True)) == []
    assert lab.used() == 1


def test_a_late_report_on_a_vip_that_is_gone_is_a_warning(lab: Lab, caplog: pytest.LogCaptureFixture) -> None:
    vip = lab.active_vip()
    lab.plugin.delete_vip(lab.me, vip["id"])
    version = lab.version(vip["id"])
    lab.confirm(vip["id"], removed=True)
    caplog.clear()
    with caplog.at_level(logging.WARNING):
        lab.report(Result(vip["id"], version), Result(vip["id"], version, error="x"))
    assert len([record for record in caplog.records if vip["id"] in record.getMessage()]) == 2


def test_a_vip_that_was_never_deployed_goes_through_the_agent_as_well(lab: Lab) -> None:
    vip = lab.vip()
    lab.plugin.delete_vip(lab.me, vip["id"])
    assert lab.caster.casts[-1] == [vip["id"]]
    lab.confirm(vip["id"], removed=True)
    assert lab.count(vips) == 0


def test_a_late_success_does_not_bring_a_vip_back_that_is_being_deleted(lab: Lab) -> None:
    vip = lab.vip()
    created = lab.version(vip["id"])
    lab.plugin.delete_vip(lab.me, vip["id"])
    lab.confirm(vip["id"], created)
    lab.confirm(vip["id"], created, error="late")
    shown = lab.plugin.get_vip(lab.me, vip["id"])
    assert (shown["status"], shown["status_description"]) == ("PENDING_DELETE", None)


def test_a_vip_that_an_agent_removed_by_mistake_is_deployed_again(lab: Lab) -> None:
    vip = lab.active_vip()
    before = lab.version(vip["id"])
    assert lab.confirm(vip["id"], before, removed=True) == []
    assert lab.version(vip["id"]) > before
    row = lab.deployment(vip["id"])
    assert row is not None
    assert row.due_at is not None
    assert lab.plugin.get_vip(lab.me, vip["id"])["status"] == "ACTIVE"


def test_what_a_vendor_says_is_cut_to_what_the_database_takes(lab: Lab) -> None:
    vip = lab.vip()
    lab.confirm(vip["id"], error="é\0" * 300)
    shown = lab.plugin.get_vip(lab.me, vip["id"])["status_description"]
    assert (len(shown), set(shown)) == (255, {"é", "…"})


def test_members_that_nothing_checks_any_more_are_not_down(lab: Lab) -> None:
    pool = lab.pool()
    member = lab.member(pool)
    monitor = lab.monitor(pool)
    vip = lab.active_vip(pool)
    lab.database.write(lambda conn: conn.execute(members.update().values(status="INACTIVE")))
    lab.plugin.update_pool(lab.me, pool["id"], {"name": "x"})
    lab.confirm(vip["id"])
    assert lab.plugin.get_member(lab.me, member["id"])["status"] == "INACTIVE"
    lab.plugin.delete_pool_health_monitor(lab.me, monitor["id"], pool["id"])
    lab.confirm(vip["id"])
    assert lab.plugin.get_member(lab.me, member["id"])["status"] == "ACTIVE"


def test_pending_and_inactive_members_are_part_of_the_document(lab: Lab) -> None:
    pool = lab.pool()
    inactive = lab.member(pool)
    vip = lab.active_vip(pool)
    lab.database.write(lambda conn: conn.execute(members.update().values(status="INACTIVE")))
    pending = lab.member(pool, "10.1.0.2")
    assert [each.id for each in lab.document(vip["id"]).pool.members] == [inactive["id"], pending["id"]]


def test_nothing_is_lost_when_a_vip_of_one_report_is_gone(lab: Lab) -> None:
    first, second = lab.vip(), lab.vip()
    lab.report(Result("gone", Version(1, 1)), Result(first["id"], Version(1, 1)), Result(second["id"], Version(1, 1)))
    assert {each["status"] for each in lab.plugin.get_vips(lab.me)} == {"ACTIVE"}


def test_a_vip_moved_away_while_its_pools_member_failed_leaves_the_pool_at_rest(lab: Lab) -> None:
    pool = lab.pool()
    member = lab.member(pool)
    vip = lab.vip(pool)
    lab.confirm(vip["id"], object_errors={member["id"]: "no route"})
    lab.plugin.delete_vip(lab.me, vip["id"])
    assert lab.plugin.get_member(lab.me, member["id"])["status"] == "ACTIVE"
    with pytest.raises(errors.MemberNotFound):
        lab.plugin.get_member(lab.me, "gone")
