"""The rig itself: without trust in it, no functional test says anything."""

from __future__ import annotations

import fcntl
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import sqlalchemy

from tests.rig import programs
from tests.rig.daemon import Daemon
from tests.rig.ports import free_port
from tests.rig.run import Run
from tests.rig.waiting import wait_for


def _can_connect(port: int) -> bool:
    with socket.socket() as client:
        client.settimeout(2)
        return client.connect_ex(("127.0.0.1", port)) == 0


def _is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except (FileNotFoundError, ProcessLookupError):  # the latter: it went between the opening and the reading
        return False
    return state != "Z"


def test_each_test_gets_an_empty_database_that_it_can_write(empty_database_url):
    engine = sqlalchemy.create_engine(empty_database_url)
    with engine.begin() as connection:
        connection.execute(sqlalchemy.text("CREATE TABLE t (name VARCHAR(20))"))
        connection.execute(sqlalchemy.text("INSERT INTO t VALUES ('网络')"))
        assert connection.execute(sqlalchemy.text("SELECT name FROM t")).scalars().all() == ["网络"]
    engine.dispose()


def test_a_database_goes_even_when_a_transaction_was_left_open(postgresql_server, mariadb_server):
    for server in (postgresql_server, mariadb_server):
        url = server.create_database()
        engine = sqlalchemy.create_engine(url)
        connection = engine.connect()
        connection.execute(sqlalchemy.text("CREATE TABLE t (id INTEGER)"))
        server.drop_database(url)
        with pytest.raises(sqlalchemy.exc.OperationalError):
            sqlalchemy.create_engine(url).connect()
        connection.invalidate()


def test_the_broker_gives_each_test_a_virtual_host_of_its_own(rabbitmq_url, rabbitmq_server):
    assert rabbitmq_server.queues(rabbitmq_url) == []
    other = rabbitmq_server.create_vhost()
    assert other != rabbitmq_url
    rabbitmq_server.delete_vhost(other)


def test_an_own_broker_stops_and_comes_back_on_the_same_port_with_what_it_kept(own_rabbitmq):
    url = own_rabbitmq.create_vhost()
    vhost = url.rsplit("/", 1)[1]
    own_rabbitmq.call("PUT", f"/api/queues/{vhost}/kept", {"durable": True, "arguments": {"x-queue-type": "quorum"}})
    own_rabbitmq.stop()
    assert not _can_connect(own_rabbitmq.amqp_port)
    own_rabbitmq.start()
    assert [queue["name"] for queue in own_rabbitmq.queues(url)] == ["kept"]


@pytest.mark.parametrize("fixture", ["own_postgresql", "own_mariadb"])
def test_an_own_database_server_keeps_what_was_committed_over_a_crash(fixture, request):
    server = request.getfixturevalue(fixture)
    engine = sqlalchemy.create_engine(server.create_database(), poolclass=sqlalchemy.NullPool)
    with engine.begin() as connection:
        connection.execute(sqlalchemy.text("CREATE TABLE t (id INTEGER)"))
    server.kill()
    assert not _can_connect(server.ports[0])
    server.start()
    with engine.begin() as connection:
        assert connection.execute(sqlalchemy.text("SELECT count(*) FROM t")).scalar_one() == 0


def test_a_port_is_handed_out_once():
    ports = [free_port() for _ in range(20)]
    assert len(set(ports)) == 20
    code = "from tests.rig.ports import free_port; print([free_port() for _ in range(200)])"
    other = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert not set(ports) & set(eval(other.stdout))  # noqa: S307


def test_a_daemon_dies_with_the_run_that_started_it(tmp_path):
    """A whole run in a process of its own that is killed, with a daemon that has a child and ignores SIGTERM."""
    code = (
        "import sys, time; from pathlib import Path; from tests.rig.run import Run; from tests.rig.daemon import Daemon\n"
        "run = Run.begin()\n"
        "daemon = Daemon(run, 'd', ['sh', '-c', 'trap \"\" TERM; sleep 600 & sleep 600'], log=Path(sys.argv[1]))\n"
        "daemon.start(); print(run.folder, daemon.pid, flush=True); time.sleep(600)\n"
    )
    victim = subprocess.Popen([sys.executable, "-c", code, str(tmp_path / "log")], stdout=subprocess.PIPE, text=True)
    assert victim.stdout is not None
    folder, pid = victim.stdout.readline().split()
    assert _is_alive(int(pid))
    victim.kill()
    victim.communicate()
    wait_for(lambda: not _is_alive(int(pid)), 10, "the daemon's end")
    Run.begin().end()
    wait_for(lambda: not Path(folder).exists() or Run.begin().end(), 10, "the next run to clear the folder away")


def test_the_run_ends_its_daemons_and_removes_its_folder(tmp_path):
    run = Run.begin()
    daemon = Daemon(run, "sleeper", ["sleep", "600"], log=tmp_path / "log")
    daemon.start()
    assert _is_alive(daemon.pid)
    run.end()
    assert not _is_alive(daemon.pid)
    assert not run.folder.exists()
    assert daemon.wait(5) == 128 + signal.SIGKILL


def test_a_stopped_daemon_tells_how_it_ended_and_can_start_again(spawn):
    daemon = spawn("shell", ["sh", "-c", "echo ready; trap 'exit 7' TERM; while :; do sleep 0.05; done"])
    wait_for(lambda: "ready" in daemon.tail(), 10, "the daemon's first line")
    assert daemon.stop() == 7
    daemon.start()
    assert daemon.running
    daemon.kill()
    assert not daemon.running


def test_waiting_in_vain_says_for_what():
    with pytest.raises(AssertionError, match=r"waited 0\.1 s in vain for the moon; last: None"):
        wait_for(lambda: None, 0.1, "the moon")


def test_a_held_lock_of_the_run_is_not_inherited_by_its_children(rig):
    descriptor = os.open(rig.owner_lock, os.O_RDWR)
    with pytest.raises(BlockingIOError):
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(descriptor)


def test_a_program_that_no_package_of_the_install_script_brings_is_told(spawn):
    for command in (["no-such-program-of-ours"], "no-such-program-of-ours --version"):
        with pytest.raises(FileNotFoundError):
            subprocess.run(command, check=False)
        assert programs.take_unknown() == ["no-such-program-of-ours" if isinstance(command, list) else command]
    with pytest.raises(RuntimeError):
        spawn("odd", ["no-daemon-of-ours"])
    assert programs.take_unknown() == ["no-daemon-of-ours"]
    subprocess.run(["sh", "-c", "true"], check=True)
    subprocess.run([sys.executable, "-c", ""], check=True)
    assert programs.take_unknown() == []
