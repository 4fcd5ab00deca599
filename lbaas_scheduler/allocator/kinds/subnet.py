"""Prefixes of one length, cut out of a larger one."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from ipaddress import ip_network
from typing import Any, ClassVar

from lbaas_scheduler.allocator.core.resource import Definition, Part, Resource
from lbaas_scheduler.allocator.core.spans import Spans
from lbaas_scheduler.allocator.core.states import Pool
from lbaas_scheduler.allocator.kinds import configs, inet
from lbaas_scheduler.errors import InvalidConfig, InvalidRequest

WORDS = ("cidr", "alloc_len", "address_scope")


class Subnet(Resource):
    """``{"cidr": "10.0.0.0/16", "alloc_len": 24, "address_scope": "…"}``.

    Prefixes of one address scope never overlap; without a word about it a tenant has a scope of its own. All of a pool's prefixes
    have one length and lie on its multiples, so that "not the same" means "does not overlap".
    """

    kind: ClassVar[str] = "subnet"
    plural: ClassVar[str] = "subnets"

    def define(self, pool: Pool, config: Mapping[str, Any]) -> Definition:
        configs.known_words(self.kind, config, WORDS)
        net = inet.network(self.kind, "cidr", config.get("cidr"))
        length = config.get("alloc_len", net.prefixlen)
        if isinstance(length, bool) or not isinstance(length, int) or length > net.max_prefixlen:
            raise configs.invalid(self.kind, f"alloc_len is {length!r:.80}; give a whole number up to {net.max_prefixlen}")
        if length < net.prefixlen:
            raise InvalidConfig(
                "AllocSubnetLen should be greater than or equal to SubnetPoolLen", kind=self.kind, alloc_len=length
            )
        scope = configs.name(self.kind, config, "address_scope", scope_name(pool.scope))
        lo, hi = inet.span(net)
        size = 2 ** (net.max_prefixlen - length)
        part = Part(
            domain=f"scope:{scope}/prefix",
            numbers=Spans.of([(lo, hi - size + 1)], size),
            claims=Spans.of([(lo, hi)]),
            exhausted="no subnets available.",
            prefix_len=length,
        )
        return Definition({"cidr": str(net), "alloc_len": length, "address_scope": scope}, {"": part}, {})

    def parse(self, definition: Definition, value: Any) -> int:
        if not isinstance(value, str) or "/" not in value or "%" in value:
            raise InvalidRequest(f"Invalid type for subnet value: {value!r:.80}; write ADDRESS/LENGTH", value=repr(value)[:80])
        try:
            net = ip_network(value)
        except ValueError as error:
            raise InvalidRequest(f"Invalid type for subnet value: {error}", value=value[:80]) from error
        expected = definition.main.prefix_len
        if net.prefixlen != expected:
            raise InvalidRequest(f"Invalid subnet length. Exp: {expected} Rcvd: {net.prefixlen}", value=value)
        return inet.to_number(net.network_address)

    def show(self, number: int, prefix_len: int) -> str:
        return f"{inet.to_address(number)}/{prefix_len}"

    def refusal(self, definition: Definition, number: int) -> str:
        return f"requested subnet not available - subnet:{self.show(number, definition.main.prefix_len)}"


def scope_name(scope: str) -> str:
    """The address scope of a pool that names none: one for each tenant and host, one for all the rest."""
    return scope if configs.is_name(scope) else f"sha256:{hashlib.sha256(scope.encode()).hexdigest()[:40]}"
