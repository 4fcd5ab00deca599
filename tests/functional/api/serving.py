"""A house behind the HTTP server that ``lbaas-scheduler-server`` has inside."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from lbaas_scheduler.api.server import RestServer
from tests.functional.api.house import House


@contextmanager
def served(house: House) -> Iterator[str]:
    """Its URL."""
    house.conf.set_override("bind_port", 0, "api")
    server = RestServer(house.conf, house.app)
    server.start()
    try:
        yield server.url
    finally:
        server.stop()
