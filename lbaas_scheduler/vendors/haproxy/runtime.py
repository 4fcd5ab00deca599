"""The command line interfaces of a device's processes: the master's, through which its workers are reached as well, and the
current worker's own, which takes thousands of commands where the master takes one after the other."""

from __future__ import annotations

import csv
import io
import os
import re
import socket
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from lbaas_scheduler.sdk.silence import OWN_FAULTS

SOCKET = "master.sock"
WORKER_SOCKET = "worker.sock"
MAX_COMMANDS_BYTES = 8_000
"""HAProxy reads a line of commands into one buffer, which has 16 KiB unless it is told otherwise."""
MAX_FILL_BYTES = 30_000
"""Of a worker whose buffers are ours."""


class RuntimeUnavailable(Exception):
    """Nobody answers on the socket: the process is dead, starting or reloading."""


@dataclass(frozen=True, slots=True)
class Processes:
    """``show proc``. ``failed``: reloads that failed since the last one that succeeded; ``worker`` None = there is none."""

    reloads: int
    failed: int
    worker: int | None
    old: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ServerState:
    """A server as a worker has it, a row of ``show servers state``."""

    row: Mapping[str, str]

    @property
    def backend(self) -> str:
        return self.row["be_name"]

    @property
    def name(self) -> str:
        return self.row["srv_name"]

    @property
    def weight(self) -> int:
        return int(self.row["srv_uweight"])

    @property
    def maintenance(self) -> bool:
        """The lowest bit: forced into maintenance. Others tell where from (the file, a tracked server, …)."""
        return bool(int(self.row["srv_admin_state"]) & 1)

    @property
    def drained(self) -> bool:
        """Forced to take no new clients."""
        return bool(int(self.row["srv_admin_state"]) & 8)

    @property
    def checked(self) -> bool:
        """Its check is switched on, if only paused."""
        return bool(int(self.row["srv_check_state"]) & 4)

    @property
    def address(self) -> str:
        return self.row["srv_addr"]

    @property
    def port(self) -> str:
        return self.row["srv_port"]

    @property
    def down(self) -> bool:
        """Found down by its check."""
        return self.row["srv_op_state"] == "0" and not self.maintenance


class Runtime:
    def __init__(self, folder: Path, timeout_seconds: float) -> None:
        self.folder = folder
        self.timeout_seconds = timeout_seconds

    def ask(self, command: str) -> str:
        """Send one line, read the whole answer.

        :raises RuntimeUnavailable: the socket is absent, closed, or silent.
        :raises OSError: we can ask nobody, for all files that we may open are open, say.
        """
        return self._ask(SOCKET, command)

    def _ask(self, name: str, command: str) -> str:
        try:
            folder = os.open(self.folder, os.O_PATH | os.O_DIRECTORY)
        except OSError as error:
            raise self._unavailable(name, error) from error
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
                connection.settimeout(self.timeout_seconds)
                # A socket's path has at most 107 bytes; by the folder's descriptor it is short wherever the folder is.
                connection.connect(f"/proc/self/fd/{folder}/{name}")
                connection.sendall(command.encode() + b"\n")
                # The master, unlike a worker, keeps the connection open for more, unless it is told that no more will come.
                connection.shutdown(socket.SHUT_WR)
                return b"".join(iter(lambda: connection.recv(65536), b"")).decode(errors="replace")
        except OSError as error:
            raise self._unavailable(name, error) from error
        finally:
            os.close(folder)

    def _unavailable(self, name: str, error: OSError) -> Exception:
        if error.errno in OWN_FAULTS:
            return OSError(error.errno, error.strerror)
        return RuntimeUnavailable(f"{self.folder / name}: {error}")

    def processes(self) -> Processes:
        return _processes(self.ask("show proc"))

    def show_stat(self, pid: int) -> list[dict[str, str]]:
        """Frontends, backends and servers of the worker ``pid``, one dict per row."""
        return _table(self.ask(f"@!{pid} show stat -1 7 -1"))

    def frontends(self, name: str = "") -> list[dict[str, str]]:
        """Rows of ``show stat`` of the current worker's frontends, of one or of all; none where there is none of that name."""
        return _table(self.ask(f"@1 show stat {name or -1} 1 -1"))

    def variables(self, names: Sequence[str]) -> dict[str, str]:
        """Variables of the current worker that are words; those that it does not have are left out."""
        said = "".join(self.ask(line) for line in _lines([f"@1 get var {name}" for name in names], MAX_COMMANDS_BYTES))
        return dict(re.findall(r"^(\S+): type=str value=<(.*)>$", said, re.MULTILINE))

    def servers(self, backend: str = "") -> list[ServerState]:
        """Servers of the current worker, of one backend or of all."""
        return list(_servers(self.ask(f"@1 show servers state {backend}".rstrip())))

    def stopping(self, pid: int) -> bool:
        """Whether an old worker no longer accepts connections. One that has gone does not."""
        answer = self.ask(f"@!{pid} show info")
        return "Stopping: 1" in answer or "Pid:" not in answer

    def change(self, commands: Sequence[str]) -> str:
        """Run commands that say nothing on success in the current worker. Returns what they did say."""
        steps = [f"@1 {command}" for command in commands]
        return " ".join("".join(self.ask(line) for line in _lines(steps, MAX_COMMANDS_BYTES)).split())

    def fill(self, commands: Sequence[str]) -> int:
        """As :meth:`change`, for very many. Returns how many were refused."""
        said = (self._ask(WORKER_SOCKET, line) for line in _lines(commands, MAX_FILL_BYTES))
        return sum(1 for answer in said for line in answer.splitlines() if line.strip())


