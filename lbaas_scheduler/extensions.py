"""Finds the pieces that others may bring: the only user of stevedore.

A name in the configuration is an entry point of the namespace, or a path to a class
(``package.module.Class``, or with a colon before the class). Whatever cannot be loaded is a
:class:`~lbaas_scheduler.errors.ConfigurationError` that names the namespace and the names that would be right.
"""

from __future__ import annotations

import importlib
import logging
from collections.abc import Iterable, Mapping
from typing import Any, Protocol, TypeVar

from oslo_config import cfg
from stevedore import NamedExtensionManager

from lbaas_scheduler.allocator.core.drivers import StateDriver
from lbaas_scheduler.allocator.core.resource import Resource
from lbaas_scheduler.conf import allocator as allocator_options
from lbaas_scheduler.conf.service import register_service_opts
from lbaas_scheduler.errors import ConfigurationError, LBaaSError
from lbaas_scheduler.scheduler.algorithms.base import Algorithm
from lbaas_scheduler.scheduler.services import Service
from lbaas_scheduler.sdk.drivers import AgentDriver
from lbaas_scheduler.sdk.handlers import DeviceHandler

LOG = logging.getLogger(__name__)

T = TypeVar("T")


class _Configured(Protocol):
    """What is keyed by device type."""

    @classmethod
    def register_opts(cls, conf: cfg.ConfigOpts) -> None: ...


C = TypeVar("C", bound=_Configured)

SERVICE_PLUGINS = "lbaas_scheduler.service_plugins"
SERVICES = "lbaas_scheduler.services"
ALGORITHMS = "lbaas_scheduler.algorithms"
DEVICE_HANDLERS = "lbaas_scheduler.device_handlers"
AGENT_DRIVERS = "lbaas_scheduler.agent_drivers"
NETWORK_CONNECTORS = "lbaas_scheduler.network_connectors"
MIGRATIONS = "lbaas_scheduler.migrations"
RESOURCES = "lbaas_scheduler.resources"
STATE_DRIVERS = "lbaas_scheduler.state_drivers"


def load_handlers(conf: cfg.ConfigOpts, service: str) -> Mapping[str, DeviceHandler]:
    """Device type → handler, as ``device_handlers`` in the service's group of the configuration lists them."""
    register_service_opts(conf, service)
    return load_by_device_type(f"{DEVICE_HANDLERS}.{service}", conf[service].device_handlers, DeviceHandler, conf)


def load_drivers(conf: cfg.ConfigOpts, names: Iterable[str]) -> Mapping[str, AgentDriver]:
    """Device type → agent driver. ``names``: what ``[agent] drivers`` lists."""
    return load_by_device_type(AGENT_DRIVERS, names, AgentDriver, conf)


def load_algorithms(conf: cfg.ConfigOpts, service: str) -> tuple[Mapping[str, Algorithm], str]:
    """Every installed algorithm of a service by name, since a request may name any; and the name of the configured one.

    One that cannot be loaded is logged and left out, unless it is the configured one.

    :raises ConfigurationError: ``scheduling_algorithm`` of the service's group cannot be loaded.
    """
    register_service_opts(conf, service)
    namespace, default = f"{ALGORITHMS}.{service}", conf[service].scheduling_algorithm
    algorithms = {default: _build(load_class(namespace, default, Algorithm), namespace, default)}
    for name in sorted(set(_installed(namespace)) - {default}):
        try:
            algorithms[name] = _build(load_class(namespace, name, Algorithm), namespace, name)
        except ConfigurationError as error:
            LOG.error("Algorithm left out: %s", error.message)
    return algorithms, default


def load_services() -> Mapping[str, Service]:
    """Every installed service by its name.

    :raises ConfigurationError: one cannot be loaded, or names itself differently from its entry point.
    """
    services = {name: _build(cls, SERVICES, name) for name, cls in load_all(SERVICES, Service).items()}
    for name, service in services.items():
        own_name = getattr(service, "name", None)
        if own_name != name:
            raise ConfigurationError(reason=f"'{name}' in {SERVICES} calls itself '{own_name}'; name both alike")
    return services


