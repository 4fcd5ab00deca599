"""Epochs only grow, and whoever knows a higher one than the database is told above it."""

from __future__ import annotations

from collections import Counter

import pytest
import sqlalchemy as sa

from lbaas_scheduler.db import deployments, epochs, renewals, unowed
from lbaas_scheduler.db.fleet_models import epochs as table
from lbaas_scheduler.db.models import deployments as deployment_table
from lbaas_scheduler.db.models import vips
from lbaas_scheduler.domain.clock import utcnow
from lbaas_scheduler.domain.deployments import Result, Version
from tests.functional.fleet.lab import ADMIN, TENANT, Lab


def seen(lab: Lab, vip_id: str) -> list[tuple[str, int]]:
    return [(name, row.version.epoch) for name, row in lab.rows(vip_id).items()]


def test_no_device_hears_an_epoch_twice_however_often_a_vip_comes_back(any_lab: Lab) -> None:
    lab = any_lab
    vip_id = lab.vip(on="a")
    used: Counter[tuple[str, int]] = Counter(seen(lab, vip_id))
    for target in ("b", "a", "b", "a"):
        known = set(seen(lab, vip_id))
        lab.move(vip_id, to=target)
        used.update(set(seen(lab, vip_id)) - known)
        known = set(seen(lab, vip_id))
        lab.agents.work()
        used.update(set(seen(lab, vip_id)) - known)
        lab.settle()
    assert set(used.values()) == {1}
    assert max(epoch for _, epoch in used) == 9
    assert lab.served(vip_id) == ["a"]


def test_a_move_that_failed_is_repeated_with_an_epoch_of_its_own(lab: Lab) -> None:
    vip_id = lab.vip(on="a")
    lab.agents.broken[lab.ids["b"]] = "no licence"
    lab.move(vip_id, to="b")
    first = lab.rows(vip_id)["b"].version
    lab.settle()
    lab.move(vip_id, to="b")
    assert lab.rows(vip_id)["b"].version.epoch > first.epoch + 1


def test_a_device_that_changes_hands_gives_each_of_its_vips_its_own_next_epoch(any_lab: Lab) -> None:
    lab = any_lab
    moved, stayed = lab.vip(on="a"), lab.vip(on="b")
    for target in ("b", "a", "b"):
        lab.move(moved, to=target)
        lab.settle()
    before = {vip_id: lab.rows(vip_id)["b"].version.epoch for vip_id in (moved, stayed)}
    lab.heartbeat("host-x")
    lab.registry.update(lab.ids["b"], {"agent_host": "host-x"})
    after = {vip_id: lab.rows(vip_id)["b"].version.epoch for vip_id in (moved, stayed)}
    assert all(after[vip_id] > before[vip_id] for vip_id in before)
    assert lab.database.write(lambda conn: epochs.take(conn, moved)) == after[moved] + 1


def test_all_epochs_can_be_raised_at_once(any_lab: Lab) -> None:
    """After a restore: agents may have heard of everything since the backup."""
    lab = any_lab
    moved, stayed = lab.vip(on="a"), lab.vip(on="a")
    lab.move(moved, to="b")
    lab.settle()
    before = {vip_id: lab.rows(vip_id) for vip_id in (moved, stayed)}
    assert lab.database.write(lambda conn: renewals.outrank_all(conn, 1000)) == 2
    assert lab.rows(stayed)["a"].version.epoch == before[stayed]["a"].version.epoch + 1000
    assert lab.rows(moved)["b"].version.epoch >= before[moved]["b"].version.epoch + 1000
    lab.make_due()
    lab.settle()
    assert [row.due_at for vip_id in (moved, stayed) for row in lab.rows(vip_id).values()] == [None, None]


def test_an_epoch_that_an_older_release_gave_to_a_deployment_alone_is_not_given_again(any_lab: Lab) -> None:
    lab = any_lab
    vip_id = lab.vip(on="a")
    lab.database.write(lambda conn: epochs.take(conn, vip_id))
    older = sa.update(deployment_table).values(epoch=17)
    lab.database.write(lambda conn: conn.execute(older))
    lab.database.write(lambda conn: renewals.rebind(conn, lab.ids["a"], utcnow()))
    assert lab.rows(vip_id)["a"].version.epoch == 18


def test_the_epochs_of_a_vip_that_is_gone_are_forgotten(lab: Lab) -> None:
    vip_id = lab.vip(on="a")
    lab.move(vip_id, to="b")
    lab.settle()
    lab.balancers.delete_vip(TENANT, vip_id)
    lab.settle()
    assert lab.database.read(lambda conn: conn.scalar(sa.select(sa.func.count()).select_from(table))) == 0


