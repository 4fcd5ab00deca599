"""RabbitMQ of the test run."""

from __future__ import annotations

import base64
import contextlib
import http.client
import json
import os
import shutil
import subprocess
import uuid
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tests.rig.daemon import Daemon, Server
from tests.rig.run import Run
from tests.rig.waiting import wait_for

# Debian's /usr/sbin/rabbitmq-server changes to the user rabbitmq and to that user's folders; the script behind it does not.
_PATH = "/usr/lib/rabbitmq/bin:/usr/libexec/rabbitmq:/usr/local/sbin:/usr/sbin:/usr/bin:/bin"
_SPIN_LESS = "+S 2:2 +sbwt none +sbwtdcpu none +sbwtdio none"
"""Erlang's schedulers poll for work before they sleep, which on a small machine takes the time from those who have some."""


class RabbitMQ(Server):
    """The broker with its management API, and an epmd (Erlang's port mapper) of its own.

    A broker that finds no epmd starts one that outlives it and serves the whole machine, so it is given a private one.
    """

    name = "rabbitmq"
    ports_needed = 4

    def __init__(self, run: Run, folder: Path, ports: tuple[int, ...]) -> None:
        self.folder = folder
        self.ports = ports
        self.amqp_port, self._api_port, _distribution, epmd_port = ports
        environment = self._environment()
        epmd = [_program("epmd"), "-port", str(epmd_port), "-address", "127.0.0.1"]
        self._epmd = Daemon(run, "epmd", epmd, log=folder / "epmd.log", environment=environment)
        self.daemon = Daemon(run, self.name, [_program("rabbitmq-server")], log=folder / "rabbitmq.log", environment=environment)

    @staticmethod
    def missing() -> str:
        return "" if _program("rabbitmq-server") and _program("epmd") else "RabbitMQ is not installed"

    def start(self) -> None:
        """Returns when it takes clients. With the same port, users, vhosts and durable queues after :meth:`stop`."""
        self._write_configuration()
        if not self._epmd.running:
            self._epmd.start()
        self.daemon.start()
        wait_for(
            self._listens, 90, f"RabbitMQ on port {self.amqp_port}", interval=0.2, ignore=(OSError, http.client.HTTPException)
        )

    def stop(self) -> None:
        """As an init system stops it. The port is closed afterwards and clients are refused."""
        self.daemon.stop()

    def end(self) -> None:
        """Epmd, too."""
        super().end()
        self._epmd.stop()

    def create_vhost(self) -> str:
        """oslo.messaging's transport URL of a new, empty virtual host."""
        name = f"t-{uuid.uuid4().hex}"
        self.call("PUT", f"/api/vhosts/{name}")
        self.call("PUT", f"/api/permissions/{name}/rig", {"configure": ".*", "write": ".*", "read": ".*"})
        return f"rabbit://rig:rig@127.0.0.1:{self.amqp_port}/{name}"

    def delete_vhost(self, url: str) -> None:
        self.call("DELETE", f"/api/vhosts/{url.rsplit('/', 1)[1]}")

    def control(self, *words: str) -> None:
        """What the management API cannot do: one command of ``rabbitmqctl``."""
        subprocess.run([_program("rabbitmqctl"), *words], env=self._environment(), check=True, capture_output=True, timeout=60)

    def queues(self, url: str) -> list[dict[str, Any]]:
        """The queues of a virtual host as the management API describes them (``name``, ``type``, ``messages``, …)."""
        found = self.call("GET", f"/api/queues/{quote(url.rsplit('/', 1)[1], safe='')}")
        return list(found)

    def alarm(self, on: bool) -> None:
        """Raise or clear the alarm of memory: while it lasts, the broker takes nothing from publishers and lets them wait."""
        watermark = "0.0000001" if on else "0.6"
        words = [_program("rabbitmqctl"), "--node", f"rig-{self.amqp_port}@localhost", "set_vm_memory_high_watermark", watermark]
        done = subprocess.run(words, env=self._environment(), capture_output=True, text=True, check=False, timeout=90)
        if done.returncode:
            raise RuntimeError(f"{' '.join(words)}: {done.stdout}{done.stderr}")

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """One call of the management API.

        :raises RuntimeError: it answered with an error.
        """
        connection = http.client.HTTPConnection("127.0.0.1", self._api_port, timeout=15)
        headers = {"Authorization": "Basic " + base64.b64encode(b"rig:rig").decode(), "Content-Type": "application/json"}
        with contextlib.closing(connection):
            connection.request(method, path, json.dumps(body) if body is not None else None, headers)
            answer = connection.getresponse()
            text = answer.read()
        if answer.status >= 300:
            raise RuntimeError(f"RabbitMQ answers {method} {path} with {answer.status}: {text[:500]!r}")
        return json.loads(text) if text else None

    def _listens(self) -> bool:
        self.daemon.must_run()
        try:
            return bool(self.call("GET", f"/api/health/checks/port-listener/{self.amqp_port}"))
        except RuntimeError:  # answers 503 until it listens, 401 until its user is there
            return False

    def _write_configuration(self) -> None:
        settings = {
            "listeners.tcp.1": f"127.0.0.1:{self.amqp_port}",
            "management.tcp.ip": "127.0.0.1",
            "management.tcp.port": self._api_port,
            "default_user": "rig",
            "default_pass": "rig",
            "log.file": "false",
            "log.console": "true",
            "log.console.level": "warning",
            "disk_free_limit.absolute": "10MB",
            "raft.wal_max_size_bytes": 16 * 1024 * 1024,
        }
        (self.folder / "rabbitmq.conf").write_text("".join(f"{key} = {value}\n" for key, value in settings.items()))
        (self.folder / "plugins").write_text("[rabbitmq_management].\n")

    def _environment(self) -> dict[str, str]:
        _amqp, _api, distribution_port, epmd_port = self.ports
        return {
            "PATH": os.environ.get("PATH", _PATH) + ":" + _PATH,
            "LANG": "C.UTF-8",
            "HOME": str(self.folder),
            "ERL_EPMD_PORT": str(epmd_port),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODENAME": f"rig-{self.amqp_port}@localhost",
            "RABBITMQ_DIST_PORT": str(distribution_port),
            "RABBITMQ_CONF_ENV_FILE": "/dev/null",
            "RABBITMQ_CONFIG_FILE": str(self.folder / "rabbitmq.conf"),
            "RABBITMQ_ADVANCED_CONFIG_FILE": str(self.folder / "advanced.config"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(self.folder / "plugins"),
            "RABBITMQ_MNESIA_BASE": str(self.folder / "mnesia"),
            "RABBITMQ_LOG_BASE": str(self.folder),
            "RABBITMQ_PID_FILE": str(self.folder / "pid"),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": _SPIN_LESS,
            # Makes the script become the broker instead of its parent, so that the process id is the broker's.
            "RUNNING_UNDER_SYSTEMD": "true",
        }


def _program(name: str) -> str:
    return shutil.which(name, path=_PATH) or ""