def load_service_plugin(name: str, base: type[T]) -> type[T]:
    """The class of a service plugin. Its builder knows what it is built with."""
    return load_class(SERVICE_PLUGINS, name, base)


def load_network_connector(conf: cfg.ConfigOpts, base: type[T]) -> type[T]:
    """The class that ``[DEFAULT] network_connector`` names, as ``lbaas_scheduler.sdk.networks`` describes it."""
    return load_class(NETWORK_CONNECTORS, conf.network_connector, base)


def load_resources(conf: cfg.ConfigOpts) -> Mapping[str, Resource]:
    """Kind → what ``[allocator] resources`` lists.

    :raises ConfigurationError: also when two of them are of the same kind.
    """
    allocator_options.register_opts(conf)
    loaded: dict[str, Resource] = {}
    for name in conf.allocator.resources:
        resource = _build(load_class(RESOURCES, name, Resource), RESOURCES, name)
        if resource.kind in loaded:
            raise ConfigurationError(
                reason=f"'{name}' in {RESOURCES} is a second resource of kind '{resource.kind}'; configure one"
            )
        loaded[resource.kind] = resource
    return loaded


def load_state_driver(conf: cfg.ConfigOpts) -> type[StateDriver]:
    """The class that ``[allocator] driver`` names; ``lbaas_scheduler.allocator.api.build`` opens it."""
    allocator_options.register_opts(conf)
    return load_class(STATE_DRIVERS, conf.allocator.driver, StateDriver)


def migration_folders() -> list[str]:
    """The folders of revisions of vendors' own tables: of each installed entry point, which names a package of revision files.

    :raises ConfigurationError: one cannot be imported, or is no package.
    """
    return [_folder(name) for name in sorted(_installed(MIGRATIONS))]


def _folder(name: str) -> str:
    package = _entry_point(MIGRATIONS, name)
    paths = list(getattr(package, "__path__", ()))
    if not paths:
        raise ConfigurationError(reason=f"'{name}' in {MIGRATIONS} is no package with revisions", namespace=MIGRATIONS, name=name)
    return str(paths[0])


def load_class(namespace: str, name: str, base: type[T]) -> type[T]:
    """The class behind a name. Imports nothing but what the name stands for.

    :raises ConfigurationError: unknown, does not import, or is no ``base``.
    """
    loaded = _entry_point(namespace, name) or _by_path(namespace, name)
    if not (isinstance(loaded, type) and issubclass(loaded, base)):
        raise ConfigurationError(reason=f"'{name}' in {namespace} is not a {base.__name__}", namespace=namespace, name=name)
    absent = ", ".join(sorted(getattr(loaded, "__abstractmethods__", ())))
    if absent:
        raise ConfigurationError(reason=f"'{name}' in {namespace} does not implement: {absent}", namespace=namespace, name=name)
    return loaded


def load_by_device_type(namespace: str, names: Iterable[str], base: type[C], conf: cfg.ConfigOpts) -> Mapping[str, C]:
    """Load and build what is keyed by device type: handlers, agent drivers.

    Each class gets its options registered on ``conf`` first and is then built with it.

    :raises ConfigurationError: also when two of them claim the same device type.
    """
    loaded: dict[str, C] = {}
    claimed_by: dict[str, str] = {}
    for name in names:
        cls = load_class(namespace, name, base)
        device_type = getattr(cls, "device_type", None)
        if not isinstance(device_type, str) or not device_type:
            raise ConfigurationError(reason=f"'{name}' in {namespace} names no device_type", namespace=namespace, name=name)
        if device_type in claimed_by:
            both = f"'{claimed_by[device_type]}' and '{name}'"
            raise ConfigurationError(reason=f"{both} in {namespace} both claim device type '{device_type}'; configure one")
        cls.register_opts(conf)
        loaded[device_type] = _build(cls, namespace, name, conf)
        claimed_by[device_type] = name
    return loaded


def load_all(namespace: str, base: type[T]) -> Mapping[str, type[T]]:
    """Every installed class of a namespace by its name."""
    return {name: load_class(namespace, name, base) for name in sorted(_installed(namespace))}


def _build(cls: type[T], namespace: str, name: str, *arguments: Any) -> T:
    try:
        return cls(*arguments)
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
