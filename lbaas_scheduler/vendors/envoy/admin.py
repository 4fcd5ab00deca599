"""Envoy's administration interface, on a unix socket that only our user may open."""

from __future__ import annotations

import http.client
import json
import os
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from lbaas_scheduler.errors import DriverError
from lbaas_scheduler.sdk.silence import OWN_FAULTS

SOCKET = "admin.sock"
TIMEOUT_SECONDS = 10.0


class Unanswered(DriverError):
    """Nobody answers: the process is dead, or hangs."""


@dataclass(frozen=True, slots=True)
class Admin:
    """Asks the Envoy of one folder. Every method raises :class:`Unanswered` when it does not answer, and OSError when we can ask
    nobody, for all files that we may open are open, say."""

    folder: Path

    def ready(self) -> bool:
        """Whether it is up and serves."""
        try:
            return self._get("/ready").strip() == b"LIVE"
        except DriverError:
            return False

    def stats(self, pattern: str) -> dict[str, Any]:
        """Counters, gauges and texts whose names match the regular expression."""
        answer = self._json("/stats", filter=pattern, format="json")
        return {item["name"]: item["value"] for item in answer["stats"] if "name" in item}

    def dump(self, resource: str, *fields: str) -> list[dict[str, Any]]:
        """Part of the configuration that it serves: only ``fields`` of each ``resource``."""
        configs: list[dict[str, Any]] = self._json("/config_dump", resource=resource, mask=",".join(fields)).get("configs", [])
        return configs

    def listeners(self) -> list[dict[str, Any]]:
        """Where it accepts connections."""
        statuses: list[dict[str, Any]] = self._json("/listeners", format="json").get("listener_statuses", [])
        return statuses

    def clusters(self) -> list[dict[str, Any]]:
        """Members and their health, by cluster."""
        statuses: list[dict[str, Any]] = self._json("/clusters", format="json").get("cluster_statuses", [])
        return statuses

    def _json(self, path: str, **query: str) -> dict[str, Any]:
        try:
            answer: dict[str, Any] = json.loads(self._get(f"{path}?{urlencode(query)}"))
        except ValueError as error:
            text = f"{path} of {self.folder}: {error}"
            raise DriverError("Envoy gave an answer that is no JSON.", operator_message=text) from error
        return answer

    def _get(self, path: str) -> bytes:
        connection = _UnixConnection(self.folder)
        try:
            connection.request("GET", path)
            response = connection.getresponse()
            body = response.read()
        except (OSError, http.client.HTTPException) as error:
            if isinstance(error, OSError) and error.errno in OWN_FAULTS:
                raise
            text = f"{path} of {self.folder}: {error!r}"
            raise Unanswered("The device's Envoy does not answer.", operator_message=text) from error
        finally:
            connection.close()
        if path != "/ready" and response.status != http.HTTPStatus.OK:
            text = f"{path} of {self.folder}: {response.status} {body[:200]!r}"
            raise DriverError("The device's Envoy refused a question.", operator_message=text)
        return body


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, folder: Path) -> None:
        super().__init__("localhost", timeout=TIMEOUT_SECONDS)
        self._folder = folder

    def connect(self) -> None:
        # Through the folder's descriptor, for the kernel takes no socket path of more than 107 bytes.
        descriptor = os.open(self._folder, os.O_PATH | os.O_DIRECTORY)
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(TIMEOUT_SECONDS)
        try:
            self.sock.connect(f"/proc/self/fd/{descriptor}/{SOCKET}")
        finally:
            os.close(descriptor)
