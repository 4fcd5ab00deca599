"""Health monitors."""

from __future__ import annotations

from lbaas_scheduler.api.crud import Crud, Shape
from lbaas_scheduler.plugins.loadbalancer.schemas.health_monitors import HEALTH_MONITOR, HTTP_ATTRIBUTES

SHAPE = Shape.of(HEALTH_MONITOR, optional=HTTP_ATTRIBUTES)
HEALTH_MONITORS = Crud(SHAPE, lambda services: services.balancers, "Health monitors")
