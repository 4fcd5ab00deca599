from __future__ import annotations

from lbaas_scheduler.agent.changes import MAX_TOMBSTONES, Change, Ledger
from lbaas_scheduler.domain.deployments import Version
from lbaas_scheduler.rpc.server_api import Desired, Operation
from tests.agent_side import deployment


def apply(vip_id, epoch, revision):
    return Change.apply(deployment(vip_id, epoch, revision))


def remove(vip_id, epoch, revision):
    return Change.remove(vip_id, Version(epoch, revision))


def test_an_older_revision_is_stale_and_the_same_one_is_not():
    ledger = Ledger()
    assert ledger.record(apply("v", 1, 5), 1)
    assert not ledger.record(apply("v", 1, 4), 2)
    assert ledger.record(apply("v", 1, 5), 3)


def test_an_older_epoch_is_stale_whatever_its_revision():
    ledger = Ledger()
    assert ledger.record(apply("v", 2, 1), 1)
    assert not ledger.record(apply("v", 1, 99), 2)


def test_a_late_create_does_not_raise_a_removed_vip():
    ledger = Ledger()
    assert ledger.record(remove("v", 1, 3), 1)
    assert not ledger.record(apply("v", 1, 2), 2)
    assert not ledger.record(apply("v", 1, 3), 3)
    assert ledger.record(apply("v", 2, 1), 4)


def test_a_removal_at_the_version_of_an_apply_wins():
    ledger = Ledger()
    assert ledger.record(apply("v", 1, 3), 1)
    assert ledger.record(remove("v", 1, 3), 2)


def test_the_memory_of_removed_vips_is_bounded_and_keeps_the_newest():
    ledger = Ledger()
    for number in range(MAX_TOMBSTONES + 10):
        ledger.record(remove(f"v{number}", 1, 2), number)
    assert len(ledger) == MAX_TOMBSTONES
    assert ledger.record(apply("v0", 1, 1), 9_999)
    assert not ledger.record(apply(f"v{MAX_TOMBSTONES + 9}", 1, 1), 9_999)


def test_a_servers_list_is_the_truth_for_all_that_was_not_cast_since():
    ledger = Ledger()
    ledger.record(apply("older", 1, 9), 1)
    ledger.record(apply("gone", 1, 1), 2)
    ledger.record(apply("later", 1, 9), 4)
    desired = [Desired(vip, 1, 5, Operation.APPLY) for vip in ("older", "later")]
    ledger.adopt(desired, as_of=3)
    assert ledger.record(apply("older", 1, 5), 5)
    assert not ledger.record(apply("later", 1, 5), 6)
    assert len(ledger) == 2
