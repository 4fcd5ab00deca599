"""What a VIP that is placed would ask for if it were placed now: what is needed to move it."""

from __future__ import annotations

from typing import Protocol

from sqlalchemy.engine import Connection

from lbaas_scheduler.db import vips
from lbaas_scheduler.domain.requests import ScheduleRequest
from lbaas_scheduler.domain.service_types import ServiceTypeChoice
from lbaas_scheduler.plugins.loadbalancer import documents
from lbaas_scheduler.plugins.loadbalancer.asking import request_of
from lbaas_scheduler.plugins.loadbalancer.core import Rules
from lbaas_scheduler.scheduler.services import Service


class ServiceTypes(Protocol):
    def chosen(self, conn: Connection, service_type_id: str, service: str) -> ServiceTypeChoice:
        """See :meth:`lbaas_scheduler.plugins.device_scheduler.service_types.ServiceTypes.chosen`."""


class VipRequests:
    """VIP id → its request; None = the VIP is gone, or has no pool left."""

    def __init__(self, service: Service, service_types: ServiceTypes, rules: Rules) -> None:
        self._service = service
        self._service_types = service_types
        self._rules = rules

    def __call__(self, conn: Connection, vip_id: str) -> ScheduleRequest | None:
        vip = documents.load(conn, [vip_id]).get(vip_id)
        row = vips.find(conn, vip_id)
        if vip is None or row is None:
            return None
        return request_of(
            self._service,
            vip,
            self._service_types.chosen(conn, row.service_type_id, self._service.name),
            self._rules.of_service(conn, self._service.name),
            name=row.name,
            subnet_id=row.subnet_id,
        )
