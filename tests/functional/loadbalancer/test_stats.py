"""Counters and member health."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from lbaas_scheduler import errors
from lbaas_scheduler.domain.deployments import MemberHealth, VipStats
from lbaas_scheduler.plugins.loadbalancer.reports import counters
from tests.functional.loadbalancer.lab import Body, Lab, tenant

ZEROS = {"bytes_in": 0, "bytes_out": 0, "active_connections": 0, "total_connections": 0}


def _placed(lab: Lab) -> tuple[Body, Body]:
    pool = lab.pool()
    return pool, lab.active_vip(pool)


def test_a_pool_without_reports_has_zeros(lab: Lab) -> None:
    assert lab.plugin.stats(lab.me, lab.pool()["id"]) == {"stats": ZEROS}


def test_counters_are_kept_with_64_bits(any_lab: Lab) -> None:
    lab = any_lab
    pool, vip = _placed(lab)
    lab.report_stats({vip["id"]: VipStats(5_000_000_000, 2**63 - 1, 1, 2)})
    expected = {"bytes_in": 5_000_000_000, "bytes_out": 2**63 - 1, "active_connections": 1, "total_connections": 2}
    assert lab.plugin.stats(lab.me, pool["id"]) == {"stats": expected}
    lab.report_stats({vip["id"]: VipStats()})
    assert lab.plugin.stats(lab.me, pool["id"]) == {"stats": ZEROS}


@pytest.mark.parametrize("wrong", [-1, 2**63, "5", 1.5, True, None])
@pytest.mark.parametrize("name", list(ZEROS))
def test_impossible_counters_are_refused(name: str, wrong: Any) -> None:
    with pytest.raises(errors.InvalidRequest, match=name):
        counters(VipStats(**{name: wrong}))


def test_impossible_counters_of_one_vip_do_not_keep_the_others_out(lab: Lab, caplog: pytest.LogCaptureFixture) -> None:
    (bad_pool, bad), (good_pool, good) = _placed(lab), _placed(lab)
    lab.report_stats({bad["id"]: VipStats(bytes_in=-1), good["id"]: VipStats(bytes_in=7)})
    assert lab.plugin.stats(lab.me, bad_pool["id"])["stats"] == ZEROS
    assert lab.plugin.stats(lab.me, good_pool["id"])["stats"]["bytes_in"] == 7
    assert [bad["id"] in record.getMessage() for record in caplog.records if record.levelno == logging.WARNING] == [True]


def test_members_follow_their_health(lab: Lab) -> None:
    pool = lab.pool()
    member = lab.member(pool)
    lab.monitor(pool)
    vip = lab.active_vip(pool)

    def report(up: bool | None) -> str:
        lab.report_stats({vip["id"]: VipStats(members={member["id"]: MemberHealth(up)})})
        return str(lab.plugin.get_member(lab.me, member["id"])["status"])

    assert [report(up) for up in (None, False, False, None, True, None)] == [
        "ACTIVE",
        "INACTIVE",
        "INACTIVE",
        "INACTIVE",
        "ACTIVE",
        "ACTIVE",
    ]


def test_many_members_change_at_once(any_lab: Lab) -> None:
    lab = any_lab
    pool = lab.pool()
    ids = [lab.member(pool, f"10.1.0.{number}")["id"] for number in range(6)]
    vip = lab.active_vip(pool)
    for up in (False, True):
        lab.report_stats({vip["id"]: VipStats(members={member_id: MemberHealth(up) for member_id in ids[1:]})})
        states = {each["id"]: each["status"] for each in lab.plugin.get_members(lab.me)}
        assert states == {ids[0]: "ACTIVE"} | dict.fromkeys(ids[1:], "ACTIVE" if up else "INACTIVE")


@pytest.mark.parametrize("up", [True, False])
def test_health_moves_no_member_out_of_another_state(lab: Lab, up: bool) -> None:
    pool = lab.pool()
    disabled, leaving, failed = (lab.member(pool, f"10.1.0.{number}") for number in range(3))
    vip = lab.active_vip(pool)
    lab.plugin.update_member(lab.me, disabled["id"], {"admin_state_up": False})
    lab.confirm(vip["id"], object_errors={failed["id"]: "no route"})
    pending = lab.member(pool, "10.1.0.9")
    lab.plugin.delete_member(lab.me, leaving["id"])
    before = {each["id"]: each["status"] for each in lab.plugin.get_members(lab.me)}
    assert {before[each["id"]] for each in (disabled, leaving, failed, pending)} == {
        "DISABLED",
        "PENDING_DELETE",
        "ERROR",
        "PENDING_CREATE",
    }
    lab.report_stats({vip["id"]: VipStats(members={member_id: MemberHealth(up) for member_id in before})})
    assert {each["id"]: each["status"] for each in lab.plugin.get_members(lab.me)} == before


def test_a_member_that_is_enabled_again_follows_its_health_again(lab: Lab) -> None:
    pool = lab.pool()
    member = lab.member(pool)
    lab.monitor(pool)
    vip = lab.active_vip(pool)
    down = {vip["id"]: VipStats(members={member["id"]: MemberHealth(False)})}
    lab.report_stats(down)
    states = [lab.plugin.get_member(lab.me, member["id"])["status"]]
    for up in (False, True):
        lab.plugin.update_member(lab.me, member["id"], {"admin_state_up": up})
        lab.confirm(vip["id"])
        states.append(lab.plugin.get_member(lab.me, member["id"])["status"])
    lab.report_stats(down)
    states.append(lab.plugin.get_member(lab.me, member["id"])["status"])
    assert states == ["INACTIVE", "DISABLED", "ACTIVE", "INACTIVE"]


def test_what_is_gone_is_ignored(lab: Lab, caplog: pytest.LogCaptureFixture) -> None:
    pool, vip = _placed(lab)
    with caplog.at_level(logging.INFO):
        stats = VipStats(bytes_in=3, members={"gone": MemberHealth(False)})
        lab.report_stats({"gone": stats, vip["id"]: stats})
    assert lab.plugin.stats(lab.me, pool["id"])["stats"]["bytes_in"] == 3
    assert [record for record in caplog.records if record.name.startswith("lbaas_scheduler")] == []


def test_a_device_speaks_of_the_members_of_its_own_vips_only(lab: Lab) -> None:
    mine, other = lab.pool(), lab.pool()
    vip, _ = lab.active_vip(mine), lab.active_vip(other)
    member = lab.member(other)
    lab.database.write(lambda conn: lab.reports.apply_stats(conn, {}))
    lab.report_stats({vip["id"]: VipStats(members={member["id"]: MemberHealth(False)})})
    assert lab.plugin.get_member(lab.me, member["id"])["status"] == "PENDING_CREATE"
    lab.database.write(lambda conn: lab.reports.apply_stats(conn, {vip["id"]: VipStats(bytes_in=5)}, "another device"))
    assert lab.plugin.stats(lab.me, mine["id"])["stats"] == ZEROS


def test_statistics_are_the_owners(lab: Lab) -> None:
    pool = lab.pool()
    with pytest.raises(errors.PoolNotFound):
        lab.plugin.stats(tenant("stranger"), pool["id"])
