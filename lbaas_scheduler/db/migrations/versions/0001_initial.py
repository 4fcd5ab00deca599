"""Initial tables.

Revision ID: 0001
Revises:
Create Date: 2026-11-30

The columns' meaning is told in ``lbaas_scheduler.db.models``. This file is history: it imports nothing from there, and stays as
it is when the models move on.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = "0001"
down_revision = None
branch_labels = ("lbaas_scheduler",)
depends_on = None

Id = sa.String(36)
Name = sa.String(255)
AllocatorId = sa.String(37)
Domain = sa.String(191)
Value = sa.String(32)
Sequence = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
UtcDateTime = sa.DateTime().with_variant(mysql.DATETIME(fsp=6), "mysql", "mariadb")

STANDARD_CLASSES = ("vips", "connections", "addresses", "bandwidth_mbps")

TABLES = (
    "service_types",
    "service_definitions",
    "placement_rules",
    "agents",
    "agent_drivers",
    "sched_classes",
    "devices",
    "device_load",
    "device_capacities",
    "device_networks",
    "device_agents",
    "placements",
    "deployments",
    "networks",
    "subnets",
    "pools",
    "vips",
    "members",
    "health_monitors",
    "pool_monitors",
    "pool_stats",
    "quotas",
    "quota_turns",
    "allocator_pools",
    "allocator_claims",
    "allocator_domains",
    "allocator_allocations",
    "allocator_events",
    "allocator_requests",
    "allocator_notes",
)


def table(name: str, *columns: sa.schema.SchemaItem) -> None:
    op.create_table(name, *columns, mysql_engine="InnoDB", mysql_charset="utf8mb4", mysql_collate="utf8mb4_bin")


def required(name: str, type_: Any) -> sa.Column[Any]:
    return sa.Column(name, type_, nullable=False)


def partial(name: str, where: str, *columns: str) -> sa.Index:
    return sa.Index(name, *columns, postgresql_where=sa.text(where), sqlite_where=sa.text(where))


def life_cycle() -> tuple[sa.Column[Any], ...]:
    return required("admin_state_up", sa.Boolean), required("status", sa.String(16)), required("status_description", Name)


def upgrade() -> None:
    service_types()
    placement_rules()
    agents()
    devices()
    placements()
    networks()
    load_balancers()
    allocator()


def downgrade() -> None:
    for name in reversed(TABLES):
        op.drop_table(name)


def service_types() -> None:
    table(
        "service_types",
        sa.Column("id", Id, primary_key=True),
        sa.Column("name", Name, nullable=False, unique=True),
        required("description", Name),
        required("enabled", sa.Boolean),
        sa.Column("default_slot", sa.SmallInteger, unique=True),
        required("options", sa.JSON),
        required("created_at", UtcDateTime),
    )
    table(
        "service_definitions",
        sa.Column("service_type_id", Id, sa.ForeignKey("service_types.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("service", sa.String(64), primary_key=True),
        required("plugin", Name),
        sa.Column("driver", sa.String(64)),
    )


def placement_rules() -> None:
    table(
        "placement_rules",
        sa.Column("id", Id, primary_key=True),
        sa.Column("name", Name, nullable=False, unique=True),
        required("service", sa.String(64)),
        required("position", sa.Integer),
        required("description", Name),
        required("enabled", sa.Boolean),
        required("match", sa.JSON),
        required("wishes", sa.JSON),
        required("created_at", UtcDateTime),
    )


def agents() -> None:
    table(
        "agents",
        sa.Column("id", Id, primary_key=True),
        required("agent_type", sa.String(64)),
        required("host", Name),
        required("binary", Name),
        required("topic", Name),
        required("description", Name),
        required("admin_state_up", sa.Boolean),
        required("configurations", sa.JSON),
        required("created_at", UtcDateTime),
        required("started_at", UtcDateTime),
        required("heartbeat_at", UtcDateTime),
        sa.UniqueConstraint("agent_type", "host"),
    )
    table(
        "agent_drivers",
        sa.Column("agent_id", Id, sa.ForeignKey("agents.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("device_type", sa.String(64), primary_key=True),
    )


def devices() -> None:
    table(
        "sched_classes",
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
        sa.Column("digest", sa.String(64), nullable=False, unique=True),
        required("service", sa.String(64)),
        required("device_type", sa.String(64)),
        required("zone", Name),
        required("form", sa.String(16)),
        required("tenant_id", Name),
        required("shared", sa.Boolean),
        required("traits", sa.JSON),
    )
    table(
        "devices",
        sa.Column("id", Id, primary_key=True),
        required("name", Name),
        required("description", Name),
        required("service", sa.String(64)),
        required("device_type", sa.String(64)),
        required("form", sa.String(16)),
        sa.Column("tenant_id", Name, index=True),
        required("shared", sa.Boolean),
        required("zone", Name),
        required("admin_state", sa.String(16)),
        required("status", sa.String(16)),
        required("status_description", Name),
        required("management", sa.JSON),
        required("secret", sa.Text),
        required("traits", sa.JSON),
        required("interfaces", sa.JSON),
        sa.Column("agent_host", Name),
        required("extra", sa.JSON),
        required("generation", sa.Integer),
        sa.Column("class_id", sa.Integer, sa.ForeignKey("sched_classes.id"), nullable=False, index=True),
        required("load", sa.JSON),
        required("failures", sa.Integer),
        sa.Column("check_due_at", UtcDateTime, index=True),
        sa.Column("offline_since", UtcDateTime),
        required("created_at", UtcDateTime),
        required("updated_at", UtcDateTime),
    )
    table(
        "device_load",
        sa.Column("seq", Sequence, primary_key=True, autoincrement=True),
        sa.Column("device_id", Id, sa.ForeignKey("devices.id", ondelete="CASCADE"), nullable=False, unique=True),
        required("class_id", sa.Integer),
        required("schedulable", sa.SmallInteger),
        required("open", sa.SmallInteger),
        required("dedicated_to", Name),
        required("rank", sa.Integer),
        *(required(f"{name}_{kind}", sa.BigInteger) for name in STANDARD_CLASSES for kind in ("used", "max")),
        sa.Index("ix_device_load_by_rank", "class_id", "open", "rank", "seq"),
        sa.Index("ix_device_load_by_age", "class_id", "open", "seq"),
    )
    table(
        "device_capacities",
        sa.Column("device_id", Id, sa.ForeignKey("devices.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("resource_class", sa.String(64), primary_key=True),
        required("total", sa.BigInteger),
        required("reserved", sa.BigInteger),
        required("allocation_ratio", sa.Float),
        required("limit", sa.BigInteger),
        required("used", sa.BigInteger),
    )
    table(
        "device_networks",
        sa.Column("network_id", Id, primary_key=True),
        sa.Column("device_id", Id, sa.ForeignKey("devices.id", ondelete="CASCADE"), primary_key=True, index=True),
        required("interface", Name),
        sa.Column("segment", sa.Integer),
        required("vips", sa.Integer),
    )
    table(
        "device_agents",
        sa.Column("device_id", Id, sa.ForeignKey("devices.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("agent_id", Id, sa.ForeignKey("agents.id"), nullable=False, index=True),
        required("epoch", sa.Integer),
        required("assigned_at", UtcDateTime),
    )


def placements() -> None:
    table(
        "placements",
        sa.Column("resource_id", Id, primary_key=True),
        sa.Column("role", sa.String(64), primary_key=True),
        required("service", sa.String(64)),
        sa.Column("device_id", Id, sa.ForeignKey("devices.id"), nullable=False, index=True),
        required("tenant_id", Name),
        required("service_type_id", Id),
        required("amounts", sa.JSON),
        required("networks", sa.JSON),
        required("score", sa.Float),
        required("trail", sa.JSON),
        sa.Column("created_at", UtcDateTime, nullable=False, index=True),
        sa.Index("ix_placements_tenant_device", "tenant_id", "device_id"),
    )
    table(
        "deployments",
        sa.Column("resource_id", Id, primary_key=True),
        sa.Column("device_id", Id, sa.ForeignKey("devices.id"), primary_key=True, index=True),
        required("operation", sa.String(16)),
        required("epoch", sa.Integer),
        required("desired_revision", sa.Integer),
        required("applied_revision", sa.Integer),
        sa.Column("due_at", UtcDateTime, index=True),
        required("attempts", sa.Integer),
        sa.Column("pending_since", UtcDateTime),
        required("error", sa.Text),
    )


def networks() -> None:
    table(
        "networks",
        sa.Column("id", Id, primary_key=True),
        required("tenant_id", Name),
        required("name", Name),
        required("shared", sa.Boolean),
        required("network_type", sa.String(16)),
        required("physical_network", Name),
        sa.Column("segmentation_id", sa.Integer),
        required("created_at", UtcDateTime),
    )
    table(
        "subnets",
        sa.Column("id", Id, primary_key=True),
        sa.Column("network_id", Id, sa.ForeignKey("networks.id"), nullable=False, index=True),
        required("tenant_id", Name),
        required("name", Name),
        required("cidr", sa.String(64)),
        required("ip_version", sa.SmallInteger),
        sa.Column("gateway_ip", sa.String(64)),
        required("allocation_pools", sa.JSON),
        required("created_at", UtcDateTime),
    )


def load_balancers() -> None:
    table(
        "pools",
        sa.Column("id", Id, primary_key=True),
        sa.Column("tenant_id", Name, nullable=False, index=True),
        required("name", Name),
        required("description", Name),
        required("subnet_id", Id),
        required("protocol", sa.String(16)),
        required("lb_method", sa.String(32)),
        sa.Column("service_type_id", Id, sa.ForeignKey("service_types.id"), index=True),
        sa.Column("vip_id", Id, unique=True),
        *life_cycle(),
        required("created_at", UtcDateTime),
    )
    table(
        "vips",
        sa.Column("id", Id, primary_key=True),
        sa.Column("tenant_id", Name, nullable=False, index=True),
        required("name", Name),
        required("description", Name),
        sa.Column("subnet_id", Id, nullable=False, index=True),
        required("address", sa.String(64)),
        sa.Column("port_id", Id, nullable=False, index=True),
        required("protocol", sa.String(16)),
        required("protocol_port", sa.Integer),
        sa.Column("pool_id", Id, index=True),
        sa.Column("persistence_type", sa.String(16)),
        sa.Column("cookie_name", Name),
        required("connection_limit", sa.BigInteger),
        sa.Column("service_type_id", Id, sa.ForeignKey("service_types.id"), nullable=False, index=True),
        *life_cycle(),
        required("created_at", UtcDateTime),
    )
    table(
        "members",
        sa.Column("id", Id, primary_key=True),
        sa.Column("tenant_id", Name, nullable=False, index=True),
        sa.Column("pool_id", Id, sa.ForeignKey("pools.id"), nullable=False),
        required("address", sa.String(64)),
        required("protocol_port", sa.Integer),
        required("weight", sa.Integer),
        required("leaving", Id),
        *life_cycle(),
        required("created_at", UtcDateTime),
        sa.UniqueConstraint("pool_id", "address", "protocol_port", "leaving"),
    )
    table(
        "health_monitors",
        sa.Column("id", Id, primary_key=True),
        sa.Column("tenant_id", Name, nullable=False, index=True),
        required("type", sa.String(16)),
        required("delay", sa.Integer),
        required("timeout", sa.Integer),
        required("max_retries", sa.Integer),
        required("http_method", sa.String(16)),
        required("url_path", Name),
        required("expected_codes", sa.String(64)),
        required("admin_state_up", sa.Boolean),
        required("created_at", UtcDateTime),
    )
    table(
        "pool_monitors",
        sa.Column("pool_id", Id, sa.ForeignKey("pools.id"), primary_key=True),
        sa.Column("monitor_id", Id, sa.ForeignKey("health_monitors.id"), primary_key=True, index=True),
        required("status", sa.String(16)),
        required("status_description", Name),
    )
    table(
        "pool_stats",
        sa.Column("pool_id", Id, sa.ForeignKey("pools.id", ondelete="CASCADE"), primary_key=True),
        *(required(name, sa.BigInteger) for name in ("bytes_in", "bytes_out", "active_connections", "total_connections")),
    )
    table(
        "quotas",
        sa.Column("tenant_id", Name, primary_key=True),
        sa.Column("resource", sa.String(64), primary_key=True),
        required("limit", sa.Integer),
    )
    table(
        "quota_turns",
        sa.Column("tenant_id", Name, primary_key=True),
        sa.Column("resource", sa.String(64), primary_key=True),
        required("taken", sa.BigInteger),
    )


def allocator() -> None:
    table(
        "allocator_pools",
        sa.Column("kind", sa.String(64), primary_key=True),
        sa.Column("scope", sa.String(255), primary_key=True),
        sa.Column("name", sa.String(128), primary_key=True),
        sa.Column("id", AllocatorId, nullable=False, unique=True),
        required("domain", Domain),
        required("config", sa.JSON),
        required("state", sa.String(16)),
        required("generation", sa.Integer),
        sa.Column("parent_allocation_id", AllocatorId, nullable=False, index=True),
        required("carved", sa.JSON),
        required("rev", sa.Integer),
    )
    table(
        "allocator_claims",
        sa.Column("domain", Domain, primary_key=True),
        sa.Column("lo", Value, primary_key=True),
        sa.Column("hi", Value, primary_key=True),
        sa.Column("pool_id", AllocatorId, primary_key=True, index=True),
        sa.Column("role", sa.String(16), primary_key=True),
        required("rev", sa.Integer),
    )
    table(
        "allocator_domains",
        sa.Column("name", Domain, primary_key=True),
        required("version", sa.Integer),
        required("rev", sa.Integer),
    )
    table(
        "allocator_allocations",
        sa.Column("domain", Domain, primary_key=True),
        sa.Column("value", Value, primary_key=True),
        sa.Column("prefix_len", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("id", AllocatorId, nullable=False, unique=True),
        required("kind", sa.String(64)),
        required("pool_id", AllocatorId),
        required("owner_type", sa.String(64)),
        required("owner_id", sa.String(255)),
        required("slot", sa.String(322)),
        required("tenant_id", sa.String(255)),
        required("part", sa.String(64)),
        required("status", sa.String(16)),
        required("parent_id", AllocatorId),
        required("generation", sa.Integer),
        required("request_id", sa.String(128)),
        required("last_owner", sa.Text),
        required("created_at", UtcDateTime),
        sa.Column("due_at", UtcDateTime),
        sa.Column("birth_stamp", sa.String(32), nullable=False, index=True),
        required("birth_actor", sa.String(255)),
        required("birth_op", sa.String(16)),
        required("birth_pool", sa.String(384)),
        required("rev", sa.Integer),
        sa.UniqueConstraint("owner_type", "owner_id", "pool_id", "slot"),
        sa.Index("ix_allocator_allocations_pool", "pool_id", "tenant_id"),
        partial("ix_allocator_allocations_due", "due_at IS NOT NULL", "pool_id", "status", "due_at"),
        partial("ix_allocator_allocations_parent_id", "parent_id <> ''", "parent_id"),
    )
    table(
        "allocator_events",
        sa.Column("stamp", sa.String(32), primary_key=True),
        required("at", UtcDateTime),
        required("actor", sa.String(255)),
        required("op", sa.String(16)),
        required("kind", sa.String(64)),
        required("pool_id", AllocatorId),
        required("pool", sa.String(384)),
        required("domain", Domain),
        required("value", Value),
        required("prefix_len", sa.Integer),
        required("owner_type", sa.String(64)),
        required("owner_id", sa.String(255)),
        required("slot", sa.String(322)),
        sa.Column("allocation_id", AllocatorId, nullable=False, index=True),
        required("request_id", sa.String(128)),
        required("note", sa.String(255)),
        sa.Index("ix_allocator_events_owner", "owner_type", "owner_id"),
        sa.Index("ix_allocator_events_pool", "pool"),
    )
    table(
        "allocator_requests",
        sa.Column("request_id", sa.String(128), primary_key=True),
        required("result", sa.JSON),
        required("at", UtcDateTime),
        required("rev", sa.Integer),
    )
    table(
        "allocator_notes",
        sa.Column("topic", sa.String(128), primary_key=True),
        sa.Column("name", sa.String(384), primary_key=True),
        required("data", sa.LargeBinary),
        required("version", sa.Integer),
        required("rev", sa.Integer),
    )
