"""Each check sees what it is there for: a state that is right first, and then the same with one thing wrong."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from lbaas_scheduler.db import fleet_models, models
from lbaas_scheduler.db.allocator_models import allocator_allocations
from lbaas_scheduler.domain.clock import utcnow
from lbaas_scheduler.vendors.fake.rack import FolderRack
from tests.allocator_side import new_allocator, open_store
from tests.functional.chaos import invariants
from tests.functional.chaos.ledger import GONE, MAYBE, Entry
from tests.functional.fleet.lab import TENANT, Lab


@pytest.fixture
def lab(sqlite_tables_url: str) -> Iterator[Lab]:
    lab = Lab(sqlite_tables_url)
    lab.furnish("a", "b", interfaces=[{"name": "eth1", "kind": "vlan"}])
    lab.vip("a")
    lab.vip("b")
    yield lab
    lab.close()


@pytest.fixture
def rack(lab: Lab, tmp_path: Path) -> Path:
    """The devices' contents in files, as the fake vendor keeps them."""
    shelf = FolderRack(tmp_path / "rack")
    for device_id, vips in lab.agents.served.items():
        shelf.change(device_id, lambda contents, vips=vips: contents.with_vips(list(vips.values())))  # type: ignore[misc]
    return tmp_path / "rack"


def _change(lab: Lab, statement: Any) -> None:
    assert lab.database.write(lambda conn: conn.execute(statement).rowcount) > 0


def _unsettled(lab: Lab) -> list[str]:
    return lab.database.read(invariants.unsettled)


def _placed_once(lab: Lab) -> list[str]:
    return lab.database.read(invariants.placed_once)


def _on_devices(lab: Lab, rack: Path) -> list[str]:
    return lab.database.read(lambda conn: invariants.devices_as_the_database(conn, rack))


def _held_once(lab: Lab) -> list[str]:
    with closing(open_store(lab.url)) as driver:
        allocator = new_allocator(driver)
        return lab.database.read(lambda conn: invariants.addresses_held_once(conn, allocator, driver))


def _wired_once(lab: Lab) -> list[str]:
    with closing(open_store(lab.url)) as driver:
        return lab.database.read(lambda conn: invariants.segments_held_once(conn, driver))


def _a_vip(lab: Lab) -> Any:
    return lab.database.read(lambda conn: conn.execute(models.vips.select().order_by(models.vips.c.id)).first())


STUCK = [
    models.vips.update().values(status="PENDING_DELETE"),
    models.pools.update().values(status="ERROR"),
    models.deployments.update().values(due_at=utcnow()),
    models.deployments.update().values(desired_revision=99),
    models.deployments.update().values(operation="remove"),
    models.devices.update().values(admin_state="draining"),
    models.device_load.update().values(schedulable=0),
]


@pytest.mark.parametrize("statement", STUCK, ids=str)
def test_what_is_stuck_is_seen(lab: Lab, statement: Any) -> None:
    assert _unsettled(lab) == []
    _change(lab, statement)
    if statement.table is models.devices:  # which the registry writes together with its load
        _change(lab, models.device_load.update().values(schedulable=0))
    assert len(_unsettled(lab)) >= 1


def test_a_move_and_an_evacuation_that_go_on_are_seen(lab: Lab) -> None:
    lab.move(_a_vip(lab).id)
    assert "the move of VIP" in " ".join(_unsettled(lab))
    values = {"device_id": lab.ids["a"], "total": 1, "started_at": utcnow(), "cancelled": False}
    _change(lab, fleet_models.evacuations.insert().values(values))
    assert "the evacuation of" in " ".join(_unsettled(lab))


def test_a_vip_that_is_placed_twice_or_nowhere_is_seen(lab: Lab) -> None:
    assert _placed_once(lab) == []
    vip_id = _a_vip(lab).id
    _change(lab, models.placements.update().where(models.placements.c.resource_id == vip_id).values(role="target"))
    assert [text for text in _placed_once(lab) if vip_id in text]
    _change(lab, models.placements.delete().where(models.placements.c.resource_id == vip_id))
    assert [text for text in _placed_once(lab) if vip_id in text]


def test_what_a_vip_that_is_gone_left_behind_is_seen(lab: Lab) -> None:
    vip_id = _a_vip(lab).id
    _change(lab, models.vips.delete().where(models.vips.c.id == vip_id))
    assert [text for text in _placed_once(lab) if f"VIP {vip_id} is gone" in text]
    assert [text for text in _held_once(lab) if f"vip {vip_id} should hold []" in text]


def test_a_device_with_too_much_too_little_or_something_else_is_seen(lab: Lab, rack: Path) -> None:
    assert _on_devices(lab, rack) == []
    shelf, (a, b) = FolderRack(rack), (lab.ids["a"], lab.ids["b"])
    (deployment,) = lab.agents.served[a].values()
    shelf.change(b, lambda contents: contents.with_vips([deployment]))
    assert _on_devices(lab, rack) == [f"VIP {deployment.vip.id} is on device {b}, where it should not be"]
    shelf.change(b, lambda contents: contents.without([deployment.vip.id]))
    shelf.change(a, lambda contents: contents.without([deployment.vip.id]))
    assert _on_devices(lab, rack) == [f"VIP {deployment.vip.id} is missing on device {a}"]
    shelf.change(a, lambda contents: contents.with_vips([deployment]))
    _change(lab, models.vips.update().where(models.vips.c.id == deployment.vip.id).values(connection_limit=7))
    assert _on_devices(lab, rack) == [f"VIP {deployment.vip.id} on device {a}: limit is -1, should be 7"]


