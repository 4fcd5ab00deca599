"""What a VIP that is placed would ask for if it were placed now: what is needed to move it."""

from __future__ import annotations

from collections.abc import Collection
from functools import cache
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
    """VIP ids → their requests. VIPs that are gone, or have no pool left, are left out."""

    def __init__(self, service: Service, service_types: ServiceTypes, rules: Rules) -> None:
        self._service = service
        self._service_types = service_types
        self._rules = rules

    def __call__(self, conn: Connection, vip_ids: Collection[str]) -> dict[str, ScheduleRequest]:
        """Costs as many statements for many VIPs as for one, and two more for each further service type."""
        rules = self._rules.of_service(conn, self._service.name)

        @cache
        def chosen(service_type_id: str) -> ServiceTypeChoice:
            return self._service_types.chosen(conn, service_type_id, self._service.name)

        built = documents.load(conn, vip_ids)
        return {
            row.id: request_of(
                self._service, built[row.id], chosen(row.service_type_id), rules, name=row.name, subnet_id=row.subnet_id
            )
            for row in vips.by_ids(conn, vip_ids)
            if row.id in built
        }
