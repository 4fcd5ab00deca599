"""Networks, subnets and ports. What is shared may be seen by everybody and changed by its owner."""

from __future__ import annotations

from lbaas_scheduler.api.policies.base import MEMBER, READER, crud, rule

RULES = (
    *crud("network", "networks", "/v2.0/networks", READER, MEMBER),
    *crud("subnet", "subnets", "/v2.0/subnets", READER, MEMBER),
    rule("get_port", READER, "See the ports of VIPs.", "GET /v2.0/ports", "GET /v2.0/ports/{id}"),
    rule("delete_port", MEMBER, "Be told that a VIP's port goes with its VIP only.", "DELETE /v2.0/ports/{id}"),
)
