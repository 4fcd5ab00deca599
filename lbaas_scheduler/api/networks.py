"""Networks and subnets of the local registry, as far as clients look names up and create VIPs on them."""

from __future__ import annotations

from lbaas_scheduler.api.crud import Crud, Shape
from lbaas_scheduler.networks.schemas import NETWORK, SUBNET

NETWORKS = Crud(Shape.of(NETWORK), lambda services: services.networks, "Networks")
SUBNETS = Crud(Shape.of(SUBNET), lambda services: services.networks, "Subnets")
