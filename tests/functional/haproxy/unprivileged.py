"""Run by test_accounts.py as a user without rights: one VIP's whole life. Argument: the state path."""

from __future__ import annotations

import os
import sys
from dataclasses import replace

from oslo_config import cfg

from lbaas_scheduler.domain.devices import Device
from lbaas_scheduler.domain.loadbalancers import Protocol
from lbaas_scheduler.sdk.conformance import documents
from lbaas_scheduler.vendors.haproxy.driver import HaproxyDriver
from tests.functional.haproxy.backends import Backend
from tests.functional.haproxy.lab import Lab, request


def main(state_path: str) -> None:
    assert os.geteuid() != 0
    conf = cfg.ConfigOpts()
    HaproxyDriver.register_opts(conf)
    conf([])
    conf.set_override("state_path", state_path, group="haproxy")
    backend = Backend("b1")
    lab = Lab(HaproxyDriver(conf), Device("d1", "lab", "LoadBalancer", "haproxy"))
    vip = documents.vip(protocol=Protocol.HTTP, members=(backend.member(),))
    lab.serve(vip)
    try:
        assert request(vip)[:2] == (200, "b1")
        assert os.stat(f"/proc/{lab.worker}").st_uid == os.geteuid()
        lab.serve(replace(vip, connection_limit=10))
        assert request(vip)[:2] == (200, "b1")
    finally:
        lab.remove(vip)
        backend.close()
    assert os.listdir(state_path) == []


if __name__ == "__main__":
    main(sys.argv[1])
