"""A whole installation on this machine: gunicorn, a server, an agent with the fake driver, RabbitMQ and a database."""

from __future__ import annotations

import http.client
import json
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from benchmarks import fleet
from lbaas_scheduler.db import migration
from lbaas_scheduler.db.session import Database
from tests.rig.daemon import Daemon
from tests.rig.mariadb import MariaDB
from tests.rig.ports import free_port
from tests.rig.postgresql import PostgreSQL
from tests.rig.rabbitmq import RabbitMQ
from tests.rig.run import Run
from tests.rig.waiting import wait_for

DATABASES: Mapping[str, Any] = {"postgresql": PostgreSQL, "mysql": MariaDB}

CONFIGURATION = """
[DEFAULT]
host = benchmark
transport_url = {transport_url}

[database]
connection = {database_url}

[api]
auth_strategy = noauth
enabled = false

[quotas]
quota_vip = -1
quota_pool = -1

[LoadBalancer]
device_handlers = fake

[agent]
drivers = fake
state_path = {folder}
"""


@dataclass(frozen=True)
class Site:
    """``url`` of the REST API; ``subnet_id``: of a subnet that is large enough for any run; ``daemons`` by their names."""

    url: str
    database: Database
    subnet_id: str
    daemons: Mapping[str, Daemon]

    def cpu_seconds(self) -> dict[str, float]:
        """What each process and its children have used so far. Unlike rates, it hardly depends on what else the machine does."""
        return {name: sum(_cpu_seconds(pid) for pid in _family(daemon.pid)) for name, daemon in self.daemons.items()}


@contextmanager
def site(kind: str, workers: int, threads: int, devices: int) -> Iterator[Site]:
    """Started for the purpose, with so many devices, and ended afterwards without a trace."""
    with ExitStack() as stack:
        rig = Run.begin()
        stack.callback(rig.end)
        url, service = _database(rig, kind)
        broker: Any = rig.private(RabbitMQ, "benchmark-rabbitmq")
        broker.start()
        database = fleet.open_database(url)
        stack.callback(database.dispose)
        migration.sync(database.engine)
        config = rig.folder / "scheduler.conf"
        values = {"database_url": url.replace("%", "%%"), "transport_url": broker.create_vhost(), "folder": rig.folder}
        config.write_text(CONFIGURATION.format(**values))
        gunicorn, port = _gunicorn(rig, config, workers, threads)
        daemons = {**_processes(rig, config), "gunicorn": gunicorn}
        for daemon in daemons.values():
            daemon.start()
            stack.callback(daemon.stop)
        api = f"http://127.0.0.1:{port}"

        def answers() -> Any:
            for daemon in daemons.values():
                daemon.must_run()
            return ask(api, "GET", "/")

        wait_for(answers, 120, "gunicorn", ignore=(OSError, http.client.HTTPException))
        yield Site(api, database, _furnish(api, devices), {**daemons, **service, "broker": broker.daemon})


def ask(url: str, method: str, path: str, body: Any = None) -> Any:
    """:raises RuntimeError: the answer is an error."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=60)
    connection.request(method, path, None if body is None else json.dumps(body), {"Content-Type": "application/json"})
    answer = connection.getresponse()
    text = answer.read()
    connection.close()
    if answer.status >= 300:
        raise RuntimeError(f"{method} {path}: {answer.status} {text[:1000]!r}")
    return json.loads(text)


def _database(rig: Run, kind: str) -> tuple[str, dict[str, Daemon]]:
    """URL of an empty one, and its daemon."""
    if kind == "sqlite":
        return f"sqlite:///{rig.folder / 'benchmark.sqlite'}", {}
    service: Any = rig.private(DATABASES[kind], f"benchmark-{kind}")
    service.start()
    return str(service.create_database()), {"database": service.daemon}


def _family(pid: int) -> list[int]:
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [pid, *(it for child in children for it in _family(int(child)))]


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _processes(rig: Run, config: Path) -> dict[str, Daemon]:
    """What runs beside every WSGI server."""
    modules = {"server": "lbaas_scheduler.cmd.server", "agent": "lbaas_scheduler.cmd.agent"}
    return {
        name: Daemon(rig, name, [sys.executable, "-m", module, "--config-file", str(config)], log=rig.folder / f"{name}.log")
        for name, module in modules.items()
    }


def _gunicorn(rig: Run, config: Path, workers: int, threads: int) -> tuple[Daemon, int]:
    port = free_port()
    size = [
        "--workers",
        str(workers),
        "--worker-class",
        "gthread",
        "--threads",
        str(threads),
        "--keep-alive",
        "60",
        "--no-control-socket",
    ]
    command = [sys.executable, "-m", "gunicorn", "--bind", f"127.0.0.1:{port}", *size, "lbaas_scheduler.wsgi:application"]
    environment = {**os.environ, "LBAAS_SCHEDULER_CONFIG_FILES": str(config)}
    return Daemon(rig, "gunicorn", command, log=rig.folder / "gunicorn.log", environment=environment), port


def _furnish(api: str, devices: int) -> str:
    """Devices that a live agent drives, and a subnet; its id."""
    for number in range(devices):
        ask(api, "POST", "/v2.0/devices", {"device": {"name": f"device-{number}", "device_type": "fake"}})

    def driven() -> bool:
        return all((it["agent"] or {}).get("alive") for it in ask(api, "GET", "/v2.0/devices")["devices"])

    wait_for(driven, 60, "an agent to drive all devices", interval=0.3)
    network = ask(api, "POST", "/v2.0/networks", {"network": {"name": "front"}})["network"]
    subnet = {"network_id": network["id"], "cidr": "10.0.0.0/8"}
    return str(ask(api, "POST", "/v2.0/subnets", {"subnet": subnet})["subnet"]["id"])
