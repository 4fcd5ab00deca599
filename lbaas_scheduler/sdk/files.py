"""Files that another process reads while we write them."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


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
