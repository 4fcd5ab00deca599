"""The LoadBalancer service on the bus. Its client is :class:`lbaas_scheduler.rpc.lbaas_api.LoadBalancerClient`."""

from __future__ import annotations

import oslo_messaging

from lbaas_scheduler.errors import Conflict, Exhausted, InvalidRequest, NotAuthorized, NotFound
from lbaas_scheduler.plugins.loadbalancer.base import LoadBalancerPluginBase
from lbaas_scheduler.rpc import topics
from lbaas_scheduler.rpc.dispatching import expecting

METHODS = tuple(name for name, value in vars(LoadBalancerPluginBase).items() if getattr(value, "__isabstractmethod__", False))
"""Exactly what :class:`~lbaas_scheduler.plugins.loadbalancer.base.LoadBalancerPluginBase` itself declares."""


class LoadBalancerEndpoint:
    """Every method of the plugin under its own name, and nothing else of it.

    Errors that a caller may cause are declared as expected: they travel to him and are no failures of the server's in its log.
    Others travel as well, and are logged.
    """

    target = oslo_messaging.Target(namespace=topics.LOADBALANCER_NAMESPACE, version=topics.VERSION)

    def __init__(self, plugin: LoadBalancerPluginBase) -> None:
        expected = expecting(InvalidRequest, NotAuthorized, NotFound, Conflict, Exhausted)
        for name in METHODS:
            setattr(self, name, expected(getattr(plugin, name)))
