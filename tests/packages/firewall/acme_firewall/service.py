"""What a firewall needs of a device."""

from __future__ import annotations

from dataclasses import dataclass

from lbaas_scheduler.scheduler.services import Needs, Service

RULES = "CUSTOM_RULES"


@dataclass(frozen=True, slots=True)
class Firewall:
    """``rules``: how many. ``rack``: where the tenant's servers are."""

    id: str
    rules: int
    rack: int
    stateful: bool = True
    network_id: str = ""


class FirewallService(Service):
    name = "Firewall"

    def needs(self, resource: Firewall) -> Needs:
        traits = frozenset({"CUSTOM_STATEFUL"}) if resource.stateful else frozenset()
        return Needs(traits, {RULES: resource.rules}, (resource.network_id,) if resource.network_id else ())
