"""lbaas-scheduler-manage."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa
from cryptography.fernet import Fernet
from oslo_config import cfg

from lbaas_scheduler.cmd import manage
from lbaas_scheduler.db import devices, migration
from lbaas_scheduler.db.models import device_load, service_types
from lbaas_scheduler.db.session import Database
from lbaas_scheduler.devices.secrets import Vault
from lbaas_scheduler.domain.clock import utcnow
from tests import factories
from tests.database import open_database
from tests.rig.ports import free_port

[HEAD] = migration.heads()

Run = Callable[..., tuple[int, str, str]]
"""Words of the command line → exit code, standard output, standard error."""


@pytest.fixture
def config(tmp_path: Path) -> Callable[..., None]:
    def write(url: str, keys: str = "") -> None:
        (tmp_path / "scheduler.conf").write_text(f"[database]\nconnection = {url}\n[security]\nencryption_keys = {keys}\n")

    return write


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    def run(*words: str) -> tuple[int, str, str]:
        try:
            code = manage.main(["--config-file", str(tmp_path / "scheduler.conf"), *words], cfg.ConfigOpts())
        except SystemExit as exit_:
            code = int(exit_.code or 0)
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


@pytest.fixture
def database(sqlite_url: str) -> Iterator[Database]:
    """The same database, looked at from outside."""
    database = open_database(sqlite_url)
    yield database
    database.dispose()


def test_a_database_is_made_and_found_current(empty_database_url: str, config: Callable[..., None], run: Run) -> None:
    config(empty_database_url)
    assert run("db", "current")[:2] == (0, "nothing: it has no tables yet\n")
    assert run("db", "sync")[:2] == (0, f"The database is at {HEAD}.\n")
    assert run("db", "sync")[:2] == (0, f"The database is at {HEAD}.\n")
    assert run("db", "current")[:2] == (0, f"{HEAD}\n")
    code, out, _ = run("db", "check")
    assert (code, out) == (0, "The schema is as it should be, and all counters agree with the placements.\n")


def test_history_names_the_revisions(sqlite_url: str, config: Callable[..., None], run: Run) -> None:
    config(sqlite_url)
    code, out, _ = run("db", "history")
    lines = out.splitlines()
    assert (code, lines[-1]) == (0, "0001: Initial tables. After: nothing.")
    assert lines[0].startswith(f"{HEAD} (head): ")


def test_check_tells_and_repairs_drift(sqlite_url: str, database: Database, config: Callable[..., None], run: Run) -> None:
    config(sqlite_url)
    run("db", "sync")
    factories.add_devices(database, factories.new_device("lb-1"), agent=None)
    database.write(lambda conn: conn.execute(sa.update(device_load).values(vips_used=3)))

    code, out, _ = run("db", "check")
    assert code == 1
    assert "device lb-1: class VIPS is 3, should be 0" in out
    assert "Repeat with --repair" in out
    assert run("db", "check", "--repair")[0] == 0
    assert run("db", "check")[0] == 0


def test_check_tells_a_schema_that_differs(sqlite_url: str, database: Database, config: Callable[..., None], run: Run) -> None:
    config(sqlite_url)
    run("db", "sync")
    database.write(lambda conn: conn.exec_driver_sql("DROP TABLE pool_stats"))
    code, out, _ = run("db", "check", "--repair")
    assert code == 1
    assert "table pool_stats: is missing" in out


@pytest.mark.parametrize("command", [("db", "check"), ("keys", "rotate")])
def test_an_empty_database_is_told_what_to_run(
    command: tuple[str, ...], sqlite_url: str, config: Callable[..., None], run: Run
) -> None:
    config(sqlite_url)
    code, out, err = run(*command)
    assert (code, out) == (1, "")
    assert err == "lbaas-scheduler-manage: The database has no tables yet; run 'lbaas-scheduler-manage db sync'.\n"


@pytest.mark.parametrize("command", [("db", "sync"), ("db", "current"), ("db", "check"), ("keys", "rotate")])
def test_a_server_that_is_away_is_one_line(command: tuple[str, ...], config: Callable[..., None], run: Run) -> None:
    config(f"postgresql://user:pa55word@127.0.0.1:{free_port()}/name")
    code, out, err = run(*command)
    assert (code, out) == (1, "")
    assert err.startswith("lbaas-scheduler-manage: The database is unavailable for now: ")
    assert err.count("\n") == 1
    assert "pa55word" not in err


def test_an_upgrade_check_that_cannot_be_made_is_no_warning(config: Callable[..., None], run: Run) -> None:
    config(f"mysql://user@127.0.0.1:{free_port()}/name")
    assert run("upgrade", "check")[0] == 255


@pytest.mark.parametrize("url", ["oracle://host/name", "lbaas.sqlite"])
def test_a_wrong_url_is_one_line(url: str, config: Callable[..., None], run: Run) -> None:
    config(url)
    code, _, err = run("db", "sync")
    assert code == 1
    assert err.startswith("lbaas-scheduler-manage: The configuration is wrong: [database] connection")
    assert err.count("\n") == 1


def test_a_configuration_file_that_is_not_there_is_named(run: Run) -> None:
    code, _, err = run("db", "sync")
    assert code == 2
    assert "scheduler.conf" in err


def test_a_generated_key_is_a_key(run: Run) -> None:
    code, out, _ = run("keys", "generate")
    assert code == 0
    Fernet(out.strip())


def test_rotation_moves_all_secrets_to_the_first_key(
    sqlite_url: str, database: Database, config: Callable[..., None], run: Run
) -> None:
    old, new = (Fernet.generate_key().decode() for _ in range(2))
    config(sqlite_url, f"{new},{old}")
    run("db", "sync")
    factories.add_devices(database, factories.new_device("lb-1"), factories.new_device("lb-2"), agent=None)
    token = Vault([old]).seal({"password": "s3cret"})
    database.write(lambda conn: devices.set_secret(conn, "lb-1", "", token))

    assert run("keys", "rotate")[:2] == (0, "Secrets of 1 devices are encrypted with the first key.\n")
    sealed = database.read(devices.sealed_secrets)
    assert Vault([new]).open(sealed["lb-1"]) == {"password": "s3cret"}


def test_rotation_without_the_old_key_changes_nothing(
    sqlite_url: str, database: Database, config: Callable[..., None], run: Run
) -> None:
    old, new = (Fernet.generate_key().decode() for _ in range(2))
    config(sqlite_url, new)
    run("db", "sync")
    factories.add_devices(database, factories.new_device("lb-1"), agent=None)
    token = Vault([old]).seal({"password": "s3cret"})
    database.write(lambda conn: devices.set_secret(conn, "lb-1", "", token))

    code, _, err = run("keys", "rotate")
    assert code == 1
    assert "put that key back" in err
    assert database.read(devices.sealed_secrets) == {"lb-1": token}
    code, out, _ = run("upgrade", "check")
    assert code == 2
    assert "encrypted with a key that is not among" in " ".join(out.split())


def test_a_key_that_is_not_one_is_told_by_its_place(sqlite_url: str, config: Callable[..., None], run: Run) -> None:
    config(sqlite_url, "nonsense")
    run("db", "sync")
    code, _, err = run("keys", "rotate")
    assert code == 1
    assert "encryption_keys[0] is not a valid Fernet key" in err
    assert "nonsense" not in err


class TestUpgradeCheck:
    def test_fails_before_sync(self, sqlite_url: str, config: Callable[..., None], run: Run) -> None:
        config(sqlite_url)
        code, out, _ = run("upgrade", "check")
        assert code == 2
        assert "db sync" in out

    def test_warns_without_a_default_service_type(self, sqlite_url: str, config: Callable[..., None], run: Run) -> None:
        config(sqlite_url)
        run("db", "sync")
        code, out, _ = run("upgrade", "check")
        assert code == 1
        assert "There is none" in out

    @pytest.mark.parametrize(("enabled", "code"), [(True, 0), (False, 1)])
    def test_wants_the_default_enabled(
        self, enabled: bool, code: int, sqlite_url: str, database: Database, config: Callable[..., None], run: Run
    ) -> None:
        config(sqlite_url)
        run("db", "sync")
        values = {"id": "st", "name": "default", "default_slot": 1, "enabled": enabled, "created_at": utcnow()}
        database.write(lambda conn: conn.execute(sa.insert(service_types).values(**values)))
        assert run("upgrade", "check")[0] == code


def test_the_command_runs_as_a_process(sqlite_url: str, config: Callable[..., None], tmp_path: Path) -> None:
    config(sqlite_url)
    command = [
        sys.executable,
        "-m",
        "lbaas_scheduler.cmd.manage",
        "--config-file",
        str(tmp_path / "scheduler.conf"),
        "db",
        "sync",
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (0, f"The database is at {HEAD}.\n")
    assert "Traceback" not in done.stderr


def test_nobody_is_told_that_a_pipe_was_closed(sqlite_url: str, config: Callable[..., None], tmp_path: Path) -> None:
    config(sqlite_url)
    command = [sys.executable, "-m", "lbaas_scheduler.cmd.manage", "--config-file", str(tmp_path / "scheduler.conf")]
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run([*command, "db", "history"], stdout=write, stderr=subprocess.PIPE, text=True, timeout=60, check=False)
    os.close(write)
    assert (done.returncode, done.stderr) == (141, "")
