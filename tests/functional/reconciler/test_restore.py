"""The database came from a backup: what it lacks serves on, until an operator has decided; what it has is applied anew."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import pytest
from oslo_config import cfg

from lbaas_scheduler.cmd import manage
from lbaas_scheduler.db import deployments, restores
from lbaas_scheduler.db.session import Database
from lbaas_scheduler.domain import clock
from lbaas_scheduler.domain.deployments import Version
from lbaas_scheduler.errors import KeptForRestore
from lbaas_scheduler.plugins.callbacks import AgentCallbacks
from tests.database import open_database
from tests.functional.reconciler.test_callbacks import callbacks, device_id, reports
from tests.functional.registry.fleet import Fleet

__all__ = ["callbacks", "device_id", "reports"]


def begin(database: Database) -> int:
    return database.write(restores.begin)


def answer(callbacks: AgentCallbacks, device_id: str, ids: Collection[str]) -> list[str]:
    """Ids of the VIPs that an agent is told to have there, when it asks for these before it removes what is not among them."""
    endpoint = callbacks.get_deployments.__wrapped__  # type: ignore[attr-defined]
    return [it["vip"]["id"] for it in endpoint(callbacks, None, "host-1", device_id, list(ids))]


def test_vips_made_since_the_backup_are_kept_and_listed_until_somebody_decides(
    fleet: Fleet, callbacks: AgentCallbacks, device_id: str
) -> None:
    assert answer(callbacks, device_id, ["vip-1", "new-1"]) == ["vip-1"], "unknown ones go without a restore"
    begin(fleet.database)

    for asked in (["vip-1", "new-1", "new-2"], ["new-1"], ["new-2"]):
        with pytest.raises(KeptForRestore, match="does not know VIP new-"):
            answer(callbacks, device_id, asked)
    assert answer(callbacks, device_id, ["vip-1"]) == ["vip-1"]
    found = fleet.database.read(restores.found)
    assert [(row.device_id, row.vip_id, row.host) for row in found] == [(device_id, id_, "host-1") for id_ in ("new-1", "new-2")]

    assert fleet.database.write(lambda conn: restores.remove(conn, ["new-1"])) == 1
    assert answer(callbacks, device_id, ["new-1"]) == [], "its agent removes it"
    with pytest.raises(KeptForRestore):
        answer(callbacks, device_id, ["new-2"])

    fleet.database.write(restores.end)
    assert answer(callbacks, device_id, ["new-2"]) == []
    assert fleet.database.read(restores.found) == []


@pytest.mark.usefixtures("device_id")
def test_a_vip_that_moved_since_the_backup_is_not_kept_on_both_devices(fleet: Fleet, callbacks: AgentCallbacks) -> None:
    other = fleet.enrol(name="other")
    begin(fleet.database)
    assert answer(callbacks, other, ["vip-1"]) == []


def test_a_device_made_since_the_backup_is_kept(fleet: Fleet, callbacks: AgentCallbacks, device_id: str) -> None:
    assert answer(callbacks, "device-2", []) == []
    begin(fleet.database)
    with pytest.raises(KeptForRestore, match="does not know anything of device device-2"):
        answer(callbacks, "device-2", [])
    assert answer(callbacks, device_id, []) == []

    fleet.database.write(lambda conn: restores.remove(conn, ["device-2"]))
    assert answer(callbacks, "device-2", []) == []


def test_all_that_is_known_is_due_at_once_above_every_epoch_since_the_backup(fleet: Fleet, device_id: str) -> None:
    def confirm(vip_id: str) -> None:
        row = fleet.database.read(lambda conn: deployments.get(conn, vip_id, device_id))
        assert row is not None
        fleet.database.write(lambda conn: deployments.settle(conn, vip_id, device_id, row.version))

    for vip_id in ("vip-1", "vip-3"):
        confirm(vip_id)
    assert begin(fleet.database) == 3
    rows = fleet.database.read(lambda conn: deployments.for_resources(conn, ["vip-1", "vip-2", "vip-3"]))
    assert all(row.version > Version(restores.EPOCHS, 0) and row.applied_revision == 0 for row in rows)
    assert all(row.due_at is not None and row.due_at <= clock.utcnow() for row in rows)
    assert [row.removing for row in rows] == [False, True, False]


def test_the_commands_tell_what_was_found_and_end_only_when_all_is_decided(
    sqlite_tables_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "scheduler.conf").write_text(f"[database]\nconnection = {sqlite_tables_url}\n")

    def run(*words: str) -> tuple[int, str]:
        code = manage.main(["--config-file", str(tmp_path / "scheduler.conf"), "restore", *words], cfg.ConfigOpts())
        return code, capsys.readouterr().out

    assert run("list") == (0, "No restore is under way.\n")
    assert run("begin")[0] == 0
    database = open_database(sqlite_tables_url)
    database.write(lambda conn: restores.note(conn, "host-1", "device-1", ["vip-1", ""]))

    code, out = run("list")
    assert code == 0
    assert "VIP vip-1 on device device-1, host host-1, found " in out
    assert "a device that the database does not know on device device-1" in out
    assert run("end")[0] == 1
    assert run("remove")[0] == 2
    assert run("remove", "vip-2")[0] == 1
    assert run("remove", "device-1") == (0, "2 go when their agents next compare their devices.\n")
    assert run("end")[0] == 0
    assert run("list") == (0, "No restore is under way.\n")
    database.dispose()
