"""Sends desired state to agents. Always after the commit, and never more than a short cut: what is not sent here, or gets lost
on the way, stays due and is sent again by the reconciler."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import sqlalchemy as sa
from oslo_db import exception as db_exception
from oslo_messaging import MessageDeliveryFailure

from lbaas_scheduler.db import deployments, device_agents, devices
from lbaas_scheduler.db.deployments import DeploymentRow
from lbaas_scheduler.db.session import Database
from lbaas_scheduler.devices.assignments import Move
from lbaas_scheduler.domain.deployments import Deployment, Version
from lbaas_scheduler.domain.devices import Device
from lbaas_scheduler.domain.loadbalancers import Vip
from lbaas_scheduler.errors import LBaaSError
from lbaas_scheduler.rpc.codec import encode_device
from lbaas_scheduler.sdk.networks import Wirings

LOG = logging.getLogger(__name__)

Documents = Callable[[sa.Connection, Collection[str]], Mapping[str, Vip]]
"""Builds VIPs from their rows; those that are gone are left out."""

LoadsWirings = Callable[[sa.Connection, Mapping[str, Device], Collection[str]], Wirings]


class Agents(Protocol):
    """What is asked of :class:`~lbaas_scheduler.rpc.agent_api.AgentAPI`."""

    def create_vip(self, host: str, device: Mapping[str, Any], deployment: Deployment) -> None: ...

    def update_vip(self, host: str, device: Mapping[str, Any], deployment: Deployment) -> None: ...

    def delete_vip(self, host: str, device: Mapping[str, Any], vip_id: str, version: Version) -> None: ...

    def resync(self, host: str, device_id: str | None = None) -> None: ...


@dataclass(frozen=True, slots=True)
class _Order:
    """One cast that is to be made."""

    row: DeploymentRow
    host: str
    device: Mapping[str, Any]
    vip: Vip | None
    wiring: Mapping[str, Any]


class Caster:
    """Casts what is due of VIPs to the agents of their devices.

    :param load_vips: :func:`lbaas_scheduler.plugins.loadbalancer.documents.load`.
    :param wirings: :meth:`lbaas_scheduler.sdk.networks.NetworkConnector.wirings`.
    """

    def __init__(self, database: Database, agents: Agents, load_vips: Documents, wirings: LoadsWirings = lambda *_: {}) -> None:
        self._database = database
        self._agents = agents
        self._load_vips = load_vips
        self._wirings = wirings

    def cast(self, vip_ids: Collection[str]) -> set[str]:
        """Send each VIP's whole desired state to its device's agent; what is settled is left out. Never raises.

        A VIP whose document cannot be built, or whose device has no agent, does not keep the others from being sent.

        :returns: VIPs that could not be sent because the database or the message bus is away.
        """
        try:
            orders = self._database.read(lambda conn: self._orders(conn, vip_ids))
        except (LBaaSError, db_exception.DBError, sa.exc.SQLAlchemyError) as error:
            LOG.warning("Nothing could be read to be cast, it will be later: %s", error)
            return set(vip_ids)
        for number, order in enumerate(orders):
            try:
                self._send(order)
            except MessageDeliveryFailure as error:
                # Each further try would wait for the broker anew.
                LOG.warning("The message bus is away; %d casts wait: %s", len(orders) - number, error)
                return {unsent.row.resource_id for unsent in orders[number:]}
            except Exception:
                LOG.exception("VIP %s could not be cast to %s", order.row.resource_id, order.host)
        return set()

    def announce(self, moves: Iterable[Move]) -> None:
        """Devices changed hands: let the new agents look at them, and the old ones let go of them. Never raises."""
        for move in moves:
            if not self.tell_of(move.device_id, move.new_host, move.old_host):
                return

    def tell_of(self, device_id: str, *hosts: str | None) -> bool:
        """Let the agents on these hosts look at a device: fetch it and what is on it, or let go of it. Never raises.

        :returns: whether the message bus is there.
        """
        for host in dict.fromkeys(hosts):
            try:
                if host is not None:
                    self._agents.resync(host, device_id)
            except MessageDeliveryFailure as error:
                # No harm is done: agents compare all they have when they start and from time to time.
                LOG.warning("The message bus is away; the agent on %s is not told of device %s: %s", host, device_id, error)
                return False
        return True

    def _orders(self, conn: sa.Connection, vip_ids: Collection[str]) -> list[_Order]:
        due = [row for row in deployments.for_resources(conn, vip_ids) if row.due_at is not None]
        device_ids = {row.device_id for row in due}
        hosts = {device_id: binding.host for device_id, binding in device_agents.by_devices(conn, device_ids).items()}
        stored = devices.by_ids_stored(conn, device_ids)
        documents = {device_id: encode_device(it.device, it.secret) for device_id, it in stored.items()}
        wirings = self._wirings(conn, {id_: it.device for id_, it in stored.items()}, [row.resource_id for row in due])
        vips = self._vips(conn, [row.resource_id for row in due if not row.removing])
        orders = []
        for row in due:
            if row.device_id not in hosts:
                LOG.warning("No agent drives device %s; %s waits for one", row.device_id, row.resource_id)
            elif not row.removing and row.resource_id not in vips:
                LOG.warning("Deployment of %s on device %s has no VIP that could be built", row.resource_id, row.device_id)
            else:
                wiring = wirings.get((row.resource_id, row.device_id), {})
                orders.append(_Order(row, hosts[row.device_id], documents[row.device_id], vips.get(row.resource_id), wiring))
        return orders

    def _vips(self, conn: sa.Connection, vip_ids: Collection[str]) -> Mapping[str, Vip]:
        return build_each(lambda ids: self._load_vips(conn, ids), vip_ids)

    def _send(self, order: _Order) -> None:
        row = order.row
        if order.vip is None or row.removing:
            self._agents.delete_vip(order.host, order.device, row.resource_id, row.version)
            return
        send = self._agents.create_vip if row.applied_revision == 0 else self._agents.update_vip
        send(order.host, order.device, Deployment(order.vip, row.version, order.wiring))


def build_each(load: Callable[[Collection[str]], Mapping[str, Vip]], vip_ids: Collection[str]) -> dict[str, Vip]:
    """Build VIPs, all at once if possible; if one of them cannot be built, the others are, one by one."""
    try:
        return dict(load(vip_ids))
    except (db_exception.DBError, sa.exc.SQLAlchemyError):
        raise
    except Exception:
        if len(vip_ids) == 1:
            LOG.exception("VIP %s cannot be built from its rows", next(iter(vip_ids)))
            return {}
    return {vip_id: vip for each in vip_ids for vip_id, vip in build_each(load, [each]).items()}
