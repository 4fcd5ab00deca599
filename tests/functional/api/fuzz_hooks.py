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
    """What is right by the document is made right by the rules between attributes, too, which no schema can say."""
    if case.meta is None or not case.meta.generation.mode.is_positive:
        return
    if case.query and "sort_dir" in case.query:
        del case.query["sort_dir"]  # there must be as many directions as keys, or none
    for name, mend in _MENDED.items():
        body = case.body if isinstance(case.body, dict) else {}
        for attributes in (body.get(name), *(body.get(f"{name}s") or ())):
            if isinstance(attributes, dict):
                mend(attributes)


def _monitor(monitor: dict[str, Any]) -> None:
    """A delay is not shorter than the timeout; what a PUT leaves as it is must fit, too."""
    given = [monitor[name] for name in ("delay", "timeout") if name in monitor]
    if given:
        monitor["delay"] = monitor["timeout"] = max(given, key=int)


def _pool(pool: dict[str, Any]) -> None:
    """A provider is a service type that is registered."""
    if pool.get("provider") is not None:
        pool["provider"] = "default"


_MENDED = {"health_monitor": _monitor, "pool": _pool}