def test_a_version_that_a_device_does_not_have_is_seen(lab: Lab, rack: Path) -> None:
    _change(lab, models.deployments.update().values(epoch=77))
    assert len([text for text in _on_devices(lab, rack) if "is at version" in text]) == 2


def test_another_vlan_on_a_device_than_the_one_that_was_given_is_seen(lab: Lab, rack: Path) -> None:
    assert _on_devices(lab, rack) == []
    _change(lab, models.device_networks.update().values(segment=77))
    assert len([text for text in _on_devices(lab, rack) if text.endswith("should use 77")]) == 2


def test_a_vip_without_its_pool_on_a_device_is_seen(lab: Lab, rack: Path) -> None:
    _change(lab, models.vips.update().values(pool_id="no-such-pool"))
    assert len([text for text in _on_devices(lab, rack) if "has no pool any more" in text]) == 2


def test_a_counter_that_drifted_is_seen(lab: Lab) -> None:
    assert invariants.counted(lab.database) == []
    _change(lab, models.device_load.update().values(vips_used=9))
    assert invariants.counted(lab.database) != []


def test_a_tenant_with_more_than_its_quota_is_seen(lab: Lab) -> None:
    assert lab.database.read(lambda conn: invariants.quotas(conn, {"vip": 2})) == []
    assert lab.database.read(lambda conn: invariants.quotas(conn, {"vip": 1})) == ["tenant has 2 vips of 1"]


def test_an_address_that_is_lost_or_somebody_elses_is_seen(lab: Lab) -> None:
    assert _held_once(lab) == []
    vip = _a_vip(lab)
    _change(lab, models.vips.update().where(models.vips.c.id == vip.id).values(address="10.0.9.9"))
    assert [text for text in _held_once(lab) if f"vip {vip.id} should hold [{0x0A000909}]" in text]
    _change(lab, models.vips.update().values(address=vip.address))
    assert f"address {vip.address} is given more than once" in _held_once(lab)
    _change(lab, allocator_allocations.delete().where(allocator_allocations.c.owner_id == vip.id))
    assert [text for text in _held_once(lab) if f"vip {vip.id}" in text and text.endswith("and holds []")]


def test_a_vlan_that_is_lost_leaked_or_given_twice_is_seen(lab: Lab) -> None:
    assert _wired_once(lab) == []
    networks, owners = models.device_networks, allocator_allocations.c.owner_id
    on_a = networks.c.device_id == lab.ids["a"]
    _change(lab, networks.update().where(on_a).values(segment=None))
    assert len(_wired_once(lab)) == 2  # it has none, and the allocator says otherwise
    _change(lab, networks.delete().where(on_a))
    assert [text for text in _wired_once(lab) if text.startswith(f"wiring {lab.ids['a']}/") and "should hold []" in text]
    _change(lab, allocator_allocations.delete().where(owners.startswith(f"{lab.ids['b']}/")))
    assert [text for text in _wired_once(lab) if text.startswith(f"wiring {lab.ids['b']}/") and text.endswith("holds []")]


def test_what_clients_were_told_is_compared_with_what_is_there(lab: Lab) -> None:
    vip = _a_vip(lab)

    def told(state: str = "there", id_: str = vip.id, **values: Any) -> list[str]:
        entry = Entry("vip", id_, {name: [value] for name, value in values.items()}, state)
        return lab.database.read(lambda conn: invariants.as_clients_were_told(conn, [entry]))

    assert told(name=vip.name) == told(MAYBE) == told(GONE, "no-such-vip") == told(MAYBE, "no-such-vip") == []
    assert told(id_="no-such-vip") == ["vip no-such-vip, whose creation was acknowledged, is lost"]
    assert told(GONE) == [f"vip {vip.id}, whose deletion was acknowledged, is ACTIVE"]
    assert told(connection_limit=5) == [f"vip {vip.id}: connection_limit is -1, while clients were told [5]"]


def test_a_change_without_an_answer_may_or_may_not_have_been_made() -> None:
    entry = Entry("vip", "v", {"limit": [1]})
    entry.changed({"limit": 2}, known=True)
    assert entry.values["limit"] == [2]
    entry.changed({"limit": 3}, known=False)
    entry.changed({"limit": 4}, known=True)  # the one before it may still be on its way
    assert entry.values["limit"] == [2, 3, 4]


def test_an_association_that_was_acknowledged_and_lost_is_seen(lab: Lab) -> None:
    pool_id = _a_vip(lab).pool_id
    body = {"type": "TCP", "delay": 5, "timeout": 3, "max_retries": 2}
    monitor_id = lab.balancers.create_health_monitor(TENANT, body)["id"]
    lab.balancers.create_pool_health_monitor(TENANT, monitor_id, pool_id)
    entry = Entry("pool", pool_id, {f"monitor {monitor_id}": [True]})
    assert lab.database.read(lambda conn: invariants.as_clients_were_told(conn, [entry])) == []
    _change(lab, sa.delete(models.pool_monitors))
    assert len(lab.database.read(lambda conn: invariants.as_clients_were_told(conn, [entry]))) == 1
