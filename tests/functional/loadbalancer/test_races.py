"""Several callers at once, on each database."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from lbaas_scheduler import errors
from lbaas_scheduler.db.models import deployments, members, placements, vips
from lbaas_scheduler.domain.deployments import Result
from tests.functional.loadbalancer.lab import Body, Lab, addresses


def at_once(*jobs: Callable[[], Any]) -> tuple[list[Any], list[errors.LBaaSError]]:
    """Run all jobs at the same time. Errors that are not ours fail the test.

    :returns: what came back, and which of our errors came out.
    """
    answers: list[Any] = []
    failures: list[errors.LBaaSError] = []
    bugs: list[BaseException] = []
    start = threading.Barrier(len(jobs))

    def run(job: Callable[[], Any]) -> None:
        start.wait()
        try:
            answers.append(job())
        except errors.LBaaSError as error:
            failures.append(error)
        except BaseException as error:
            bugs.append(error)

    threads = [threading.Thread(target=run, args=(job,)) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert not any(thread.is_alive() for thread in threads)
    if bugs:
        raise bugs[0]
    return answers, failures


def test_of_many_vips_for_one_pool_one_is_made(any_lab: Lab) -> None:
    lab = any_lab
    pool = lab.pool()
    made, refused = at_once(*[lambda: lab.vip(pool)] * 8)
    assert [each["id"] for each in made] == [lab.plugin.get_pool(lab.me, pool["id"])["vip_id"]]
    assert {type(error) for error in refused} == {errors.VipExists}
    counts = [lab.count(table) for table in (vips, addresses, placements, deployments)]
    assert (counts, lab.used()) == ([1, 1, 1, 1], 1)


def test_vips_made_and_removed_at_once_leave_nothing_behind(any_lab: Lab) -> None:
    lab = any_lab
    pools = [lab.pool() for _ in range(20)]

    def live(pool: Body) -> None:
        vip = lab.vip(pool)
        lab.plugin.update_vip(lab.me, vip["id"], {"connection_limit": 5})
        lab.confirm(vip["id"])
        lab.plugin.delete_vip(lab.me, vip["id"])
        lab.confirm(vip["id"], removed=True)

    _, refused = at_once(*[lambda pool=pool: live(pool) for pool in pools])
    assert refused == []
    counts = [lab.count(table) for table in (vips, addresses, placements, deployments)]
    assert (counts, lab.used("vips"), lab.used("connections")) == ([0, 0, 0, 0], 0, 0)


def test_of_the_same_member_many_times_one_is_made(any_lab: Lab) -> None:
    lab = any_lab
    pool = lab.pool()
    lab.vip(pool)
    made, refused = at_once(*[lambda: lab.member(pool)] * 8)
    assert len(made) == lab.count(members) == 1
    assert {type(error) for error in refused} == {errors.MemberExists}


def test_no_change_of_a_pool_is_missed_while_its_vip_is_made(any_lab: Lab) -> None:
    """Whatever came first: a member is part of the first document, or the revision says that there is a newer one."""
    lab = any_lab
    for pool in [lab.pool() for _ in range(3)]:
        jobs = [partial(lab.member, pool, f"10.1.0.{number}") for number in range(6)]
        _, refused = at_once(*jobs, partial(lab.vip, pool))
        assert refused == []
        vip_id = lab.plugin.get_pool(lab.me, pool["id"])["vip_id"]
        shown = lab.plugin.get_members(lab.me, filters={"pool_id": pool["id"]})
        waiting = [each for each in shown if each["status"] == "PENDING_CREATE"]
        assert {each["status"] for each in shown} <= {"PENDING_CREATE", "ACTIVE"}
        assert lab.version(vip_id).revision == 1 + len(waiting)
        assert len(lab.document(vip_id).pool.members) == 6
        lab.confirm(vip_id)
        assert {each["status"] for each in lab.plugin.get_members(lab.me, filters={"pool_id": pool["id"]})} == {"ACTIVE"}


def test_changes_and_reports_at_once_end_settled(any_lab: Lab) -> None:
    lab = any_lab
    pool = lab.pool()
    vip = lab.active_vip(pool)
    monitor = lab.monitor(pool)

    def churn(number: int) -> None:
        member = lab.member(pool, f"10.1.0.{number}")
        lab.plugin.update_health_monitor(lab.me, monitor["id"], {"delay": 10 + number})
        lab.plugin.update_member(lab.me, member["id"], {"weight": number})
        lab.confirm(vip["id"])
        lab.plugin.delete_member(lab.me, member["id"])

    _, refused = at_once(*[lambda number=number: churn(number) for number in range(8)])
    assert refused == []
    lab.confirm(vip["id"])
    assert lab.plugin.get_members(lab.me) == []
    row = lab.deployment(vip["id"])
    assert row is not None
    assert row.due_at is None
    shown = lab.plugin.get_pool(lab.me, pool["id"])
    assert [each["status"] for each in shown["health_monitors_status"]] == ["ACTIVE"]


def test_the_same_report_from_two_servers_at_once_counts_once(any_lab: Lab) -> None:
    lab = any_lab
    lab.vip()
    vip = lab.active_vip()
    lab.plugin.delete_vip(lab.me, vip["id"])
    result = Result(vip["id"], lab.version(vip["id"]), removed=True)
    gone, _ = at_once(*[lambda: lab.report(result)] * 4)
    assert sorted(gone) == [[], [], [], [vip["id"]]]
    assert lab.used() == 1


def test_members_moving_both_ways_between_two_pools_block_nobody(any_lab: Lab) -> None:
    lab = any_lab
    left, right = lab.pool(), lab.pool()
    lab.active_vip(left)
    lab.active_vip(right)
    moving = [(lab.member(left, f"10.1.0.{number}"), right) for number in range(4)]
    moving += [(lab.member(right, f"10.2.0.{number}"), left) for number in range(4)]
    jobs = [partial(lab.plugin.update_member, lab.me, member["id"], {"pool_id": to["id"]}) for member, to in moving]
    _, refused = at_once(*jobs)
    assert refused == []
    sizes = Counter(each["pool_id"] for each in lab.plugin.get_members(lab.me))
    assert sizes == {left["id"]: 4, right["id"]: 4}


@pytest.mark.parametrize("database_url", ["postgresql", "mariadb"], indirect=True)
def test_a_pool_and_its_first_vip_do_not_miss_each_other(any_lab: Lab) -> None:
    """Deleting a pool while a VIP is made for it: either there is a VIP with its pool, or there is neither."""
    lab = any_lab
    for pool in [lab.pool() for _ in range(5)]:
        _, refused = at_once(partial(lab.vip, pool), partial(lab.plugin.delete_pool, lab.me, pool["id"]))
        assert [type(error) for error in refused] in ([errors.PoolNotFound], [errors.PoolInUse])
        with_vip = type(refused[0]) is errors.PoolInUse
        assert len(lab.plugin.get_pools(lab.me, filters={"id": pool["id"]})) == with_vip
        assert len(lab.plugin.get_vips(lab.me, filters={"pool_id": pool["id"]})) == with_vip


def test_a_service_type_and_its_first_vips_do_not_miss_each_other(any_lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    lab = any_lab
    late = lab.add_service_type("late")
    place = lab.placer.place

    def after_its_end(*args: Any, **named: Any) -> Any:
        lab.service_types.delete(late)
        return place(*args, **named)

    with monkeypatch.context() as patch:
        patch.setattr(lab.placer, "place", after_its_end)
        with pytest.raises(errors.ServiceProviderNotFound):
            lab.vip(service_type_id=late)
    assert ([lab.count(table) for table in (vips, addresses, placements, deployments)], lab.used()) == ([0, 0, 0, 0], 0)
    for _ in range(3):
        gold = lab.add_service_type("gold")
        pools = [lab.pool() for _ in range(3)]
        at_once(*(partial(lab.vip, pool, service_type_id=gold) for pool in pools), partial(lab.service_types.delete, gold))
        made = [vip for vip in lab.plugin.get_vips(lab.me) if vip["service_type_id"] == gold]
        assert len(made) in (0, 3)
        assert [it.id for it in lab.service_types.list({"name": ["gold"]})] == ([gold] if made else [])
        for vip in made:
            lab.plugin.delete_vip(lab.me, vip["id"])
            lab.confirm(vip["id"], removed=True)
        if made:
            lab.service_types.delete(gold)


def test_a_service_type_does_not_go_while_a_pool_of_it_comes(any_lab: Lab) -> None:
    """Else the pool would name for ever what nobody can find."""
    lab = any_lab
    for _ in range(4):
        gold = lab.add_service_type("gold")
        made, refused = at_once(
            *[partial(lab.pool, provider="gold")] * 3, partial(lab.service_types.delete, gold), partial(lab.pool, provider="gold")
        )
        left = [it.id for it in lab.service_types.list({"name": ["gold"]})]
        pools = [it for it in made if it is not None]
        assert left == ([gold] if pools else [])
        assert {type(error) for error in refused} <= {errors.ServiceProviderNotFound, errors.ServiceTypeInUse}
        for pool in pools:
            assert pool["provider"] == "gold"
            lab.plugin.delete_pool(lab.me, pool["id"])
        if left:
            lab.service_types.delete(gold)


def test_a_pool_that_is_taken_down_says_so_whatever_else_of_it_changes_then(any_lab: Lab) -> None:
    lab = any_lab
    for _ in range(4):
        pool = lab.pool()
        changes: list[Body] = [{"admin_state_up": False}, {"name": "a"}, {"description": "b"}, {"lb_method": "SOURCE_IP"}]
        _, refused = at_once(*(partial(lab.plugin.update_pool, lab.me, pool["id"], each) for each in changes))
        assert refused == []
        shown = lab.plugin.get_pool(lab.me, pool["id"])
        assert (shown["admin_state_up"], shown["status"], shown["name"]) == (False, "DISABLED", "a")


def test_rules_that_are_written_at_once_come_one_after_the_other(any_lab: Lab) -> None:
    attributes = {"wishes": {"zone": "z"}}
    made, _ = at_once(*(partial(any_lab.rules.create, {"name": f"rule-{number}", **attributes}) for number in range(6)))
    assert sorted(rule["position"] for rule in made) == [1, 2, 3, 4, 5, 6]