def _lines(steps: Sequence[str], most: int) -> Iterator[str]:
    line = ""
    for step in steps:
        if line and len(line) + len(step) > most:
            yield line
            line = ""
        line = f"{line};{step}" if line else step
    if line:
        yield line


def _processes(text: str) -> Processes:
    section = ""
    reloads = failed = -1
    current: list[int] = []
    old: list[int] = []
    for line in text.splitlines():
        fields = line.split()
        if line.startswith("#"):
            section = line[1:].strip()
        elif len(fields) > 3 and fields[1] == "master":
            reloads = int(fields[2])
            failed = int(line.partition("[failed:")[2].partition("]")[0] or 0)
        elif len(fields) > 2 and fields[1] == "worker":
            (old if section == "old workers" else current).append(int(fields[0]))
    if reloads < 0:
        raise RuntimeUnavailable("the master process gave no account of its workers")
    return Processes(reloads, failed, current[0] if current else None, tuple(old))


def _table(text: str) -> list[dict[str, str]]:
    """The header starts with "# " and ends, as each line does, with a comma: there is a last column without a name."""
    rows = [line for line in text.splitlines() if line.strip()]
    if not rows or not rows[0].startswith("# "):
        return []
    reader = csv.DictReader(io.StringIO("\n".join([rows[0][2:], *rows[1:]])))
    return [{key: value or "" for key, value in row.items() if key} for row in reader]


def _servers(text: str) -> Iterator[ServerState]:
    header: list[str] = []
    for line in text.splitlines():
        if line.startswith("# "):
            header = line[2:].split()
        elif header and len(fields := line.split(" ")) == len(header):
            yield ServerState(dict(zip(header, fields, strict=True)))


def state_file(servers: Sequence[ServerState]) -> str:
    """What a new worker reads to know the servers' state (format 1).

    The weight and the administrative state are those of the configuration file: HAProxy would otherwise prefer what was once set
    at run time to the file's.
    """
    if not servers:
        return "1\n"
    rows = [{**server.row, "srv_uweight": server.row["srv_iweight"], "srv_admin_state": "0"} for server in servers]
    return "\n".join(["1", "# " + " ".join(rows[0]), *(" ".join(row.values()) for row in rows), ""])
