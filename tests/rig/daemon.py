"""A process that a test starts, stops, kills and starts again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from tests.rig import keeper, programs
from tests.rig.run import Run


class Daemon:
    """One command under a keeper. Its output goes to :attr:`log`, appended over restarts.

    :param environment: the whole environment of the process.
    :param user: name of the user (and group) to run as; empty for the present one.
    :param stop_signal: what ends the process in an orderly way.
    :param end_signal: what ends it when the run is over and its data do not matter any more.
    """

    def __init__(
        self,
        run: Run,
        name: str,
        command: Sequence[str],
        *,
        log: Path,
        environment: Mapping[str, str] | None = None,
        user: str = "",
        stop_signal: signal.Signals = signal.SIGTERM,
        end_signal: signal.Signals = signal.SIGKILL,
    ) -> None:
        self.name = name
        self.log = log
        self.pid = 0
        self._run = run
        self._command = list(command)
        self._environment = environment
        self._user = user
        self._signals = [str(int(stop_signal)), str(int(end_signal))]
        self._keeper: subprocess.Popen[str] | None = None

    def start(self) -> None:
        """Returns at once; whether the daemon is ready only its user knows."""
        if self.running:
            raise RuntimeError(f"{self.name} runs already")
        programs.note(self._command)
        handle, lock = tempfile.mkstemp(prefix=f"{self.name}-", dir=self._run.keepers)
        os.close(handle)
        words = [str(self._run.owner_lock), lock, str(self.log), *self._signals, self._user, "--"]
        self._keeper = subprocess.Popen(
            [sys.executable, "-I", keeper.__file__, *words, *self._command],
            env=self._environment,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._keeper.stdout is not None
        line = self._keeper.stdout.readline()
        self._keeper.stdout.close()
        if not line:
            raise RuntimeError(f"{self.name} cannot be started: {self._command}")
        self.pid = int(line)

    @property
    def running(self) -> bool:
        return self._keeper is not None and self._keeper.poll() is None

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the process itself."""
        if self.running:
            os.kill(self.pid, number)

    def signal_group(self, number: signal.Signals) -> None:
        """Send a signal to the process and those that it started; nothing to do where they have ended."""
        with suppress(ProcessLookupError):
            os.killpg(self.pid, number)

    def stop(self) -> int:
        """End it in an orderly way and wait for that. Nothing to do when it has ended. Returns its exit code."""
        if self._keeper is None:
            return 0
        self._keeper.terminate()
        return self._keeper.wait(keeper.GRACE + 10)

    def kill(self) -> None:
        """As a crash does it: SIGKILL to the process and its group."""
        self.signal(signal.SIGKILL)
        self.wait(10)

    def wait(self, timeout: float) -> int:
        """Wait until it has ended by itself; its exit code (128 + n for a signal n)."""
        assert self._keeper is not None, "never started"
        return self._keeper.wait(timeout)

    def tail(self, lines: int = 40) -> str:
        """The last lines of its output, for error messages."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:]) if self.log.exists() else ""

    def must_run(self) -> None:
        """For conditions that wait for readiness: a daemon that died will never be ready."""
        if not self.running:
            raise RuntimeError(f"{self.name} ended while it was waited for:\n{self.tail()}")


class Server:
    """What services have in common: a daemon that can be ended in several ways."""

    daemon: Daemon

    def stop(self) -> None:
        """In an orderly way."""
        self.daemon.stop()

    def kill(self) -> None:
        """As a crash does it."""
        self.daemon.kill()

    def end(self) -> None:
        """For good: its data do not matter any more."""
        self.kill()
