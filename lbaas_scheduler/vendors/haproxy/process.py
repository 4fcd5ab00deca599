"""One device's HAProxy: a master process, in a session of its own, and its workers.

It is not a child of the agent: it goes on serving when the agent stops or is killed, and a later agent finds it again through its
pid file. A pid is believed only if the process's command line names the device's folder, so that no stranger is ever signalled.
HAProxy's master ends when its worker is killed and the other way round: either both are there, or neither.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from lbaas_scheduler.sdk import processes
from lbaas_scheduler.vendors.haproxy.attachments import Attachments
from lbaas_scheduler.vendors.haproxy.namespace import Namespace
from lbaas_scheduler.vendors.haproxy.runtime import SOCKET, Processes, Runtime, RuntimeUnavailable

LOG = logging.getLogger(__name__)

POLL_SECONDS = 0.01
EXEC_SECONDS = 1.0

ANSWER_SECONDS = 5.0
"""Within which a HAProxy that works says that it does."""


class ProcessFailed(Exception):
    """HAProxy did not start, reload or stop. The text is for operators; :func:`alerts` makes one for tenants."""


class Uncontrolled(ProcessFailed):
    """HAProxy cannot be run, or does not do in time what it is told: no configuration is to blame, and none will help."""


class HaproxyProcess:
    """:param attachments: tell in which network namespace it is to run."""

    def __init__(self, folder: Path, binary: str, timeout_seconds: float, attachments: Attachments) -> None:
        self.folder = folder
        self.attachments = attachments
        self.binary = binary
        self.timeout_seconds = timeout_seconds
        self.runtime = Runtime(folder, timeout_seconds)
        self.marker = f"-f\0{folder}\0"

    def running(self) -> bool:
        return self._master() is not None

    def pids(self) -> list[int]:
        """Of all processes of the device, by their command lines."""
        return processes.find(self.marker)

    def answers(self) -> bool:
        """Whether master and worker answer a simple question within :data:`ANSWER_SECONDS`."""
        with contextlib.suppress(RuntimeUnavailable):
            return "Pid:" in Runtime(self.folder, min(ANSWER_SECONDS, self.timeout_seconds)).ask("@1 show info")
        return False

    def misplaced(self) -> bool:
        """Whether it runs in another network namespace than it should: a reload would not move it."""
        master, namespace = self._master(), self.attachments.namespace
        if master is None:
            return False
        return not (namespace.holds(master) if namespace is not None else _is_beside_us(master))

    def check(self, *folders: Path) -> str | None:
        """Let HAProxy validate all files of folders together. None when it accepts them, else what it said.

        :raises Uncontrolled: HAProxy cannot be run, or does not end.
        """
        return self._run(["-c", *(word for folder in folders for word in ("-f", os.path.join(folder, ".")))])

    def start(self) -> None:
        """Start with all of the folder's files. Listens when this returns.

        :raises ProcessFailed: with what HAProxy said.
        """
        self._kill_all()
        (self.folder / "pid").unlink(missing_ok=True)
        owner = f",uid,{os.geteuid()}" if os.geteuid() == 0 else ""
        namespace = self.attachments.namespace
        said = self._run(["-W", "-D", "-S", f"unix@{SOCKET},mode,600{owner}", "-p", "pid", "-f", str(self.folder)], namespace)
        if said is not None:
            raise ProcessFailed(said)
        if not until(self._serving, self.timeout_seconds):
            self._kill_all()
            raise Uncontrolled("HAProxy started, but its worker does not answer.")

    def reload(self) -> None:
        """Replace the worker by one with the folder's present files; open connections stay with the old one.

        Returns once the new worker serves and the old ones accept nothing any more.

        :raises ProcessFailed: the old worker goes on as it was.
        :raises Uncontrolled: nobody knows; the reload may come yet.
        """
        master = self._master()
        if master is None:
            raise ProcessFailed("HAProxy is not running.")
        try:
            before = self.runtime.processes()
        except RuntimeUnavailable as error:
            raise Uncontrolled(f"HAProxy's master process does not answer: {error}") from error
        _signal(master, signal.SIGUSR2)
        after: list[Processes] = []

        def reloaded() -> bool:
            if processes.ended(master):
                raise ProcessFailed("HAProxy ended during the reload.")
            with contextlib.suppress(RuntimeUnavailable):
                after[:] = [self.runtime.processes()]
                return after[0].reloads > before.reloads and after[0].worker is not None
            return False

        if not until(reloaded, self.timeout_seconds):
            raise Uncontrolled(f"HAProxy did not reload within {self.timeout_seconds:g} s.")
        if after[0].failed or after[0].worker == before.worker:
            raise ProcessFailed("HAProxy refused to reload.")
        if not until(self._old_ones_stopped, self.timeout_seconds) and not self._end_silent_old_ones():
            raise Uncontrolled("HAProxy's old worker goes on accepting connections.")

    def stop(self) -> None:
        """End all processes of the device.

        :raises ProcessFailed: one of them is still there.
        """
        self._kill_all()

    def kill(self) -> None:
        """End all processes of the device at once, without asking them: they do not answer.

        :raises ProcessFailed: one of them is still there.
        """
        self._end_with((signal.SIGKILL,))

    def _serving(self) -> bool:
        with contextlib.suppress(RuntimeUnavailable):
            return self.runtime.processes().worker is not None and "Pid:" in self.runtime.ask("@1 show info")
        pid = self._pid()
        if pid is not None and processes.ended(pid):
            raise ProcessFailed("HAProxy ended right after its start.")
        return False

    def _old_ones_stopped(self) -> bool:
        with contextlib.suppress(RuntimeUnavailable):
            return all(self.runtime.stopping(pid) for pid in self.runtime.processes().old)
        return False

    def _end_silent_old_ones(self) -> bool:
        """End old workers that answer nothing. Whether no other one is left that goes on accepting connections."""
        probe = Runtime(self.folder, min(ANSWER_SECONDS, self.timeout_seconds))
        stopping = True
        for pid in self.runtime.processes().old:
            try:
                stopping &= probe.stopping(pid)
            except RuntimeUnavailable:
                self.end_old(pid)
        return stopping

    def end_old(self, pid: int) -> None:
        """End an old worker that has not answered for as long as it takes: its connections are lost, and it held up all else."""
        if processes.alive(pid, self.marker):
            LOG.error("%s: the old worker %d hangs and is killed", self.folder, pid)
            _signal(pid, signal.SIGKILL)
            until(lambda: not processes.alive(pid, self.marker), self.timeout_seconds)

    def _pid(self) -> int | None:
        try:
            return int((self.folder / "pid").read_text())
        except (FileNotFoundError, ValueError):
            return None

    def _master(self) -> int | None:
        pid = self._pid()
        if pid is None:
            return None
        # While the master executes itself anew, for a moment, it has no command line.
        until(lambda: processes.ended(pid) or bool(processes.command_line(pid)), EXEC_SECONDS)
        return pid if processes.alive(pid, self.marker) else None

    def _kill_all(self) -> None:
        """Master first: its workers end with it. What is left after that was left by a crash."""
        master = self._master()
        if master is not None:
            _signal(master, signal.SIGTERM)
            until(lambda: not processes.alive(master, self.marker), self.timeout_seconds)
        self._end_with((signal.SIGTERM, signal.SIGKILL))

    def _end_with(self, numbers: Sequence[signal.Signals]) -> None:
        for number in numbers:
            left = self.pids()
            if not left:
                return
            for pid in left:
                _signal(pid, number)
            until(lambda: not self.pids(), self.timeout_seconds)
        if left := self.pids():
            raise ProcessFailed(f"HAProxy processes {left} cannot be stopped.")

    def _run(self, arguments: list[str], namespace: Namespace | None = None) -> str | None:
        # iproute2 replaces itself by HAProxy: the process that stays is no other than without it.
        inside = namespace.command if namespace is not None else []
        # A file and not a pipe: a daemon that keeps a pipe open would let us wait for ever. In our folder: a hardened service
        # may be able to write nowhere else.
        with tempfile.TemporaryFile(dir=self.folder) as output:
            try:
                code = subprocess.run(
                    [*inside, self.binary, *arguments],
                    cwd=self.folder,
                    env=processes.ENVIRONMENT,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    timeout=self.timeout_seconds,
                    check=False,
                ).returncode
            except subprocess.TimeoutExpired as error:
                raise Uncontrolled(f"HAProxy took longer than {self.timeout_seconds:g} s.") from error
            except OSError as error:
                raise Uncontrolled(f"HAProxy cannot be run: {error}") from error
            output.seek(0)
            return None if code == 0 else output.read().decode(errors="replace").strip() or f"exit code {code}"


def version(binary: str) -> tuple[int, int] | None:
    """The version of HAProxy that ``binary`` is, (2, 6) say; None when it is something else."""
    try:
        said = subprocess.run([binary, "-v"], stdin=subprocess.DEVNULL, capture_output=True, timeout=10, check=False).stdout
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(rb"HA-?Proxy version (\d+)\.(\d+)", said)
    return (int(found[1]), int(found[2])) if found else None


def alerts(said: str) -> str:
    """From HAProxy's output, the sentences that say what is wrong, without paths, line numbers and process ids."""
    found = re.findall(r"^\[ALERT\]\s+\(\d+\) : (?:config : )?(?:(?:parsing )?\[[^\]]*:\d+\] ?: ?)?(.*)$", said, re.MULTILINE)
    causes = [text.rstrip(".:") for text in found if not re.match(r"(Error\(s\) found in|Fatal errors found)", text)]
    others = [line for line in said.splitlines() if line and not line.startswith("[")]
    return "; ".join(dict.fromkeys(causes)) or "".join(others[:1]) or "no reason was given."


def until(condition: Callable[[], bool], timeout_seconds: float) -> bool:
    deadline = time.monotonic() + timeout_seconds
    while not condition():
        if time.monotonic() >= deadline:
            return False
        time.sleep(POLL_SECONDS)
    return True


def _signal(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return
    except PermissionError as error:
        raise ProcessFailed(f"HAProxy process {pid} belongs to another user: {error}.") from error


def _is_beside_us(pid: int) -> bool:
    """Whether a process is in our network namespace. One that we may not look at is believed to be."""
    try:
        return os.stat(f"/proc/{pid}/ns/net").st_ino == os.stat("/proc/self/ns/net").st_ino
    except OSError:
        return True
