"""What servers tell agents. Casts: a lost one costs a delay, since the reconciler repeats what is not applied in time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import oslo_messaging

from lbaas_scheduler.domain.deployments import Deployment, Version
from lbaas_scheduler.rpc import topics
from lbaas_scheduler.rpc.codec import to_document
from lbaas_scheduler.rpc.transport import delivering, get_client, service_context

DeviceDocument = Mapping[str, Any]
"""A device as :func:`~lbaas_scheduler.rpc.codec.encode_device` makes it, its secret sealed."""


@dataclass(frozen=True, slots=True)
class VipChange:
    """``verb``: a method of :class:`AgentAPI` that is about one VIP; ``arguments``: what it takes beside the host."""

    verb: str
    arguments: Mapping[str, Any]


class AgentAPI:
    """Client of the agents' endpoint, version 1.0.

    Every method returns once the broker has the message.

    :raises oslo_messaging.MessageDeliveryFailure: the broker is away (after about three seconds).
    """

    def __init__(self, transport: oslo_messaging.Transport) -> None:
        self._client = get_client(transport, topics.AGENTS)

    def create_vip(self, host: str, device: DeviceDocument, deployment: Deployment) -> None:
        """Deploy a VIP. The whole desired state travels; the agent treats create and update alike."""
        self._cast(host, "create_vip", device=device, deployment=to_document(deployment))

    def update_vip(self, host: str, device: DeviceDocument, deployment: Deployment) -> None:
        """Bring a VIP to the state described."""
        self._cast(host, "update_vip", device=device, deployment=to_document(deployment))

    def delete_vip(self, host: str, device: DeviceDocument, vip_id: str, version: Version) -> None:
        """Remove a VIP. ``version`` is the deployment's desired one, higher than that of the last apply."""
        self._cast(host, "delete_vip", device=device, vip_id=vip_id, version=to_document(version))

    def change_vips(self, host: str, changes: Sequence[VipChange]) -> None:
        """As calling the methods that are named, one after the other, but in one message."""
        self._cast(host, "change_vips", changes=[{"verb": it.verb, **_encoded(it.arguments)} for it in changes])

    def resync(self, host: str, device_id: str | None = None) -> None:
        """Compare one device, or all of the agent, with what is desired, and repair."""
        self._cast(host, "resync", device_id=device_id)

    def agent_updated(self, host: str, admin_state_up: bool) -> None:
        """An administrator enabled or disabled the agent."""
        self._cast(host, "agent_updated", admin_state_up=admin_state_up)

    def _cast(self, host: str, method: str, **arguments: Any) -> None:
        with delivering():
            self._client.prepare(server=host).cast(service_context(), method, **arguments)


def _encoded(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """A device is a document already."""
    return {name: value if name == "device" else to_document(value) for name, value in arguments.items()}
