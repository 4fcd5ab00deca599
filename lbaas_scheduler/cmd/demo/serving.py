"""``lbaas-scheduler-demo --serve``: the furnished house left running, for whoever wants to try it by hand."""

from __future__ import annotations

import sys

from oslo_config import cfg

from lbaas_scheduler.cmd.demo import furniture
from lbaas_scheduler.cmd.demo.house import House
from lbaas_scheduler.cmd.signals import Signals
from lbaas_scheduler.errors import LBaaSError

DEFAULT_PORT = 9696

WELCOME = """\
The REST API is on {url}
Devices: {devices}. Service types: any, fast. Network and subnet: front ({cidr}).
Server and agent log to {log}

  lbaas-scheduler --endpoint {url} fleet
  curl {url}/v2.0/devices

Ctrl-C ends it and removes all that it made."""


def serve(conf: cfg.ConfigOpts, port: int) -> int:
    """Run until SIGINT or SIGTERM.

    :param port: TCP port of the REST API on the loopback; 0 = any free one.
    :returns: 0 after an orderly stop, else 1.
    """
    signals = Signals()
    try:
        with House(conf, rest_port=port) as house:
            _furnish(house)
            print(_welcome(house), flush=True)
            signals.wait_for_end(conf)
    except LBaaSError as error:
        print(f"lbaas-scheduler-demo: {error.message}", file=sys.stderr)
        return 1
    return 0


def _furnish(house: House) -> None:
    furniture.register_devices(house.devices, house.device_types, 2)
    furniture.define_service_types(house.devices, house.device_types)
    furniture.create_subnet(house.devices)


def _welcome(house: House) -> str:
    names = sorted(device["name"] for device in house.devices.get_devices(furniture.ADMIN))
    return WELCOME.format(url=house.url, devices=", ".join(names), cidr=furniture.NETWORK_CIDR, log=house.log)