@pytest.mark.parametrize("removed", [False, True])
@pytest.mark.parametrize("error", [None, "the device is full"])
def test_an_agent_that_knows_more_than_the_database_is_told_above_it_at_once(
    any_lab: Lab, removed: bool, error: str | None
) -> None:
    lab = any_lab
    vip_id = lab.vip(on="a")
    lab.agents._report("host-a", lab.ids["a"], Result(vip_id, Version(7, 3), error, removed=removed))
    assert lab.rows(vip_id)["a"].version == Version(8, 1)
    lab.agents.work()
    row = lab.rows(vip_id)["a"]
    assert (row.due_at, row.applied_revision, lab.status(vip_id)) == (None, 1, "ACTIVE")


def test_an_epoch_that_cannot_be_is_ignored(lab: Lab, caplog: pytest.LogCaptureFixture) -> None:
    vip_id = lab.vip(on="a")
    before = lab.rows(vip_id)
    lab.agents._report("host-a", lab.ids["a"], Result(vip_id, Version(2**31 - 1, 1)))
    assert lab.rows(vip_id) == before
    assert "cannot be" in caplog.text


def test_a_reset_is_heard_by_an_agent_that_knows_a_newer_revision(lab: Lab) -> None:
    vip_id = lab.vip(on="a")
    lab.agents.broken[lab.ids["a"]] = "no licence"
    lab.balancers.update_vip(TENANT, vip_id, {"connection_limit": 7})
    lab.agents.work()
    assert lab.status(vip_id) == "ERROR"
    before = lab.rows(vip_id)["a"].version
    del lab.agents.broken[lab.ids["a"]]
    lab.balancers.reset_vip_status(ADMIN, vip_id)
    assert lab.rows(vip_id)["a"].version.epoch > before.epoch
    lab.agents.work()
    assert lab.status(vip_id) == "ACTIVE"


def test_what_failed_when_it_was_applied_anew_is_tried_again_later_and_later(any_lab: Lab) -> None:
    """A resync applies what was confirmed long ago: the row is settled, and no cast would ever come."""
    lab = any_lab
    vip_id = lab.vip(on="a")
    settled = lab.rows(vip_id)["a"]
    assert settled.due_at is None
    lab.agents._report("host-a", lab.ids["a"], Result(vip_id, settled.version, "the disk is full"))
    assert lab.status(vip_id) == "ERROR"
    row = lab.rows(vip_id)["a"]
    assert row.due_at is not None
    assert row.due_at > utcnow()
    lab.agents.broken[lab.ids["a"]] = "the disk is full"
    lab.option("cast_deadline_seconds", 10)
    waits = []
    for _ in range(4):
        lab.make_due()
        lab.settle(1)
        due = lab.rows(vip_id)["a"].due_at
        assert due is not None
        waits.append((due - utcnow()).total_seconds())
    assert lab.status(vip_id) == "ERROR"
    assert waits[-1] > waits[0]
    del lab.agents.broken[lab.ids["a"]]
    lab.make_due()
    lab.settle(1)
    assert (lab.status(vip_id), lab.rows(vip_id)["a"].due_at) == ("ACTIVE", None)


def test_a_failure_that_is_reported_twice_does_not_put_the_next_try_off(lab: Lab) -> None:
    vip_id = lab.vip(on="a")
    version = lab.rows(vip_id)["a"].version
    lab.agents._report("host-a", lab.ids["a"], Result(vip_id, version, "full"))
    due = lab.rows(vip_id)["a"].due_at
    lab.agents._report("host-a", lab.ids["a"], Result(vip_id, version, "full"))
    assert lab.rows(vip_id)["a"].due_at == due
    assert lab.database.read(lambda conn: deployments.overdue(conn, utcnow(), 9)) == []


def test_a_device_that_never_lets_go_hides_no_vip_that_waits_for_nobody(any_lab: Lab) -> None:
    lab = any_lab
    vip_id = lab.vip(on="a")
    lab.move(vip_id, to="b")
    lab.agents.silent.add(lab.ids["a"])
    lab.agents.work()
    assert lab.database.read(lambda conn: unowed.vip_ids(conn, 9)) == []
    stuck = sa.update(vips).values(status="PENDING_UPDATE")
    lab.database.write(lambda conn: conn.execute(stuck))
    assert lab.database.read(lambda conn: unowed.vip_ids(conn, 9)) == [vip_id]
