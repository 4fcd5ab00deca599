"""What schemathesis has to know of our API that OpenAPI cannot say."""

from __future__ import annotations

import ipaddress
from typing import Any

import schemathesis
from hypothesis import strategies as st

from lbaas_scheduler.schemas.checker import violation

_ADDRESS = {"type": "string", "format": "ip-address"}

addresses = st.ip_addresses().map(str)
usable = addresses.filter(lambda text: violation(_ADDRESS, text) is None)

schemathesis.openapi.format("ip-address", usable)
schemathesis.openapi.format("host-address", addresses)
schemathesis.openapi.format("status-codes", st.one_of(st.integers(100, 599).map(str), st.just("200,202"), st.just("200-204")))
schemathesis.openapi.format("network", st.ip_addresses().map(lambda address: str(ipaddress.ip_network(address))))


@schemathesis.hook
def before_call(_context: Any, case: Any, _kwargs: Any) -> None:
    """Directions are right if there are as many of them as keys, or none: no schema can say so."""
    query = case.query or {}
    if case.meta is not None and case.meta.generation.mode.is_positive and "sort_dir" in query:
        del query["sort_dir"]
