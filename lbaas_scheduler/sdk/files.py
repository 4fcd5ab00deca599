"""Files that another process reads while we write them."""

from __future__ import annotations

import fcntl
import os
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from weakref import WeakValueDictionary

from lbaas_scheduler.errors import ConfigurationError, DriverError


def write_atomically(path: Path, data: bytes | str, mode: int = 0o600) -> None:
    """Replace ``path`` by ``data`` in one step: a reader, and a crash, see the old file or the new one, never a part.

    The parent folder must exist. The temporary file lies in it and starts with a dot, so that a ``*.cfg`` pattern or a
    watcher of the name does not take it for a configuration. Text is written as UTF-8.

    :raises OSError: the file system refused; ``path`` is then as it was.
    """
    payload = data.encode("utf-8") if isinstance(data, str) else data
    descriptor, temporary = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".tmp", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            os.fchmod(stream.fileno(), mode)
            stream.write(payload)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


@contextmanager
def kept(folder: Path) -> Iterator[None]:
    """Around whatever reads and writes a device's files.

    :raises DriverError: they cannot be had, as on a full disk. Operators are told where.
    """
    try:
        yield
    except OSError as error:
        raise DriverError("The device's files cannot be kept.", operator_message=f"{folder}: {error}") from error


class Claim:
    """A folder that no other process may claim, for as long as the object lives. See :func:`claim`."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def __del__(self) -> None:
        os.close(self._descriptor)


_claims: WeakValueDictionary[tuple[int, int], Claim] = WeakValueDictionary()
_claiming = threading.Lock()


def claim(folder: Path, option: str) -> Claim:
    """Have a folder to ourselves, and make it if need be: an agent takes what another one keeps there for leftovers of its own.

    The claim ends with the process at the latest, however that ends. Within one process there may be any number of them.

    :param option: that names the folder, for the error.
    :raises ConfigurationError: another process has it, or it cannot be had at all.
    """
    try:
        folder.mkdir(mode=0o755, parents=True, exist_ok=True)
        with _claiming:
            return _claimed(os.open(folder, os.O_RDONLY | os.O_DIRECTORY))
    except BlockingIOError as error:
        raise ConfigurationError(f"{option}: another agent uses {folder}; each needs a folder of its own.") from error
    except OSError as error:
        raise ConfigurationError(f"{option}: {error.strerror}: {folder}.") from error


def _claimed(descriptor: int) -> Claim:
    made = Claim(descriptor)
    found = os.fstat(descriptor)
    key = found.st_dev, found.st_ino
    if (held := _claims.get(key)) is not None:
        return held
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    _claims[key] = made
    return made
