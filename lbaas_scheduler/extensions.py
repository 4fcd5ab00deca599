"""Finds the pieces that others may bring: the only user of stevedore.

A name in the configuration is an entry point of the namespace, or a path to a class
(``package.module.Class``, or with a colon before the class). Whatever cannot be loaded is a
:class:`~lbaas_scheduler.errors.ConfigurationError` that names the namespace and the names that would be right.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from stevedore import NamedExtensionManager

from lbaas_scheduler.errors import ConfigurationError, LBaaSError

T = TypeVar("T")

SERVICE_PLUGINS = "lbaas_scheduler.service_plugins"
SERVICES = "lbaas_scheduler.services"
ALGORITHMS = "lbaas_scheduler.algorithms"
DEVICE_HANDLERS = "lbaas_scheduler.device_handlers"
AGENT_DRIVERS = "lbaas_scheduler.agent_drivers"
NETWORK_CONNECTORS = "lbaas_scheduler.network_connectors"


def load_class(namespace: str, name: str, base: type[T]) -> type[T]:
    """The class behind a name. Imports nothing but what the name stands for.

    :raises ConfigurationError: unknown, does not import, or is no ``base``.
    """
    loaded = _entry_point(namespace, name) or _by_path(namespace, name)
    if not (isinstance(loaded, type) and issubclass(loaded, base)):
        raise ConfigurationError(reason=f"'{name}' in {namespace} is not a {base.__name__}", namespace=namespace, name=name)
    return loaded


def load_by_device_type(namespace: str, names: Iterable[str], base: type[T], conf: Any) -> Mapping[str, T]:
    """Load and build what is keyed by device type: handlers, agent drivers.

    Each class gets its options registered on ``conf`` first and is then built with it.

    :raises ConfigurationError: also when two of them claim the same device type.
    """
    loaded: dict[str, T] = {}
    claimed_by: dict[str, str] = {}
    for name in names:
        cls = load_class(namespace, name, base)
        device_type = getattr(cls, "device_type", None)
        if not isinstance(device_type, str) or not device_type:
            raise ConfigurationError(reason=f"'{name}' in {namespace} names no device_type", namespace=namespace, name=name)
        if device_type in claimed_by:
            both = f"'{claimed_by[device_type]}' and '{name}'"
            raise ConfigurationError(reason=f"{both} in {namespace} both claim device type '{device_type}'; configure one")
        cls.register_opts(conf)  # type: ignore[attr-defined]
        loaded[device_type] = _build(cls, namespace, name, conf)
        claimed_by[device_type] = name
    return loaded


def load_all(namespace: str, base: type[T]) -> Mapping[str, type[T]]:
    """Every installed class of a namespace by its name."""
    return {name: load_class(namespace, name, base) for name in sorted(_installed(namespace))}


def _build(cls: type[T], namespace: str, name: str, conf: Any) -> T:
    try:
        return cls(conf)  # type: ignore[call-arg]
    except LBaaSError:
        raise
    except Exception as error:
        raise ConfigurationError(reason=f"'{name}' in {namespace} could not be built: {type(error).__name__}: {error}") from error


def _entry_point(namespace: str, name: str) -> Any:
    """Load this one entry point and no other: one broken package must not break the rest."""
    manager: NamedExtensionManager[Any] = NamedExtensionManager(
        namespace, [name], on_load_failure_callback=_refuse, warn_on_missing_entrypoint=False
    )
    return manager[name].plugin if name in manager else None


def _refuse(manager: Any, point: Any, error: BaseException) -> None:
    raise _cannot_import(manager.namespace, point.name, error) from error


def _by_path(namespace: str, path: str) -> Any:
    module, _, attribute = path.rpartition(":" if ":" in path else ".")
    if not module:
        known = ", ".join(sorted(_installed(namespace))) or "none"
        raise ConfigurationError(reason=f"'{path}' is not in {namespace}; installed: {known}", namespace=namespace, name=path)
    try:
        return getattr(importlib.import_module(module), attribute)
    except Exception as error:
        raise _cannot_import(namespace, path, error) from error


def _installed(namespace: str) -> list[str]:
    return NamedExtensionManager(namespace, [], warn_on_missing_entrypoint=False).entry_points_names()


def _cannot_import(namespace: str, name: str, error: BaseException) -> ConfigurationError:
    reason = f"'{name}' of {namespace} cannot be imported: {type(error).__name__}: {error}"
    return ConfigurationError(reason=reason, namespace=namespace, name=name)
