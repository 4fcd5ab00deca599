"""From a VIP to the request for its device: what the VIP needs, what its service type and the placement rules wish."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from oslo_context.context import RequestContext
from sqlalchemy.engine import Connection

from lbaas_scheduler.db import devices
from lbaas_scheduler.domain.loadbalancers import Vip
from lbaas_scheduler.domain.placement_rules import PlacementRule, Subject, first_match, shaped
from lbaas_scheduler.domain.requests import ScheduleRequest
from lbaas_scheduler.domain.service_types import ServiceTypeChoice
from lbaas_scheduler.errors import DeviceNotFound, NotAuthorized
from lbaas_scheduler.scheduler.services import Service
from lbaas_scheduler.schemas.access import is_id


def request_of(
    service: Service,
    vip: Vip,
    service_type: ServiceTypeChoice,
    rules: Sequence[PlacementRule],
    *,
    name: str,
    subnet_id: str,
    device_id: str | None = None,
) -> ScheduleRequest:
    """:param rules: of which the first that matches shapes the request.
    :param device_id: the one device that an administrator wants; None = whichever suits.
    """
    subject = Subject(
        tenant_id=vip.tenant_id,
        network_id=vip.network_id,
        subnet_id=subnet_id,
        protocol=vip.protocol,
        port=vip.protocol_port,
        name=name,
    )
    wishes: dict[str, Any] = shaped(service_type.wishes, first_match(rules, subject))
    return service.request_for(
        vip,
        resource_id=vip.id,
        tenant_id=vip.tenant_id,
        device_types=service_type.device_types,
        service_type_id=service_type.id,
        device_hint=device_id,
        **wishes,
    )


def check_hint(context: RequestContext, conn: Connection, device_id: str | None) -> None:
    """:raises NotAuthorized: somebody else than an administrator names a device.
    :raises DeviceNotFound: there is no such device.
    """
    if device_id is None:
        return
    if not context.is_admin:
        raise NotAuthorized(reason="only administrators choose the device of a VIP; leave out 'device_id'")
    if not is_id(device_id) or not devices.by_ids(conn, [device_id]):
        raise DeviceNotFound(id=device_id)
