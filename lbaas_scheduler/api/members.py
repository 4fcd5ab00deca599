"""Members."""

from __future__ import annotations

from lbaas_scheduler.api.crud import Crud, Shape
from lbaas_scheduler.plugins.loadbalancer.schemas.members import MEMBER

SHAPE = Shape.of(MEMBER)
MEMBERS = Crud(SHAPE, lambda services: services.balancers, "Members", bulk=True)
