"""What callers may call things: bounded, printable, so that keys, tables and lists stay readable and of known size."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lbaas_scheduler.allocator.core.requests import CLUSTER, INFRA, Owner, Request, Selector
from lbaas_scheduler.errors import InvalidRequest

LONGEST = {"owner type": 64, "owner id": 255, "slot": 128, "tenant id": 255, "pool name": 128, "scope": 255, "request id": 128,
    "host": 128, "kind": 64, "actor": 255, "domain": 191}  # fmt: skip
"""Characters. Bounds of the columns, which are bounds of MariaDB's unique keys (3,072 bytes)."""


def check_text(what: str, value: Any, *, may_be_empty: bool = False) -> None:
    """:raises InvalidRequest: not a text, empty, too long, or not printable."""
    if value == "" and may_be_empty:
        return
    if not isinstance(value, str):
        raise InvalidRequest(f"The {what} is {value!r:.80}; give a text", what=what)
    if len(value) > LONGEST[what]:
        raise InvalidRequest(
            f"The {what} has {len(value)} characters; {LONGEST[what]} are the most", what=what, length=len(value)
        )
    if not value:
        raise InvalidRequest(f"The {what} is empty", what=what)
    if value != value.strip():
        # MariaDB's keys take "a" and "a " for the same.
        raise InvalidRequest(f"The {what} {value!r:.80} begins or ends with a blank", what=what)
    if not value.isprintable():
        raise InvalidRequest(f"The {what} {value!r:.80} holds characters that cannot be printed", what=what)


def check_selector(selector: Selector) -> None:
    check_text("kind", selector.kind)
    check_text("pool name", selector.name)
    _check_scope(selector.scope)


def _check_scope(scope: str) -> None:
    check_text("scope", scope)
    if scope != CLUSTER and not scope.startswith(("tenant:", "host:")):
        raise InvalidRequest(f"The scope is '{scope:.80}'; give cluster, tenant:ID or host:NAME", scope=scope)


def check_owner(owner: Owner) -> None:
    check_text("owner type", owner.type)
    check_text("owner id", owner.id)
    if owner.type == INFRA:
        raise InvalidRequest(f"Owner type '{INFRA}' is a pool's own; give another one", what="owner type")


def _check_tenant(tenant_id: str) -> None:
    """As every noun of the API has it: ASCII without blanks; "" = nobody's."""
    check_text("tenant id", tenant_id, may_be_empty=True)
    if not tenant_id.isascii() or " " in tenant_id:
        raise InvalidRequest(f"The tenant id {tenant_id!r:.80} holds a blank or characters beyond ASCII", what="tenant id")


def check_request(request: Request) -> None:
    """:raises InvalidRequest: names what is wrong."""
    check_owner(request.owner)
    check_text("slot", request.slot, may_be_empty=True)
    _check_tenant(request.tenant_id)
    check_text("host", request.host, may_be_empty=True)
    if "#" in request.slot:
        raise InvalidRequest(f"The slot '{request.slot}' holds a '#', which is kept for the parts of a value", slot=request.slot)
    if request.within is None:
        if request.options is not None:
            raise InvalidRequest("options belong to a request with 'within'; else the pool's definition says it")
        check_selector(request.selector)
        return
    if request.kind != "address" or request.within.kind != "subnet" or request.pool != "":
        raise InvalidRequest("'within' is for an address in a subnet; leave its pool empty")
    _check_scope(request.scope)
    if request.options is None:
        return
    if not isinstance(request.options, Mapping):
        raise InvalidRequest(f"options is {request.options!r:.80}; give words of an address pool's configuration")
    taken = sorted({"cidr", "address_scope", "parent"} & set(request.options))
    if taken:
        raise InvalidRequest(f"options names {', '.join(taken)}, which the subnet says; leave it out", options=taken)
