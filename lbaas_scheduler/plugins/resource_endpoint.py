"""The allocator on the bus. Its client is :class:`lbaas_scheduler.rpc.allocator_api.AllocatorClient`."""

from __future__ import annotations

import oslo_messaging

from lbaas_scheduler.errors import LBaaSError
from lbaas_scheduler.rpc import topics
from lbaas_scheduler.rpc.dispatching import expecting

METHODS = (
    "define",
    "resize",
    "undefine",
    "pool",
    "pools",
    "allocate",
    "hold",
    "commit",
    "release",
    "release_owner",
    "release_value",
    "allocation",
    "allocations",
    "usage",
    "history",
    "keys",
    "check",
    "reconcile",
)
"""Exactly what may be called from outside."""


class AllocatorEndpoint:
    """The methods under their own names. Errors that a caller may cause are expected: no failures in the log."""

    target = oslo_messaging.Target(namespace=topics.ALLOCATOR_NAMESPACE, version=topics.VERSION)

    def __init__(self, resources: object) -> None:
        expected = expecting(LBaaSError)
        for name in METHODS:
            setattr(self, name, expected(getattr(resources, name)))
