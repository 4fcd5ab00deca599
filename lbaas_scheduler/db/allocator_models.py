"""The allocator's tables. A row per value that is in use, never one per value that is free: a pool's size costs nothing.

Unique keys are what keeps two owners apart, whoever is faster; no NULL takes part in one. There are no foreign keys: what an
allocation relies on (its pool as it was read, its parent) is checked by the statement that inserts it.
"""

from __future__ import annotations

import sqlalchemy as sa

from lbaas_scheduler.db.models import UtcDateTime, required, table

Id = sa.String(37)
"""A pool's id may end in ``#``: values that the pool has for itself."""

Domain = sa.String(191)
Value = sa.String(32)
Slot = sa.String(322)
"""What a caller says (128), ``#`` and a part (64), ``@`` and a host (128)."""


def partial(name: str, where: str, *columns: str) -> sa.Index:
    """An index of the rows that fulfil a condition; of all, in MariaDB."""
    return sa.Index(name, *columns, postgresql_where=sa.text(where), sqlite_where=sa.text(where))


allocator_pools = table(
    "allocator_pools",
    sa.Column("kind", sa.String(64), primary_key=True),
    sa.Column("scope", sa.String(255), primary_key=True),
    sa.Column("name", sa.String(128), primary_key=True),
    sa.Column("id", Id, nullable=False, unique=True),
    required("domain", Domain),
    required("config", sa.JSON),
    required("state", sa.String(16)),
    required("generation", sa.Integer),
    sa.Column("parent_allocation_id", Id, nullable=False, index=True),
    required("carved", sa.JSON),
    required("rev", sa.Integer),
)

allocator_claims = table(
    "allocator_claims",
    sa.Column("domain", Domain, primary_key=True),
    sa.Column("lo", Value, primary_key=True),
    sa.Column("hi", Value, primary_key=True),
    sa.Column("pool_id", Id, primary_key=True, index=True),
    sa.Column("role", sa.String(16), primary_key=True),
    required("rev", sa.Integer),
)

allocator_domains = table(
    "allocator_domains",
    # Moved by definitions only: two that overlap cannot both commit.
    sa.Column("name", Domain, primary_key=True),
    required("version", sa.Integer),
    required("rev", sa.Integer),
)

allocator_allocations = table(
    "allocator_allocations",
    # 32 hexadecimal digits, so that the order of the text is the order of the numbers.
    sa.Column("domain", Domain, primary_key=True),
    sa.Column("value", Value, primary_key=True),
    sa.Column("prefix_len", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("id", Id, nullable=False, unique=True),
    required("kind", sa.String(64)),
    required("pool_id", Id),
    required("owner_type", sa.String(64)),
    required("owner_id", sa.String(255)),
    required("slot", Slot),
    required("tenant_id", sa.String(255)),
    required("part", sa.String(64)),
    required("status", sa.String(16)),
    required("parent_id", Id),
    required("generation", sa.Integer),
    required("request_id", sa.String(128)),
    required("last_owner", sa.Text),
    required("created_at", UtcDateTime),
    # Of a hold: when it may be taken back; of a quarantined value: when it may be given again.
    sa.Column("due_at", UtcDateTime),
    # What a new row's event says beyond the row itself. It moves into allocator_events when the row first changes: so giving a
    # value writes one row, and not two. "" = it has moved.
    sa.Column("birth_stamp", sa.String(32), nullable=False, index=True),
    required("birth_actor", sa.String(255)),
    required("birth_op", sa.String(16)),
    required("birth_pool", sa.String(384)),
    required("rev", sa.Integer),
    sa.UniqueConstraint("owner_type", "owner_id", "pool_id", "slot"),
    sa.Index("ix_allocator_allocations_pool", "pool_id", "tenant_id"),
    # Most rows have neither a parent nor an end: where an index can leave them out, it does.
    partial("ix_allocator_allocations_due", "due_at IS NOT NULL", "pool_id", "status", "due_at"),
    partial("ix_allocator_allocations_parent_id", "parent_id <> ''", "parent_id"),
)

allocator_events = table(
    "allocator_events",
    # The audit trail, and what a watcher's cursor moves along; with the births that allocations carry.
    sa.Column("stamp", sa.String(32), primary_key=True),
    required("at", UtcDateTime),
    required("actor", sa.String(255)),
    required("op", sa.String(16)),
    required("kind", sa.String(64)),
    required("pool_id", Id),
    required("pool", sa.String(384)),
    required("domain", Domain),
    required("value", Value),
    required("prefix_len", sa.Integer),
    required("owner_type", sa.String(64)),
    required("owner_id", sa.String(255)),
    required("slot", Slot),
    sa.Column("allocation_id", Id, nullable=False, index=True),
    required("request_id", sa.String(128)),
    required("note", sa.String(255)),
    sa.Index("ix_allocator_events_owner", "owner_type", "owner_id"),
    sa.Index("ix_allocator_events_pool", "pool"),
)

allocator_requests = table(
    "allocator_requests",
    sa.Column("request_id", sa.String(128), primary_key=True),
    required("result", sa.JSON),
    required("at", UtcDateTime),
    required("rev", sa.Integer),
)

allocator_notes = table(
    "allocator_notes",
    # Fences of quotas, suspects of the reconciler, and states of kinds that bring their own.
    sa.Column("topic", sa.String(128), primary_key=True),
    sa.Column("name", sa.String(384), primary_key=True),
    required("data", sa.LargeBinary),
    required("version", sa.Integer),
    required("rev", sa.Integer),
)

ALLOCATOR_TABLES = (
    allocator_pools,
    allocator_claims,
    allocator_domains,
    allocator_allocations,
    allocator_events,
    allocator_requests,
    allocator_notes,
)
