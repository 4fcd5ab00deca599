"""Networks and subnets of the local registry: create, read, list, change, delete."""

from __future__ import annotations

import logging
from collections import defaultdict
from typing import Any

from oslo_context.context import RequestContext
from oslo_utils import uuidutils
from sqlalchemy.engine import Connection

from lbaas_scheduler.allocator.manager import ResourceAllocator
from lbaas_scheduler.db import networks, vips
from lbaas_scheduler.db.rows import AnyRow
from lbaas_scheduler.db.session import Database
from lbaas_scheduler.domain.listing import Listing
from lbaas_scheduler.errors import (
    Conflict,
    InvalidRequest,
    NetworkNotFound,
    NotAuthorized,
    SubnetInUse,
    SubnetNotFound,
    Unavailable,
)
from lbaas_scheduler.networks import rules
from lbaas_scheduler.networks.address_pools import AddressPools
from lbaas_scheduler.networks.joint import Joint
from lbaas_scheduler.networks.schemas import NETWORK, SUBNET
from lbaas_scheduler.schemas.access import Fields, Filters, is_id, listing, owner, projected
from lbaas_scheduler.schemas.attributes import Body, Verb, accept

LOG = logging.getLogger(__name__)

Document = dict[str, Any]

NETWORK_ATTRIBUTES = ("id", "tenant_id", "name", "shared", "network_type", "physical_network", "segmentation_id")
SUBNET_ATTRIBUTES = ("id", "tenant_id", "network_id", "name", "cidr", "ip_version", "gateway_ip", "shared")
OPERATORS_OWN = ("shared", "network_type", "physical_network", "segmentation_id")
"""Attributes of a network that only administrators may set."""


class NetworkRegistry:
    """Tenants keep their own networks, and use those that administrators share.

    :param allocator: gets a pool of addresses for each subnet.
    :param pick: which of a subnet's free addresses VIPs get: one of the allocator's words.
    """

    def __init__(self, database: Database, allocator: ResourceAllocator, pick: str = "lowest") -> None:
        self._database = database
        self._joint = Joint(database, allocator)
        self._pools = AddressPools(pick)

    def create_network(self, context: RequestContext, network: Body) -> Document:
        _check_operators_own(context, network)
        values = accept(NETWORK, network, Verb.POST)
        values["tenant_id"] = owner(context, values)
        values["id"] = uuidutils.generate_uuid()
        if values["network_type"] == "vlan" and not 1 <= (values["segmentation_id"] or 0) <= 4094:
            raise InvalidRequest(reason="a vlan network needs a segmentation_id from 1 to 4094", attribute="segmentation_id")

        def work(conn: Connection) -> Document:
            if networks.find(conn, values["id"]) is None:  # else a commit whose answer got lost
                networks.insert(conn, values)
            return _network(_find_network(conn, context, values["id"]), [])

        return self._database.write(work)

    def get_network(self, context: RequestContext, id: str, fields: Fields | None = None) -> Document:
        """:raises NetworkNotFound: absent, or neither the caller's nor shared."""

        def work(conn: Connection) -> Document:
            row = _find_network(conn, context, id)
            return _network(row, [subnet.id for subnet in networks.subnets_of(conn, id)])

        return projected(self._database.read(work), fields)

    def get_networks(
        self, context: RequestContext, filters: Filters | None = None, fields: Fields | None = None, **page: Any
    ) -> list[Document]:
        asked = _widened(listing(context, NETWORK, filters, **page))

        def work(conn: Connection) -> list[Document]:
            subnets = defaultdict(list)
            for row in networks.subnet_rows(conn, Listing(), _tenant(context)):
                subnets[row.network_id].append(row.id)
            return [_network(row, subnets[row.id]) for row in networks.rows(conn, asked, _tenant(context))]

        return [projected(document, fields) for document in self._database.read(work)]

    def update_network(self, context: RequestContext, id: str, network: Body) -> Document:
        """:raises NotAuthorized: it is shared, and the caller is not its owner."""
        _check_operators_own(context, network)
        values = accept(NETWORK, network, Verb.PUT)

        def work(conn: Connection) -> Document:
            _check_own(context, _find_network(conn, context, id))
            if values:
                networks.update(conn, id, values)
            subnets = [subnet.id for subnet in networks.subnets_of(conn, id)]
            return _network(_find_network(conn, context, id), subnets)

        return self._database.write(work)

    def delete_network(self, context: RequestContext, id: str) -> None:
        """:raises Conflict: it has subnets."""

        def work(conn: Connection) -> None:
            _check_own(context, _find_network(conn, context, id))
            networks.lock(conn, id)
            count = len(networks.subnets_of(conn, id))
            if count:
                raise Conflict(reason=f"network {id} still has {count} subnet(s)", id=id)
            networks.delete(conn, id)

        self._database.write(work)

    def create_subnet(self, context: RequestContext, subnet: Body) -> Document:
        """:raises InvalidRequest: host bits in the cidr, a gateway or pool outside of it, pools that overlap.

        :raises Conflict: it overlaps another subnet of the network.
        """
        values = accept(SUBNET, subnet, Verb.POST)
        values["tenant_id"] = owner(context, values)
        values["id"] = uuidutils.generate_uuid()
        values |= _geometry(values)

        def work(conn: Connection) -> AnyRow:
            _check_own(context, _find_network(conn, context, values["network_id"]))
            networks.lock(conn, values["network_id"])
            if networks.find_subnet(conn, values["id"]) is None:  # else a commit whose answer got lost
                _check_apart(conn, values["network_id"], rules.parse_cidr(values["cidr"]))
                networks.insert_subnet(conn, values)
            row = _find_subnet(conn, context, values["id"])
            if self._joint.is_one:
                self._pools.define(self._joint.inside(conn), rules.Subnet.of(row), {})
            return row

        row = self._database.write(work)
        if not self._joint.is_one:
            self._define_later(rules.Subnet.of(row))
        return _subnet(row)

    def get_subnet(self, context: RequestContext, id: str, fields: Fields | None = None) -> Document:
        """:raises SubnetNotFound: absent, or neither the caller's nor of a shared network."""
        row = self._database.read(lambda conn: _find_subnet(conn, context, id))
        return projected(_subnet(row), fields)

    def get_subnets(
        self, context: RequestContext, filters: Filters | None = None, fields: Fields | None = None, **page: Any
    ) -> list[Document]:
        asked = _widened(listing(context, SUBNET, filters, **page))
        rows = self._database.read(lambda conn: networks.subnet_rows(conn, asked, _tenant(context)))
        return [projected(_subnet(row), fields) for row in rows]

    def update_subnet(self, context: RequestContext, id: str, subnet: Body) -> Document:
        """Addresses that are taken stay taken, inside the new allocation pools or not."""
        values = accept(SUBNET, subnet, Verb.PUT)

        def work(conn: Connection) -> Document:
            row = _find_subnet(conn, context, id)
            _check_own(context, row)
            changed = dict(values)
            if "allocation_pools" in changed:
                changed["allocation_pools"] = _pools(changed["allocation_pools"], rules.Subnet.of(row).cidr)
            if changed:
                networks.update_subnet(conn, id, changed)
            after = _find_subnet(conn, context, id)
            if "allocation_pools" in changed:
                self._pools.resize(self._joint.inside(conn), rules.Subnet.of(after), vips.addresses(conn, id))
            return _subnet(after)

        return self._database.write(work)

    def delete_subnet(self, context: RequestContext, id: str) -> None:
        """:raises SubnetInUse: a pool or a VIP uses it, or somebody has an address of it."""

        def work(conn: Connection) -> None:
            _check_own(context, _find_subnet(conn, context, id))
            networks.lock_subnet(conn, id)
            users = [f"{count} {noun}" for noun, count in networks.users_of(conn, id).items() if count]
            if users:
                raise SubnetInUse(subnet_id=id, users=" and ".join(users))
            self._pools.undefine(self._joint.inside(conn), id)
            networks.delete_subnet(conn, id)

        self._database.write(work)

    def _define_later(self, subnet: rules.Subnet) -> None:
        """In a store of its own, after the commit: a pool of a subnet that does not come to be would keep its addresses."""
        try:
            self._pools.define(self._joint.allocator, subnet, {})
        except Unavailable as error:
            LOG.warning("The addresses of subnet %s are defined with its first VIP: %s", subnet.id, error.message)


