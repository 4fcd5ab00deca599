"""One run of pytest: its folder, and the services that all its processes share."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol, Self, TypeVar

from tests.rig.ports import free_port

_PREFIX = f"lbaas-rig-{os.getuid()}-"
_END_TIMEOUT = 45.0


class Service(Protocol):
    """A daemon of the rig. Two objects of the same folder and ports speak of the same daemon; the one that starts it ends it."""

    name: str
    ports_needed: int
    folder: Path
    ports: tuple[int, ...]

    def __init__(self, run: Run, folder: Path, ports: tuple[int, ...]) -> None: ...

    @staticmethod
    def missing() -> str:
        """What has to be installed, or nothing."""
        ...

    def start(self) -> None: ...

    def end(self) -> None:
        """Stop it for good, with what goes with it. Nobody wants its data any more."""
        ...


S = TypeVar("S", bound=Service)


class Run:
    """A run's temporary folder; its services live while the process that made the run holds :attr:`owner_lock`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.owner_lock = folder / "owner.lock"
        self.keepers = folder / "keepers"
        self._held: int | None = None
        self._started: list[Service] = []
        """Kept, as nobody else keeps them: their keepers are our children and outlive every fixture."""

    @classmethod
    def begin(cls) -> Self:
        """The run of this process, which has to call :meth:`end`."""
        _sweep()
        run = cls(Path(tempfile.mkdtemp(prefix=_PREFIX)))
        run.folder.chmod(0o755)  # a daemon that runs as its own user has to get to its folder
        run.keepers.mkdir()
        run._held = os.open(run.owner_lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(run._held, fcntl.LOCK_EX)
        return run

    def end(self) -> None:
        """Let all daemons of the run end, wait for that, and remove their files (LBAAS_TEST_KEEP=1 leaves them)."""
        if self._held is None:
            return
        os.close(self._held)
        self._held = None
        deadline = time.monotonic() + _END_TIMEOUT
        for lock in self.keepers.iterdir():
            while not _is_free(lock):
                if time.monotonic() > deadline:
                    raise RuntimeError(f"the daemon of {lock} does not end")
                time.sleep(0.02)
        if os.environ.get("LBAAS_TEST_KEEP") != "1":
            shutil.rmtree(self.folder, ignore_errors=True)

    def private(self, kind: type[S], name: str) -> S:
        """A new instance, not started, for one test."""
        folder = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=self.folder))
        folder.chmod(0o755)
        return kind(self, folder, tuple(free_port() for _ in range(kind.ports_needed)))

    def shared(self, kind: type[S]) -> S:
        """The run's one instance, started by whichever process asks first."""
        facts = self.folder / f"{kind.name}.json"
        with self._lock(kind.name):
            if facts.exists():
                found = json.loads(facts.read_text())
                if "error" in found:  # do not let every worker repeat a start that takes a minute to fail
                    raise RuntimeError(found["error"])
                return kind(self, Path(found["folder"]), tuple(found["ports"]))
            service = self.private(kind, kind.name)
            self._started.append(service)
            try:
                service.start()
            except Exception as error:
                facts.write_text(json.dumps({"error": str(error)}))
                raise
            facts.write_text(json.dumps({"folder": str(service.folder), "ports": service.ports}))
            return service

    @contextlib.contextmanager
    def _lock(self, name: str) -> Iterator[None]:
        descriptor = os.open(self.folder / f"{name}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)


def _is_free(lock: Path) -> bool:
    descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)
    return True


def _sweep() -> None:
    """Remove the folders of runs that were killed before they could do it."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        lock = folder / "owner.lock"
        if lock.exists() and _is_free(lock) and all(_is_free(keeper) for keeper in (folder / "keepers").glob("*")):
            shutil.rmtree(folder, ignore_errors=True)
