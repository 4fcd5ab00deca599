"""What the agent is told over the bus. Nothing here blocks: work is handed to the workers."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import oslo_messaging
from oslo_context.context import RequestContext

from lbaas_scheduler.agent.changes import Change
from lbaas_scheduler.agent.resync import Resync
from lbaas_scheduler.agent.workers import DeviceWorkers
from lbaas_scheduler.domain.deployments import Deployment, Version
from lbaas_scheduler.errors import InvalidRequest
from lbaas_scheduler.rpc import topics
from lbaas_scheduler.rpc.codec import decode_device, from_document
from lbaas_scheduler.rpc.server_api import SealedDevice

LOG = logging.getLogger(__name__)

Document = Mapping[str, Any]


class AgentEndpoint:
    """Server side of :class:`~lbaas_scheduler.rpc.agent_api.AgentAPI`.

    :param trusted: whether what comes now was sent now, and not to a predecessor or during an outage.

    A message that cannot be read is logged and dropped: nobody waits for an answer, and the server's deadline tells the tenant.
    """

    target = oslo_messaging.Target(version=topics.VERSION)

    def __init__(self, workers: DeviceWorkers, resync: Resync, trusted: Callable[[], bool]) -> None:
        self._workers = workers
        self._resync = resync
        self._trusted = trusted

    def create_vip(self, context: RequestContext, device: Document, deployment: Document) -> None:
        self.change_vips(context, [{"verb": "create_vip", "device": device, "deployment": deployment}])

    def update_vip(self, context: RequestContext, device: Document, deployment: Document) -> None:
        self.change_vips(context, [{"verb": "update_vip", "device": device, "deployment": deployment}])

    def delete_vip(self, context: RequestContext, device: Document, vip_id: str, version: list[int]) -> None:
        self.change_vips(context, [{"verb": "delete_vip", "device": device, "vip_id": vip_id, "version": version}])

    def change_vips(self, context: RequestContext, changes: Sequence[Document]) -> None:
        """Several of the above in one message. One that cannot be read does not cost the others.

        What one device is to do is handed on together, so that its driver gets it in one call, and not the first part alone.
        """
        offered: dict[str, tuple[SealedDevice, list[Change]]] = {}
        for document in changes:
            verb = None
            try:
                arguments = dict(document)
                verb = arguments.pop("verb", None)
                sealed, change = _READ[verb](**arguments)
            except (InvalidRequest, KeyError, TypeError, ValueError) as error:
                LOG.error("A part of a message cannot be read and is dropped: %s of %r", error, verb)
                continue
            _, together = offered.get(sealed.device.id, (sealed, []))
            offered[sealed.device.id] = (sealed, [*together, change])
        for sealed, together in offered.values():
            self._workers.offer(sealed, together, self._trusted())

    def resync(self, context: RequestContext, device_id: str | None = None) -> None:
        if device_id is None:
            self._resync.want_all()
        else:
            self._resync.want(device_id)

    def agent_updated(self, context: RequestContext, admin_state_up: bool) -> None:
        """A disabled agent keeps what it serves and gets nothing new: the servers see to that. Enabled, it catches up."""
        LOG.info("An administrator %s this agent", "enabled" if admin_state_up else "disabled")
        if admin_state_up:
            self._resync.want_all()


def _apply(device: Document, deployment: Document, **_of_newer_servers: Any) -> tuple[SealedDevice, Change]:
    return SealedDevice(*decode_device(device)), Change.apply(from_document(Deployment, deployment))


def _remove(device: Document, vip_id: str, version: list[int], **_of_newer_servers: Any) -> tuple[SealedDevice, Change]:
    change = Change.remove(from_document(str, vip_id), from_document(Version, version))
    return SealedDevice(*decode_device(device)), change


_READ: Mapping[Any, Callable[..., tuple[SealedDevice, Change]]] = {
    "create_vip": _apply,
    "update_vip": _apply,
    "delete_vip": _remove,
}
