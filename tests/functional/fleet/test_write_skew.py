"""Two transactions that decide by what the other one changes: in both orders, on each database that has more than one writer."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import sqlalchemy as sa

from lbaas_scheduler.db.models import deployments, placements, vips
from lbaas_scheduler.domain.deployments import Result
from lbaas_scheduler.errors import Conflict, StateInvalid
from tests.functional.fleet.interleaving import interleave
from tests.functional.fleet.lab import TENANT, Lab

# One after the other: MariaDB shows anew who waits only when nobody has looked for 0.1 s, and all workers look at one server.
pytestmark = pytest.mark.xdist_group("who-waits")

Job = Callable[[], object]


@pytest.fixture(params=["postgresql_tables_url", "mariadb_tables_url"])
def lab(request: pytest.FixtureRequest) -> Iterator[Lab]:
    lab = Lab(request.getfixturevalue(request.param))
    lab.furnish("a", "b", "c")
    yield lab
    lab.close()


@pytest.fixture(params=[False, True], ids=["", "other-way-round"])
def both(request: pytest.FixtureRequest, lab: Lab) -> Callable[[Job, Job], None]:
    def run(one: Job, other: Job) -> None:
        interleave(lab.database, *((other, one) if request.param else (one, other)))

    return run


def report(lab: Lab, vip_id: str, name: str, **outcome: object) -> Job:
    version = lab.rows(vip_id)[name].version
    return lambda: lab.agents._report(f"host-{name}", lab.ids[name], Result(vip_id, version, **outcome))  # type: ignore[arg-type]


def left(lab: Lab) -> list[int]:
    counts = [sa.select(sa.func.count()).select_from(table) for table in (vips, placements, deployments)]
    return [lab.database.read(lambda conn, it=it: conn.scalar(it)) for it in counts]  # type: ignore[misc]


def test_of_two_devices_that_let_go_at_once_one_ends_the_vip(lab: Lab, both: Callable[[Job, Job], None]) -> None:
    vip_id = lab.vip(on="a")
    lab.move(vip_id, to="b")
    lab.balancers.delete_vip(TENANT, vip_id)
    both(report(lab, vip_id, "a", removed=True), report(lab, vip_id, "b", removed=True))
    assert (left(lab), lab.drift()) == ([0, 0, 0], [])


def test_a_deletion_reaches_the_device_that_a_move_has_just_chosen(lab: Lab, both: Callable[[Job, Job], None]) -> None:
    vip_id = lab.vip(on="a")

    def move() -> None:
        try:
            lab.move(vip_id, to="b")
        except StateInvalid:
            return  # it is being deleted

    both(move, lambda: lab.balancers.delete_vip(TENANT, vip_id))
    lab.settle()
    assert (left(lab), lab.drift(), lab.served(vip_id)) == ([0, 0, 0], [], [])


def test_a_change_reaches_the_device_that_a_move_has_just_chosen(lab: Lab, both: Callable[[Job, Job], None]) -> None:
    vip_id = lab.vip(on="a")
    both(lambda: lab.move(vip_id, to="b"), lambda: lab.balancers.update_vip(TENANT, vip_id, {"connection_limit": 7}))
    lab.settle()
    assert lab.status(vip_id) == "ACTIVE"
    assert lab.served(vip_id) == ["b"]
    assert lab.agents.served[lab.ids["b"]][vip_id].vip.connection_limit == 7


def test_a_change_that_waited_for_a_move_to_begin_makes_the_target_due_for_it(lab: Lab) -> None:
    """Whatever was cast to the target meanwhile."""
    vip_id = lab.vip(on="a")
    change = {"connection_limit": 7}
    interleave(lab.database, lambda: lab.move(vip_id, to="b"), lambda: lab.balancers.update_vip(TENANT, vip_id, change))
    assert lab.rows(vip_id)["b"].version.revision > 1


def test_a_vip_that_arrives_while_it_is_deleted_goes(lab: Lab, both: Callable[[Job, Job], None]) -> None:
    vip_id = lab.vip(on="a")
    lab.move(vip_id, to="b")
    both(report(lab, vip_id, "b"), lambda: lab.balancers.delete_vip(TENANT, vip_id))
    lab.settle()
    assert (left(lab), lab.drift(), lab.served(vip_id)) == ([0, 0, 0], [], [])


def test_a_move_that_is_undone_while_the_vip_is_deleted_leaves_nothing(lab: Lab, both: Callable[[Job, Job], None]) -> None:
    vip_id = lab.vip(on="a")
    lab.move(vip_id, to="b")
    lab.expire_moves()
    both(lab.mover.undo_late_moves, lambda: lab.balancers.delete_vip(TENANT, vip_id))
    lab.settle()
    assert (left(lab), lab.drift()) == ([0, 0, 0], [])


def test_a_device_that_lets_go_while_the_next_move_begins_gives_back_what_it_held(
    lab: Lab, both: Callable[[Job, Job], None]
) -> None:
    vip_id = lab.vip(on="a")
    lab.move(vip_id, to="b")
    report(lab, vip_id, "b")()

    def move() -> None:
        try:
            lab.move(vip_id, to="c")
        except Conflict:  # the move before was not over when it was looked at, and is now
            lab.move(vip_id, to="c")

    both(report(lab, vip_id, "a", removed=True), move)
    lab.settle()
    assert (lab.served(vip_id), lab.used(), lab.drift()) == (["c"], {"a": 0, "b": 0, "c": 1}, [])


def test_a_late_confirmation_of_an_older_removal_ends_nothing(lab: Lab) -> None:
    vip_id = lab.vip(on="a")
    lab.move(vip_id, to="b")
    report(lab, vip_id, "b")()
    late = report(lab, vip_id, "a", removed=True)
    lab.settle()
    lab.move(vip_id, to="a")
    lab.settle()
    lab.balancers.delete_vip(TENANT, vip_id)
    late()
    assert (lab.status(vip_id), lab.served(vip_id)) == ("PENDING_DELETE", ["a"])
    lab.agents.work()
    assert left(lab) == [0, 0, 0]
