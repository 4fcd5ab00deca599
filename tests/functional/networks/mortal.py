"""A server that places one VIP and kills itself on the way: ``python -m … DATABASE ETCD NAMESPACE POOL SUBNET STEP``.

``STEP``: what it would do next and does not, see :data:`STEPS`.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

from lbaas_scheduler.allocator.drivers.etcd import EtcdDriver
from lbaas_scheduler.allocator.drivers.etcd_client import Access
from lbaas_scheduler.allocator.manager import ResourceAllocator
from lbaas_scheduler.db import deployments
from lbaas_scheduler.networks.segments import Segments
from tests.allocator_side import KINDS
from tests.database import open_database
from tests.functional.loadbalancer.lab import Lab

STEPS: dict[str, tuple[Any, str]] = {
    "commit": (deployments, "create"),
    "settle": (Segments, "settle"),
}


def main(database_url: str, etcd_url: str, namespace: str, pool_id: str, subnet_id: str, step: str) -> None:
    database = open_database(database_url)
    lab = Lab(database, ResourceAllocator(EtcdDriver(Access((etcd_url,)), namespace), KINDS))
    owner, name = STEPS[step]
    setattr(owner, name, lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL))
    body = {"subnet_id": subnet_id, "protocol": "HTTP", "protocol_port": 80, "pool_id": pool_id}
    lab.plugin.create_vip(lab.me, body)


if __name__ == "__main__":
    main(*sys.argv[1:])
