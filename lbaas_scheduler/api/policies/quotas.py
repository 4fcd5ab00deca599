"""Quotas."""

from __future__ import annotations

from lbaas_scheduler.api.policies.base import ADMIN, READER, rule

RULES = (
    rule("get_quotas", ADMIN, "See the quotas of all tenants that have their own.", "GET /v2.0/quotas"),
    rule(
        "get_quota",
        READER,
        "See a tenant's quotas; those of another tenant only as an administrator.",
        "GET /v2.0/quotas/{id}",
        "GET /v2.0/quotas/{id}/default",
        "GET /v2.0/quotas/tenant",
    ),
    rule("update_quota", ADMIN, "Give a tenant quotas of its own.", "PUT /v2.0/quotas/{id}"),
    rule("delete_quota", ADMIN, "Let the defaults hold for a tenant again.", "DELETE /v2.0/quotas/{id}"),
)
