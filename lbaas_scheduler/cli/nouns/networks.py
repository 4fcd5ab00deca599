"""Networks and subnets."""

from __future__ import annotations

from lbaas_scheduler.cli.catalogue import NETWORK, SUBNET
from lbaas_scheduler.cli.crud import TENANT, Commands, commands
from lbaas_scheduler.cli.noun import NULL, Option, integer, pairs

_NETWORK_OPTIONS = (
    Option("--share", "shared", "let all tenants use it (administrators)", value=True),
    Option("--no-share", "shared", "let its tenant alone use it (administrators)", value=False),
    Option("--network-type", "network_type", "its kind", choices=("flat", "vlan", "vxlan"), set=False),
    Option("--physical-network", "physical_network", "name of the network that carries it", metavar="NAME", set=False),
    Option("--segmentation-id", "segmentation_id", "VLAN or VXLAN number", integer, set=False),
    TENANT,
)
_SUBNET_OPTIONS = (
    Option("--network", "network_id", "the network that it is of", refers=NETWORK, required=True, set=False, listed=True),
    Option("--cidr", "cidr", "its addresses, like 10.0.0.0/24", required=True, set=False, listed=True),
    Option("--gateway", "gateway_ip", "its gateway; without it, the first address", metavar="ADDRESS", set=False),
    Option("--no-gateway", "gateway_ip", "it has no gateway", value=NULL, set=False),
    Option(
        "--allocation-pool",
        "allocation_pools",
        "addresses that VIPs may have; without it, all; may be repeated",
        pairs,
        metavar="start=ADDRESS,end=ADDRESS",
        several=True,
    ),
    TENANT,
)

COMMANDS: Commands = {**commands(NETWORK, _NETWORK_OPTIONS), **commands(SUBNET, _SUBNET_OPTIONS)}
