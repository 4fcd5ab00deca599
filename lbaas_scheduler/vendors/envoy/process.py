"""A device's Envoy process. It runs in its own session and goes on when the agent ends."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import time
from collections.abc import Iterable
from dataclasses import dataclass

from lbaas_scheduler.errors import DriverError
from lbaas_scheduler.sdk import processes
from lbaas_scheduler.sdk.listening import Endpoint, listening
from lbaas_scheduler.vendors.envoy.admin import SOCKET, Admin
from lbaas_scheduler.vendors.envoy.folder import OWNER, Folder
from lbaas_scheduler.vendors.envoy.options import Settings
from lbaas_scheduler.vendors.envoy.resources import Json

GRACE_SECONDS = 5.0
_POLL_SECONDS = 0.02
_LOG_TAIL = 2000

# All that we read; everything else would only cost memory, some 100 numbers per VIP.
COUNTERS = r"^(listener|http|tcp)\.[A-Za-z0-9_-]+\.downstream_cx_(active|total|rx_bytes_total|tx_bytes_total)$"
MANAGERS = r"^(listener_manager|cluster_manager)\..*"


def bootstrap(folder: Folder) -> Json:
    """What Envoy is started with: where its administration socket is, and which files it watches."""
    # The socket's path is relative to the working folder, for the kernel takes no socket path of more than 107 bytes.
    return {
        "node": {"id": folder.path.name, "cluster": OWNER},
        "admin": {"address": {"pipe": {"path": SOCKET, "mode": 0o600}}},
        "dynamic_resources": {"cds_config": _watch(folder, "cds"), "lds_config": _watch(folder, "lds")},
        "stats_config": {"stats_matcher": {"inclusion_list": {"patterns": [_regex(COUNTERS), _regex(MANAGERS)]}}},
    }


def _regex(text: str) -> Json:
    return {"safe_regex": {"regex": text}}


def _watch(folder: Folder, name: str) -> Json:
    return {"resource_api_version": "V3", "path_config_source": {"path": str(folder.watched(name))}}


@dataclass(frozen=True, slots=True)
class Process:
    """The Envoy of one folder, found by its command line: a number in a file could by now be somebody else's."""

    folder: Folder
    settings: Settings

    @property
    def marker(self) -> str:
        return f"-c\0{self.folder.bootstrap}\0"

    def pids(self) -> list[int]:
        return processes.find(self.marker)

    def start(self, concurrency: int) -> None:
        """Start it with nothing to serve, and wait until it is ready.

        Empty, for at its start Envoy serves nobody before it has checked every member of every VIP once: one member that
        does not answer would hold up all VIPs.

        :raises DriverError: it did not come up; the operator's text says why.
        """
        self.folder.create(bootstrap(self.folder))
        for name in ("cds", "lds"):
            self.folder.write_watched(name, ())
        if self.folder.log.exists():
            os.replace(self.folder.log, f"{self.folder.log}.1")
        pid = processes.spawn_detached(self._command(concurrency), self.folder.log, self.folder.path, processes.ENVIRONMENT)
        self._await_ready(pid)
        _raise_file_limit(pid)

    def stop(self) -> None:
        """:raises DriverError: it survived."""
        for pid in self.pids():
            processes.stop(pid, self.marker, GRACE_SECONDS)

    def kill(self) -> None:
        """End it without waiting: it does not answer.

        :raises DriverError: it survived.
        """
        for pid in self.pids():
            processes.stop(pid, self.marker, 0.0)

    def open_addresses(self) -> set[Endpoint]:
        """Where it accepts connections, from the kernel: it goes on naming listeners that somebody made it close."""
        return listening(self.pids())

    def validate(self, clusters: Iterable[Json], listeners: Iterable[Json]) -> str | None:
        """What Envoy says against the resources, without touching the running one; None = nothing."""
        static = {
            "clusters": [_untyped(cluster) for cluster in clusters],
            "listeners": [_untyped(listener) for listener in listeners],
        }
        with self.folder.candidate() as candidate:
            json.dump({"static_resources": static}, candidate)
            candidate.flush()
            return self._validate(candidate.name)

    def _validate(self, path: str) -> str | None:
        command = [str(self.settings.binary), "--mode", "validate", "-c", path, "--disable-hot-restart", "-l", "error"]
        try:
            done = subprocess.run(
                command,
                capture_output=True,
                text=True,
                env=processes.ENVIRONMENT,
                timeout=self.settings.start_timeout,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise DriverError("Envoy took too long to check a configuration.", operator_message=str(error)) from error
        return None if done.returncode == 0 else cause(done.stderr or done.stdout)

    def _command(self, concurrency: int) -> list[str]:
        settings = self.settings
        return [
            str(settings.binary),
            *("-c", str(self.folder.bootstrap)),
            # It would take a place in shared memory that two Envoys of one host fight for.
            "--disable-hot-restart",
            *("--concurrency", str(concurrency)),
            *("--drain-time-s", str(settings.drain)),
            *("--drain-strategy", "immediate"),
            *("--log-level", "warn"),
        ]

    def _await_ready(self, pid: int) -> None:
        deadline = time.monotonic() + self.settings.start_timeout
        admin = Admin(self.folder.path)
        while not admin.ready():
            if not processes.alive(pid, self.marker) or time.monotonic() >= deadline:
                processes.stop(pid, self.marker, GRACE_SECONDS)
                said = cause(self.folder.log.read_bytes().decode(errors="replace"))
                raise DriverError("The device's Envoy did not start.", operator_message=f"{self.folder.path}: {said}")
            time.sleep(_POLL_SECONDS)


def cause(log: str) -> str:
    """From an Envoy's log, why it ended: the first critical line, which a long trace may follow; where there is none, its end."""
    critical = (line for line in log.splitlines() if "][critical][" in line)
    return next(critical, log.strip())[-_LOG_TAIL:]


def _untyped(item: Json) -> Json:
    """As part of a static configuration, which tells the type from the place."""
    return {key: value for key, value in item.items() if key != "@type"}


def _raise_file_limit(pid: int) -> None:
    """As many connections as the host allows: shells and service managers often grant 1,024 files only."""
    _, hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (hard, hard))
