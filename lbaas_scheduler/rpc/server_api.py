"""What agents ask and tell servers. Any server answers."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import oslo_messaging

from lbaas_scheduler.domain.deployments import Deployment, Result, Version, VipStats
from lbaas_scheduler.domain.devices import Device
from lbaas_scheduler.errors import InvalidRequest
from lbaas_scheduler.rpc import topics
from lbaas_scheduler.rpc.codec import decode_device, from_document, to_document
from lbaas_scheduler.rpc.transport import delivering, get_client, service_context

LOG = logging.getLogger(__name__)


class Operation(StrEnum):
    """What is to become of a VIP on its device."""

    APPLY = "apply"
    REMOVE = "remove"


@dataclass(frozen=True, slots=True)
class Desired:
    """One line of a device's desired state. On the wire ``{vip_id, epoch, revision, operation}``."""

    vip_id: str
    epoch: int
    revision: int
    operation: Operation

    @property
    def version(self) -> Version:
        return Version(self.epoch, self.revision)


@dataclass(frozen=True, slots=True)
class SealedDevice:
    """A device of this agent with its management secret still sealed. ``token`` "" = no secret."""

    device: Device
    token: str = ""


def _readable(document: Mapping[str, Any]) -> SealedDevice | None:
    try:
        return SealedDevice(*decode_device(document))
    except InvalidRequest as error:
        LOG.error("Device %s is left as it is: %s Is the server newer than this agent?", document["id"], error.message)
        return None


class ServerAPI:
    """Client of the servers' endpoint for agents, version 1.0.

    :raises oslo_messaging.MessagingTimeout: no server answered within ``rpc_response_timeout``.
    :raises oslo_messaging.MessageDeliveryFailure: the broker is away.
    """

    def __init__(self, transport: oslo_messaging.Transport) -> None:
        self._client = get_client(transport, topics.SERVERS)

    def report_state(self, state: Mapping[str, Any]) -> None:
        """Heartbeat (cast): ``{host, binary, topic, agent_type, started_at, configurations, start_flag}``."""
        self._cast("report_state", state=dict(state))

    def get_devices(self, host: str) -> dict[str, SealedDevice | None]:
        """All devices that the agent on ``host`` drives, by id. None: this release cannot read the server's description of it."""
        documents = self._call("get_devices", host=host)
        return {from_document(str, document["id"]): _readable(document) for document in documents}

    def list_desired(self, host: str, device_id: str, marker: str | None, limit: int) -> list[Desired]:
        """The next ``limit`` lines after VIP id ``marker``, ordered by VIP id; a shorter answer is the last page."""
        documents = self._call("list_desired", host=host, device_id=device_id, marker=marker, limit=limit)
        return [from_document(Desired, document) for document in documents]

    def get_deployments(self, host: str, device_id: str, vip_ids: Sequence[str]) -> list[Deployment]:
        """The whole desired state of these VIPs; those that are gone, elsewhere or to be removed are left out."""
        documents = self._call("get_deployments", host=host, device_id=device_id, vip_ids=list(vip_ids))
        return [from_document(Deployment, document) for document in documents]

    def report_results(self, host: str, results: Mapping[str, Sequence[Result]]) -> None:
        """What came of applies and removals, by device id. A call: on return a server has it. May be repeated."""
        documents = {device_id: to_document(of_device) for device_id, of_device in results.items()}
        self._call("report_results", host=host, results=documents)

    def report_stats(self, host: str, device_id: str, stats: Mapping[str, VipStats]) -> None:
        """Counters and member health (cast): a lost one is replaced by the next."""
        self._cast("report_stats", host=host, device_id=device_id, stats=to_document(stats))

    def _call(self, method: str, **arguments: Any) -> Any:
        with delivering():
            return self._client.call(service_context(), method, **arguments)

    def _cast(self, method: str, **arguments: Any) -> None:
        with delivering():
            self._client.cast(service_context(), method, **arguments)
