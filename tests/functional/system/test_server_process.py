"""The server as a process: how it starts, reads its options again, and ends."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import oslo_messaging
import pytest
import requests
import sqlalchemy as sa
from oslo_messaging.opts import list_opts as messaging_opts

from lbaas_scheduler.db import migration, models
from lbaas_scheduler.db.session import Database
from lbaas_scheduler.domain import traits
from lbaas_scheduler.errors import LBaaSError
from lbaas_scheduler.rpc.lbaas_api import LoadBalancerClient
from lbaas_scheduler.rpc.transport import get_transport
from tests.agent_side import bus_conf
from tests.database import open_database
from tests.factories import add_agent, add_devices, new_device
from tests.functional.system.cluster import ADMIN
from tests.rig.daemon import Daemon
from tests.rig.ports import free_port
from tests.rig.rabbitmq import RabbitMQ
from tests.rig.waiting import wait_for

CONFIGURATION = """
[DEFAULT]
transport_url = {bus}
[database]
connection = {url}
[api]
auth_strategy = noauth
bind_port = {port}
[scheduler]
handler_timeout_seconds = 60
reconcile_interval_seconds = 7
[LoadBalancer]
device_handlers = {handlers}
{more}
"""
PATIENT = "tests.functional.system.patient_vendor.PatientHandler"


class Server:
    def __init__(self, folder: Path, url: str, handlers: str = "fake", more: str = "", bus: str = "fake://") -> None:
        self.port = free_port()
        self.file = folder / "scheduler.conf"
        self.file.write_text(CONFIGURATION.format(bus=bus, url=url, port=self.port, handlers=handlers, more=more))
        self.command = [sys.executable, "-m", "lbaas_scheduler.cmd.server", "--config-file", str(self.file)]

    def run(self, spawn: Callable[..., Daemon]) -> Daemon:
        daemon = spawn("server", self.command)
        wait_for(lambda: "runs" in daemon.tail() or daemon.must_run(), 60, "the server to run")
        return daemon

    def post(self, path: str, **body: Any) -> requests.Response:
        return requests.post(f"http://127.0.0.1:{self.port}/v2.0/{path}", json=body, timeout=60)

    def create(self, path: str, name: str, /, **attributes: Any) -> dict[str, Any]:
        answer = self.post(path, **{name: attributes})
        assert answer.status_code == 201, answer.text
        return answer.json()[name]


@pytest.fixture
def database(sqlite_url: str) -> Any:
    made = open_database(sqlite_url)
    migration.sync(made.engine)
    yield made
    made.dispose()


def test_sigterm_lets_a_placement_that_is_under_way_end(
    database: Database, sqlite_url: str, tmp_path: Path, spawn: Callable[..., Daemon]
) -> None:
    add_agent(database)
    add_devices(database, new_device(device_type="patient", traits=traits.STANDARD, extra={"folder": str(tmp_path)}))
    server = Server(tmp_path, sqlite_url, PATIENT)
    daemon = server.run(spawn)
    network = server.create("networks", "network", name="front")
    subnet = server.create("subnets", "subnet", network_id=network["id"], cidr="10.0.0.0/24")
    pool = server.create("lb/pools", "pool", subnet_id=subnet["id"], protocol="TCP", lb_method="ROUND_ROBIN")
    vip = {"subnet_id": subnet["id"], "protocol": "TCP", "protocol_port": 80, "pool_id": pool["id"]}
    with ThreadPoolExecutor(1) as clients:
        answer = clients.submit(server.post, "lb/vips", vip=vip)
        wait_for((tmp_path / "asked").exists, 30, "the placement to be under way")
        daemon.signal(signal.SIGTERM)
        wait_for(lambda: "Got SIGTERM" in daemon.tail(), 10)
        (tmp_path / "answer").touch()
        assert answer.result().status_code == 201, answer.result().text
    assert daemon.wait(30) == 0
    for table in (models.vips, models.placements, models.deployments):
        assert database.read(lambda conn, of=table: conn.scalar(sa.select(sa.func.count()).select_from(of))) == 1, table.name


@pytest.mark.usefixtures("database")
def test_a_server_whose_broker_is_away_serves_what_needs_none_and_still_ends(
    sqlite_url: str, tmp_path: Path, spawn: Callable[..., Daemon]
) -> None:
    server = Server(tmp_path, sqlite_url, bus=f"rabbit://user:password@127.0.0.1:{free_port()}/lbaas")
    daemon = server.run(spawn)
    assert server.create("networks", "network", name="front")["id"]
    daemon.signal(signal.SIGTERM)
    assert daemon.wait(30) == 0


def test_a_server_that_still_owes_an_answer_ends_though_the_broker_is_away(
    database: Database, sqlite_url: str, tmp_path: Path, spawn: Callable[..., Daemon], own_rabbitmq: RabbitMQ
) -> None:
    add_agent(database)
    add_devices(database, new_device(device_type="patient", traits=traits.STANDARD, extra={"folder": str(tmp_path)}))
    bus = own_rabbitmq.create_vhost()
    # No agent reports here: the reconciler would close the device.
    more = "[DEFAULT]\ngraceful_shutdown_seconds = 3\n[scheduler]\nreconcile_interval_seconds = 300"
    server = Server(tmp_path, sqlite_url, PATIENT, more, bus)
    daemon = server.run(spawn)
    network = server.create("networks", "network", name="front", shared=True)
    subnet = server.create("subnets", "subnet", network_id=network["id"], cidr="10.0.0.0/24")
    pool = server.create("lb/pools", "pool", subnet_id=subnet["id"], protocol="TCP", lb_method="ROUND_ROBIN")
    vip = {"subnet_id": subnet["id"], "protocol": "TCP", "protocol_port": 80, "pool_id": pool["id"]}
    conf = bus_conf(bus)
    conf.register_opts(dict(messaging_opts())[None])
    conf.set_override("rpc_response_timeout", 15)
    transport = get_transport(conf)
    client = LoadBalancerClient(transport)
    asked = threading.Thread(target=_ask, args=(client, vip), daemon=True)
    asked.start()
    wait_for((tmp_path / "asked").exists, 60, "the placement to be under way")
    own_rabbitmq.stop()
    (tmp_path / "answer").touch()
    wait_for(lambda: database.read(lambda conn: conn.scalar(sa.select(models.vips.c.id))), 30, "the VIP")
    daemon.signal(signal.SIGTERM)
    # Three seconds of grace, five for what is to be sent, two for threads that wait: and a slow machine.
    assert daemon.wait(18) == 0
    own_rabbitmq.start()  # with a broker, the library closes what it has open
    asked.join(60)
    transport.cleanup()


def _ask(client: LoadBalancerClient, vip: dict[str, Any]) -> None:
    """The answer gets lost."""
    with suppress(LBaaSError, oslo_messaging.MessagingException):
        client.create_vip(ADMIN, vip)


@pytest.mark.usefixtures("database")
def test_sighup_reads_the_options_again_and_a_wrong_value_changes_nothing(
    sqlite_url: str, tmp_path: Path, spawn: Callable[..., Daemon]
) -> None:
    server = Server(tmp_path, sqlite_url)
    daemon = server.run(spawn)
    good = server.file.read_text()
    for value, said in (("9", "1 options changed"), ("soon", "The configuration stays as it was")):
        server.file.write_text(good.replace("interval_seconds = 7", f"interval_seconds = {value}"))
        daemon.signal(signal.SIGHUP)
        wait_for(lambda text=said: daemon.must_run() or text in daemon.tail(4000), 20, said)
    assert "reconcile_interval_seconds" in daemon.tail(4000)


@pytest.mark.usefixtures("database")
@pytest.mark.parametrize(
    ("values", "code", "reason"),
    [
        ({"handlers": "cisco"}, 1, "'cisco'"),
        ({"handlers": "fake, lbaas_scheduler.vendors.fake.handler.FakeHandler"}, 1, "fake"),
        ({"more": "[security]\nencryption_keys = sesame"}, 1, "encryption_keys[0] is not a valid Fernet key"),
        ({"more": "[agent]\npage_size = many"}, 2, "[agent] page_size"),
    ],
    ids=lambda value: str(value)[:30] if isinstance(value, dict) else "",
)
def test_what_is_wrong_with_the_configuration_is_one_line(
    sqlite_url: str, tmp_path: Path, values: dict[str, str], code: int, reason: str
) -> None:
    _refuses(Server(tmp_path, sqlite_url, **values), code, reason)


def test_a_database_that_was_not_migrated_is_told_how_to_be(sqlite_url: str, tmp_path: Path) -> None:
    _refuses(Server(tmp_path, sqlite_url), 1, "lbaas-scheduler-manage db sync")


def _refuses(server: Server, code: int, reason: str) -> None:
    ended = subprocess.run(server.command, capture_output=True, text=True, timeout=60, check=False)
    said = [line for line in ended.stderr.splitlines() if line.startswith("lbaas-scheduler-server: ")]
    assert (ended.returncode, len(said)) == (code, 1), ended.stderr
    assert reason in said[0]
    assert "Traceback" not in ended.stderr
    assert "sesame" not in ended.stderr
