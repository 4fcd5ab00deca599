"""What a service plugin is to the server that loads it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any


class ServicePluginBase(ABC):
    """One service of the server. Registered under ``lbaas_scheduler.service_plugins``, chosen by ``[DEFAULT] service_plugins``.

    A plugin gets all that it needs by its constructor. It answers calls from any thread between :meth:`start` and :meth:`stop`.
    """

    service: str
    """Name of the service, as service types and devices spell it."""

    @abstractmethod
    def rpc_endpoints(self) -> Sequence[Any]:
        """The ``oslo.messaging`` endpoints that the server exposes for this plugin."""

    def start(self) -> None:
        """Begin what runs in the background. Called once, before the first call."""

    def stop(self) -> None:
        """End it, and return once it has ended. May be called without :meth:`start`, and twice."""
