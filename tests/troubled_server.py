"""A server whose own database, files or connections fail."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import oslo_messaging

from lbaas_scheduler.rpc import topics
from lbaas_scheduler.rpc.server_api import ServerAPI
from lbaas_scheduler.rpc.transport import get_server

ERRORS_OF_OTHERS = [
    TimeoutError("theirs"),
    OSError(28, "theirs"),
    ConnectionRefusedError(111, "theirs"),
    FileNotFoundError(2, "theirs"),
]


class _Troubled:
    target = oslo_messaging.Target(version=topics.VERSION)

    def __init__(self, error: Exception) -> None:
        self._error = error

    def report_results(self, context: Any, host: str, results: Any) -> None:
        raise self._error


@contextmanager
def troubled_server(transport: oslo_messaging.Transport, error: Exception) -> Iterator[ServerAPI]:
    """A client of a server that answers each report with this error."""
    server = get_server(transport, topics.SERVERS, "server-1", [_Troubled(error)])
    server.start()
    try:
        yield ServerAPI(transport)
    finally:
        server.stop()
        server.wait()
