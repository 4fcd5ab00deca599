"""Quotas of tenants: what administrators set, and the guard that holds creations to it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from oslo_config import cfg
from oslo_context.context import RequestContext
from sqlalchemy.engine import Connection

from lbaas_scheduler.conf import quotas as options
from lbaas_scheduler.db import quotas as store
from lbaas_scheduler.db.session import Database
from lbaas_scheduler.errors import NotAuthorized, NotFound, OverQuota
from lbaas_scheduler.schemas import converters
from lbaas_scheduler.schemas.attributes import Attribute, Noun, Verb, accept

Document = dict[str, int]

RESOURCES = tuple(resource for resource, *_ in options.DEFAULTS)

LIMIT = {"type": "integer", "minimum": -1, "maximum": 2**31 - 1}

QUOTA = Noun("quota", "quotas", {name: Attribute(LIMIT, put=True, convert=converters.integer) for name in RESOURCES})


class QuotaGuard(Protocol):
    """Asked in the transaction that creates something, right before the row is inserted."""

    def reserve(self, conn: Connection, tenant_id: str, resource: str, count: int = 1) -> None:
        """:raises OverQuota: with ``count`` more the tenant would have more than it may have."""


class NoQuotas:
    """Everybody may have everything."""

    def reserve(self, conn: Connection, tenant_id: str, resource: str, count: int = 1) -> None:
        """Nothing to hold anybody to."""


class Quotas:
    """Exact, however many servers create at once: see :mod:`lbaas_scheduler.db.quotas`."""

    def __init__(self, database: Database, conf: cfg.ConfigOpts) -> None:
        self._database = database
        self._conf = conf

    def reserve(self, conn: Connection, tenant_id: str, resource: str, count: int = 1) -> None:
        own = store.limit(conn, tenant_id, resource)
        limit = self._default(resource) if own is None else own
        if limit < 0:
            return
        store.take_turn(conn, tenant_id, resource)
        used = store.count(conn, tenant_id, resource)
        if used + count > limit:
            raise OverQuota(resource=resource, used=used, limit=limit, tenant_id=tenant_id)

    def defaults(self) -> Document:
        """Resource → limit of tenants without one of their own; below 0 = none."""
        return {resource: self._default(resource) for resource in RESOURCES}

    def get(self, context: RequestContext, tenant_id: str) -> Document:
        """What holds for a tenant.

        :raises NotAuthorized: it is not the caller's, and he is no administrator.
        """
        _check_own(context, tenant_id)
        own = self._database.read(lambda conn: store.limits(conn, tenant_id)).get(tenant_id, {})
        return self._whole(own)

    def get_defaults(self, context: RequestContext, tenant_id: str) -> Document:
        """What would hold without quotas of its own. Errors as :meth:`get`."""
        _check_own(context, tenant_id)
        return self.defaults()

    def list(self, context: RequestContext) -> list[dict[str, Any]]:
        """Of all tenants that have their own."""
        _only_admins(context)
        found = self._database.read(store.limits)
        return [{"tenant_id": tenant_id, **self._whole(own)} for tenant_id, own in found.items()]

    def update(self, context: RequestContext, tenant_id: str, body: Mapping[str, Any]) -> Document:
        """Limits that are not named stay. One below what a tenant has takes nothing away.

        :raises InvalidRequest: an unknown resource, or no number from -1 up.
        """
        _only_admins(context)
        values = accept(QUOTA, body, Verb.PUT)
        self._database.write(lambda conn: store.set_limits(conn, tenant_id, values))
        return self.get(context, tenant_id)

    def delete(self, context: RequestContext, tenant_id: str) -> None:
        """Let the defaults hold again.

        :raises NotFound: they do.
        """
        _only_admins(context)
        if not self._database.write(lambda conn: store.delete_limits(conn, tenant_id)):
            raise NotFound(f"Tenant {tenant_id} has no quotas of its own.", id=tenant_id)

    def _default(self, resource: str) -> int:
        return int(self._conf.quotas[f"quota_{resource}"])

    def _whole(self, own: Mapping[str, int]) -> Document:
        return {**self.defaults(), **own}


def _check_own(context: RequestContext, tenant_id: str) -> None:
    if not context.is_admin and tenant_id != context.project_id:
        raise NotAuthorized(reason="only administrators see quotas of other tenants")


def _only_admins(context: RequestContext) -> None:
    if not context.is_admin:
        raise NotAuthorized(reason="only administrators see and change quotas")
