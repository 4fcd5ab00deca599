"""Sends desired state to agents. Always after the commit, and never more than a short cut: what is not sent here, or gets lost
on the way, stays due and is sent again by the reconciler."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import sqlalchemy as sa
from oslo_db import exception as db_exception
from oslo_messaging import MessageDeliveryFailure

from lbaas_scheduler.db import addressed, devices
from lbaas_scheduler.db.deployments import DeploymentRow
from lbaas_scheduler.db.session import Database
from lbaas_scheduler.devices.assignments import Move
from lbaas_scheduler.domain.deployments import Deployment, Version
from lbaas_scheduler.domain.devices import Device
from lbaas_scheduler.domain.loadbalancers import Vip
from lbaas_scheduler.errors import LBaaSError
from lbaas_scheduler.rpc.agent_api import VipChange
from lbaas_scheduler.rpc.codec import encode_device
from lbaas_scheduler.sdk.networks import Wirings

LOG = logging.getLogger(__name__)

Documents = Callable[[sa.Connection, Collection[str]], Mapping[str, Vip]]
"""Builds VIPs from their rows; those that are gone are left out."""

MAX_PER_MESSAGE = 20
"""So many VIPs go into one message."""

MAX_MEMBERS_PER_MESSAGE = 20_000
"""And so many members of theirs, some megabytes: RabbitMQ 4 takes no message of more than 16 MiB. A single VIP may have more."""

MAX_KNOWN_DEVICES = 10_000
"""Devices kept in memory; some kilobytes each."""

LoadsWirings = Callable[[sa.Connection, Mapping[str, Device], Collection[str]], Wirings]


class Agents(Protocol):
    """What is asked of :class:`~lbaas_scheduler.rpc.agent_api.AgentAPI`."""

    def create_vip(self, host: str, device: Mapping[str, Any], deployment: Deployment) -> None: ...

    def update_vip(self, host: str, device: Mapping[str, Any], deployment: Deployment) -> None: ...

    def delete_vip(self, host: str, device: Mapping[str, Any], vip_id: str, version: Version) -> None: ...

    def change_vips(self, host: str, changes: Sequence[VipChange]) -> None: ...

    def resync(self, host: str, device_id: str | None = None) -> None: ...


class Casts(Protocol):
    """What tells agents of what was committed. Never raises. Whether it waits for the bus, the implementation says."""

    def cast(self, vip_ids: Collection[str]) -> object:
        """Send each VIP's whole desired state to its device's agent; what is settled is left out."""

    def send(self, vip_ids: Collection[str]) -> set[str]:
        """As :meth:`cast`, for whoever is to know what became of it, in bounded time.

        :returns: VIPs that could not be sent because database or bus are away.
        """

    def announce(self, moves: Iterable[Move]) -> None:
        """Devices changed hands: let the new agents look at them, and the old ones let go of them."""

    def tell_of(self, device_id: str, *hosts: str | None) -> object:
        """Let the agents on these hosts look at a device: fetch it and what is on it, or let go of it."""


@dataclass(frozen=True, slots=True)
class _Known:
    """A device, and what its agent is told of it."""

    device: Device
    document: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class _Order:
    """One cast that is to be made."""

    row: DeploymentRow
    host: str
    device: Mapping[str, Any]
    vip: Vip | None
    wiring: Mapping[str, Any]

    @property
    def change(self) -> VipChange:
        row = self.row
        if self.vip is None or row.removing:
            return VipChange("delete_vip", {"device": self.device, "vip_id": row.resource_id, "version": row.version})
        verb = "create_vip" if row.applied_revision == 0 else "update_vip"
        return VipChange(verb, {"device": self.device, "deployment": Deployment(self.vip, row.version, self.wiring)})


class Caster(Casts):
    """Casts what is due of VIPs to the agents of their devices, and waits until the bus has it, or is known to be away.

    :param load_vips: :func:`lbaas_scheduler.plugins.loadbalancer.documents.load`.
    :param wirings: :meth:`lbaas_scheduler.sdk.networks.NetworkConnector.wirings`.
    """

    def __init__(self, database: Database, agents: Agents, load_vips: Documents, wirings: LoadsWirings = lambda *_: {}) -> None:
        self._database = database
        self._agents = agents
        self._load_vips = load_vips
        self._wirings = wirings
        self._known: dict[str, _Known] = {}

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
        messages = _messages(orders)
        for number, message in enumerate(messages):
            try:
                self._send(message)
            except MessageDeliveryFailure as error:
                # Each further try would wait for the broker anew.
                unsent = {order.row.resource_id for later in messages[number:] for order in later}
                LOG.warning("The message bus is away; %d casts wait: %s", len(unsent), error)
                return unsent
        return set()

    def send(self, vip_ids: Collection[str]) -> set[str]:
        return self.cast(vip_ids)

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
        due = addressed.due(conn, vip_ids)
        known = self._devices(conn, {it.row.device_id: it.generation for it in due})
        wirings = self._wirings(conn, {id_: it.device for id_, it in known.items()}, [it.row.resource_id for it in due])
        vips = self._vips(conn, [it.row.resource_id for it in due if not it.row.removing])
        orders = []
        for it in due:
            row = it.row
            if it.host is None or row.device_id not in known:
                LOG.warning("No agent drives device %s; %s waits for one", row.device_id, row.resource_id)
            elif not row.removing and row.resource_id not in vips:
                LOG.warning("Deployment of %s on device %s has no VIP that could be built", row.resource_id, row.device_id)
            else:
                wiring = wirings.get((row.resource_id, row.device_id), {})
                orders.append(_Order(row, it.host, known[row.device_id].document, vips.get(row.resource_id), wiring))
        return orders

    def _devices(self, conn: sa.Connection, generations: Mapping[str, int]) -> dict[str, _Known]:
        """Those of the devices that exist. What an agent is told of one is read anew only after it changed."""
        known = self._known
        fresh = {id_ for id_, generation in generations.items() if id_ in known and known[id_].device.generation == generation}
        missing = generations.keys() - fresh
        if missing:
            read = devices.by_ids_stored(conn, missing)
            if len(known) + len(read) > MAX_KNOWN_DEVICES:
                # A new one, since other threads may be reading the old one.
                known = self._known = {}
            known.update((id_, _Known(it.device, encode_device(it.device, it.secret))) for id_, it in read.items())
        return {id_: known[id_] for id_ in generations if id_ in known}

    def _vips(self, conn: sa.Connection, vip_ids: Collection[str]) -> Mapping[str, Vip]:
        return build_each(lambda ids: self._load_vips(conn, ids), vip_ids)

    def _send(self, message: Sequence[_Order]) -> None:
        """:raises MessageDeliveryFailure: the bus is away."""
        host, changes = message[0].host, [order.change for order in message]
        try:
            if len(changes) > 1:
                self._agents.change_vips(host, changes)
            else:
                getattr(self._agents, changes[0].verb)(host, **changes[0].arguments)
        except MessageDeliveryFailure:
            raise
        except Exception:
            if len(message) > 1:
                for order in message:
                    self._send([order])
                return
            LOG.exception("VIP %s could not be cast to %s", message[0].row.resource_id, host)


def _messages(orders: Sequence[_Order]) -> list[Sequence[_Order]]:
    """What goes to one agent goes together: a message costs broker and agent more than what is in it."""
    of_host: dict[str, list[_Order]] = {}
    for order in orders:
        of_host.setdefault(order.host, []).append(order)
    return [message for found in of_host.values() for message in _bounded(found)]


def _bounded(orders: Sequence[_Order]) -> Iterator[Sequence[_Order]]:
    message: list[_Order] = []
    members = 0
    for order in orders:
        more = 0 if order.vip is None else len(order.vip.pool.members)
        if message and (len(message) == MAX_PER_MESSAGE or members + more > MAX_MEMBERS_PER_MESSAGE):
            yield message
            message, members = [], 0
        message.append(order)
        members += more
    if message:
        yield message


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
