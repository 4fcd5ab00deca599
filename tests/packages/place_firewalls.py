"""Run where acme_firewall is installed: places firewalls and a VIP as ``scheduler.conf`` says, and prints where they went."""

from __future__ import annotations

import json
import sys
from typing import Any

from acme_firewall.service import Firewall  # type: ignore[import-not-found]
from oslo_config import cfg

from lbaas_scheduler import extensions
from lbaas_scheduler.conf import loading
from lbaas_scheduler.db.session import Database
from lbaas_scheduler.domain.requests import ScheduleRequest
from lbaas_scheduler.errors import InvalidRequest, NoValidDevice
from lbaas_scheduler.plugins.device_scheduler.build import build_gates, build_placer

FIREWALLS = {
    "near": Firewall("near", rules=60, rack=4),
    "bulky": Firewall("bulky", rules=60, rack=4),
    "far": Firewall("far", rules=1, rack=40),
    "huge": Firewall("huge", rules=101, rack=4),
}


def main(config: str) -> None:
    conf = cfg.ConfigOpts()
    loading.read(conf, ["--config-file", config], "place-firewalls")
    gates = build_gates(conf)
    placer = build_placer(conf, Database.open(conf), gates)
    service = extensions.load_services()["Firewall"]
    requests = [service.request_for(it, resource_id=name, tenant_id="tenant") for name, it in FIREWALLS.items()]
    requests.append(ScheduleRequest("balanced", "LoadBalancer", "tenant", demand={"VIPS": 1}))
    placed: dict[str, str] = {}
    refused: dict[str, Any] = {}
    algorithms = []
    for request in requests:
        try:
            decision = placer.place(request)
        except NoValidDevice as error:
            refused[request.resource_id] = error.kwargs["trail"]["dropped"]
        except InvalidRequest as error:
            refused[request.resource_id] = error.message
        else:
            placed[request.resource_id] = decision.device_id
            algorithms.append(decision.trail.algorithm)
    print(json.dumps({"services": sorted(gates), "placed": placed, "refused": refused, "algorithm": algorithms[0]}))


if __name__ == "__main__":
    main(sys.argv[1])
