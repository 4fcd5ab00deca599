"""The HTTP server inside of ``lbaas-scheduler-server``: cheroot, a pool of threads."""

from __future__ import annotations

import ipaddress
import logging
import threading
from collections.abc import Callable
from typing import Any

from cheroot.wsgi import Server
from oslo_config import cfg

from lbaas_scheduler.conf.api import NOAUTH
from lbaas_scheduler.errors import ConfigurationError

LOG = logging.getLogger(__name__)

SHUTDOWN_SECONDS = 10
"""How long requests that are under way may take to end when the server stops."""

_MAX_HEADER_BYTES = 65_536
_WAITING = 128
"""Connections that wait for a thread before further ones are refused."""


class _Server(Server):
    def error_log(self, msg: str = "", level: int = logging.INFO, traceback: bool = False) -> None:
        LOG.log(level, "%s", msg, exc_info=traceback)


class RestServer:
    """``start`` and ``stop`` once each. ``address``: host and port, once it is started."""

    def __init__(self, conf: cfg.ConfigOpts, app: Callable[..., Any]) -> None:
        self._trusting = conf.api.auth_strategy == NOAUTH
        self._host, self._port = conf.api.bind_host, conf.api.bind_port
        self._server = _Server(
            (self._host, self._port),
            app,
            numthreads=conf.api.threads,
            server_name="lbaas-scheduler",
            request_queue_size=_WAITING,
            shutdown_timeout=SHUTDOWN_SECONDS,
        )
        self._server.max_request_header_size = _MAX_HEADER_BYTES
        self._thread: threading.Thread | None = None

    @property
    def address(self) -> tuple[str, int]:
        host, port = self._server.bind_addr[:2]
        return host, port

    @property
    def url(self) -> str:
        host, port = self.address
        return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

    def start(self) -> None:
        """Listen, and answer in the background.

        :raises ConfigurationError: the address cannot be listened on.
        """
        try:
            self._server.prepare()
        except OSError as error:
            where = f"[api] bind_host {self._host}, bind_port {self._port}"
            raise ConfigurationError(reason=f"{where}: cannot listen there: {error.strerror or error}") from error
        self._thread = threading.Thread(target=self._server.serve, name="rest", daemon=True)
        self._thread.start()
        LOG.info("REST API on %s", self.url)
        if self._trusting:
            LOG.warning(
                "[api] auth_strategy is noauth: everybody who reaches %s is an administrator%s",
                self.url,
                "" if _is_loopback(self._host) else ", and it is reached from OTHER MACHINES",
            )

    def stop(self) -> None:
        """Take no more requests, and let those that are under way end."""
        self._server.stop()
        if self._thread is not None:
            self._thread.join(SHUTDOWN_SECONDS)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