def _check_operators_own(context: RequestContext, body: Any) -> None:
    given = [name for name in OPERATORS_OWN if isinstance(body, dict) and name in body]
    if given and not context.is_admin:
        raise NotAuthorized(reason=f"only an administrator may set {', '.join(given)} of a network")


def _tenant(context: RequestContext) -> str | None:
    return None if context.is_admin else (context.project_id or "")


def _widened(asked: Listing) -> Listing:
    """Without its tenant: shared networks are everybody's, and the stores know that."""
    return Listing(asked.filters, None, asked.sorts, asked.limit, asked.marker, asked.page_reverse)


def _find_network(conn: Connection, context: RequestContext, network_id: str) -> AnyRow:
    row = networks.find(conn, network_id) if is_id(network_id) else None
    if row is None or not (context.is_admin or row.shared or row.tenant_id == context.project_id):
        raise NetworkNotFound(id=network_id)
    return row


def _find_subnet(conn: Connection, context: RequestContext, subnet_id: str) -> AnyRow:
    row = networks.find_subnet(conn, subnet_id) if is_id(subnet_id) else None
    if row is None or not (context.is_admin or row.shared or row.tenant_id == context.project_id):
        raise SubnetNotFound(id=subnet_id)
    return row


def _check_own(context: RequestContext, row: AnyRow) -> None:
    if not context.is_admin and row.tenant_id != context.project_id:
        raise NotAuthorized(reason="what is shared may be changed by its owner only")


def _check_apart(conn: Connection, network_id: str, cidr: rules.Network) -> None:
    for row in networks.subnets_of(conn, network_id):
        other = rules.Subnet.of(row).cidr
        if other.version == cidr.version and cidr.overlaps(other):
            raise Conflict(reason=f"{cidr} overlaps {other}, subnet {row.id} of the same network", subnet_id=row.id)


def _geometry(values: Document) -> Document:
    """The columns that follow from the cidr."""
    cidr = rules.parse_cidr(values["cidr"])
    given = values["gateway_ip"]
    gateway = rules.default_gateway(cidr) if given == "" else rules.parse_gateway(given, cidr)
    return {
        "cidr": str(cidr),
        "ip_version": cidr.version,
        "gateway_ip": None if gateway is None else str(gateway),
        "allocation_pools": _pools(values["allocation_pools"], cidr),
    }


def _pools(given: Any, cidr: rules.Network) -> list[list[str]]:
    return rules.default_pools(cidr) if given is None else rules.parse_pools(given, cidr)


def _network(row: AnyRow, subnet_ids: list[str]) -> Document:
    return {**{name: getattr(row, name) for name in NETWORK_ATTRIBUTES}, "subnets": subnet_ids}


def _subnet(row: AnyRow) -> Document:
    pools = [{"start": first, "end": last} for first, last in row.allocation_pools]
    return {**{name: getattr(row, name) for name in SUBNET_ATTRIBUTES}, "allocation_pools": pools}
