"""The tables. SQLAlchemy Core, the same on SQLite, PostgreSQL and MariaDB.

Three rules hold everywhere:

* What is hot (``device_load``) is narrow and separate from what is cold (``devices``): a placement never writes a cold row.
* Counters are materialised and guarded by the UPDATE that changes them; ``placements`` is the truth they are checked against.
* No NULL takes part in a unique key where a repetition must be refused (SQL lets NULLs repeat); where one *may* repeat, that is
  used on purpose and said so.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import mysql
from sqlalchemy.engine import Dialect

from lbaas_scheduler.domain import capacity

STANDARD_CLASSES = (capacity.VIPS, capacity.CONNECTIONS, capacity.ADDRESSES, capacity.BANDWIDTH_MBPS)
"""Resource classes with columns of their own in ``device_load``, in the order in which they are guarded."""


class UtcDateTime(sa.TypeDecorator[datetime]):
    """Timezone-aware in Python, plain UTC with microseconds in the database (SQLite and MariaDB keep no zone)."""

    impl = sa.DateTime
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> sa.types.TypeEngine[Any]:
        if dialect.name in ("mysql", "mariadb"):
            return dialect.type_descriptor(mysql.DATETIME(fsp=6))
        return dialect.type_descriptor(sa.DateTime())

    def process_bind_param(self, value: datetime | None, _dialect: Dialect) -> datetime | None:
        return None if value is None else value.astimezone(UTC).replace(tzinfo=None)

    def process_result_value(self, value: datetime | None, _dialect: Dialect) -> datetime | None:
        return None if value is None else value.replace(tzinfo=UTC)


metadata = sa.MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)

Id = sa.String(36)
Name = sa.String(255)
Sequence = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
"""SQLite numbers rows by itself only in a column of type INTEGER."""


def table(name: str, *columns: sa.schema.SchemaItem) -> sa.Table:
    # MariaDB's default collation ignores case and accents, the other two do not: make it compare bytes, too.
    return sa.Table(name, metadata, *columns, mysql_engine="InnoDB", mysql_charset="utf8mb4", mysql_collate="utf8mb4_bin")


def required(name: str, type_: Any, default: Any = None) -> sa.Column[Any]:
    return sa.Column(name, type_, nullable=False, default=default)


# --- service types ----------------------------------------------------------------------------------------------------

service_types = table(
    "service_types",
    sa.Column("id", Id, primary_key=True),
    sa.Column("name", Name, nullable=False, unique=True),
    required("description", Name, ""),
    required("enabled", sa.Boolean, True),
    # 1 for the default, else NULL: a unique key over it allows one default and any number of others.
    sa.Column("default_slot", sa.SmallInteger, unique=True),
    required("options", sa.JSON, dict),
    required("created_at", UtcDateTime),
)

service_definitions = table(
    "service_definitions",
    sa.Column("service_type_id", Id, sa.ForeignKey("service_types.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("service", sa.String(64), primary_key=True),
    required("plugin", Name),
    sa.Column("driver", sa.String(64)),
)

# --- agents -----------------------------------------------------------------------------------------------------------

agents = table(
    "agents",
    sa.Column("id", Id, primary_key=True),
    required("agent_type", sa.String(64)),
    required("host", Name),
    required("binary", Name),
    required("topic", Name),
    required("description", Name, ""),
    required("admin_state_up", sa.Boolean, True),
    required("configurations", sa.JSON, dict),
    required("created_at", UtcDateTime),
    required("started_at", UtcDateTime),
    required("heartbeat_at", UtcDateTime),
    sa.UniqueConstraint("agent_type", "host"),
)

agent_drivers = table(
    "agent_drivers",
    sa.Column("agent_id", Id, sa.ForeignKey("agents.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("device_type", sa.String(64), primary_key=True),
)

# --- devices ----------------------------------------------------------------------------------------------------------

sched_classes = table(
    "sched_classes",
    # One row per distinct combination of what devices are filtered by. Rows are only added: MAX(id) is the version of the whole.
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

devices = table(
    "devices",
    sa.Column("id", Id, primary_key=True),
    required("name", Name),
    required("description", Name, ""),
    required("service", sa.String(64)),
    required("device_type", sa.String(64)),
    required("form", sa.String(16)),
    sa.Column("tenant_id", Name, index=True),
    required("shared", sa.Boolean),
    required("zone", Name, ""),
    required("admin_state", sa.String(16)),
    required("status", sa.String(16)),
    required("status_description", Name, ""),
    required("management", sa.JSON, dict),
    # Fernet token of the management secrets; "" = none.
    required("secret", sa.Text, ""),
    required("traits", sa.JSON, list),
    required("interfaces", sa.JSON, list),
    sa.Column("agent_host", Name),
    required("extra", sa.JSON, dict),
    required("generation", sa.Integer, 0),
    sa.Column("class_id", sa.Integer, sa.ForeignKey("sched_classes.id"), nullable=False, index=True),
    required("load", sa.JSON, dict),
    required("failures", sa.Integer, 0),
    sa.Column("check_due_at", UtcDateTime, index=True),
    # Since when it is OFFLINE; NULL = it is not.
    sa.Column("offline_since", UtcDateTime),
    required("created_at", UtcDateTime),
    required("updated_at", UtcDateTime),
)

device_load = table(
    "device_load",
    # Grows with registration: the order of first_available.
    sa.Column("seq", Sequence, primary_key=True, autoincrement=True),
    sa.Column("device_id", Id, sa.ForeignKey("devices.id", ondelete="CASCADE"), nullable=False, unique=True),
    required("class_id", sa.Integer),
    # Enabled, ONLINE and driven by a live agent: what the registry and monitoring say.
    required("schedulable", sa.SmallInteger),
    # schedulable, and not full.
    required("open", sa.SmallInteger),
    # The tenant that has the device to itself for as long as it holds anything; "" = nobody.
    required("dedicated_to", Name, ""),
    # Fill of the fullest standard resource class in 1/10,000.
    required("rank", sa.Integer, 0),
    *(
        column
        for name in STANDARD_CLASSES
        for column in (
            required(f"{name.lower()}_used", sa.BigInteger, 0),
            required(f"{name.lower()}_max", sa.BigInteger, -1),
        )
    ),
    sa.Index("ix_device_load_by_rank", "class_id", "open", "rank", "seq"),
    sa.Index("ix_device_load_by_age", "class_id", "open", "seq"),
)

device_capacities = table(
    "device_capacities",
    # Every resource class of a device, as registered. `used` counts vendors' own; the standard ones are counted in device_load.
    sa.Column("device_id", Id, sa.ForeignKey("devices.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("resource_class", sa.String(64), primary_key=True),
    required("total", sa.BigInteger),
    required("reserved", sa.BigInteger, 0),
    required("allocation_ratio", sa.Float, 1.0),
    required("limit", sa.BigInteger),
    required("used", sa.BigInteger, 0),
)

device_networks = table(
    "device_networks",
    sa.Column("network_id", Id, primary_key=True),
    sa.Column("device_id", Id, sa.ForeignKey("devices.id", ondelete="CASCADE"), primary_key=True, index=True),
    required("interface", Name, ""),
    sa.Column("segment", sa.Integer),
    required("vips", sa.Integer, 0),
)

device_agents = table(
    "device_agents",
    # Which agent drives a device. Moves by compare-and-swap on (agent_id, epoch).
    sa.Column("device_id", Id, sa.ForeignKey("devices.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("agent_id", Id, sa.ForeignKey("agents.id"), nullable=False, index=True),
    required("epoch", sa.Integer, 1),
    required("assigned_at", UtcDateTime),
)

# --- placements -------------------------------------------------------------------------------------------------------

placements = table(
    "placements",
    # role "current" is where the resource is; "target" is where it is moving to; "leaving:<device id>" is what a device that it
    # left still has of it. A retry cannot claim twice.
    sa.Column("resource_id", Id, primary_key=True),
    sa.Column("role", sa.String(64), primary_key=True),
    required("service", sa.String(64)),
    sa.Column("device_id", Id, sa.ForeignKey("devices.id"), nullable=False, index=True),
    required("tenant_id", Name),
    required("service_type_id", Id, ""),
    required("amounts", sa.JSON),
    required("networks", sa.JSON, list),
    required("score", sa.Float),
    required("trail", sa.JSON),
    sa.Column("created_at", UtcDateTime, nullable=False, index=True),
    sa.Index("ix_placements_tenant_device", "tenant_id", "device_id"),
)

deployments = table(
    "deployments",
    sa.Column("resource_id", Id, primary_key=True),
    sa.Column("device_id", Id, sa.ForeignKey("devices.id"), primary_key=True, index=True),
    # "apply" or "remove"
    required("operation", sa.String(16)),
    required("epoch", sa.Integer),
    required("desired_revision", sa.Integer),
    required("applied_revision", sa.Integer, 0),
    # When the next cast is due; NULL = settled. A server claims the row by moving this time forward with a compare-and-swap.
    sa.Column("due_at", UtcDateTime, index=True),
    required("attempts", sa.Integer, 0),
    # Since when desired and applied differ; past [scheduler] pending_timeout the VIP turns ERROR.
    sa.Column("pending_since", UtcDateTime),
    required("error", sa.Text, ""),
)

# --- networks ---------------------------------------------------------------------------------------------------------

networks = table(
    "networks",
    sa.Column("id", Id, primary_key=True),
    required("tenant_id", Name),
    required("name", Name, ""),
    required("shared", sa.Boolean, False),
    # flat, vlan or vxlan
    required("network_type", sa.String(16), "flat"),
    required("physical_network", Name, ""),
    sa.Column("segmentation_id", sa.Integer),
    required("created_at", UtcDateTime),
)

subnets = table(
    "subnets",
    sa.Column("id", Id, primary_key=True),
    sa.Column("network_id", Id, sa.ForeignKey("networks.id"), nullable=False, index=True),
    required("tenant_id", Name),
    required("name", Name, ""),
    required("cidr", sa.String(64)),
    required("ip_version", sa.SmallInteger),
    sa.Column("gateway_ip", sa.String(64)),
    # [[first, last], ...]
    required("allocation_pools", sa.JSON),
    required("created_at", UtcDateTime),
)

# --- load balancers ---------------------------------------------------------------------------------------------------


def life_cycle() -> tuple[sa.Column[Any], ...]:
    return (
        required("admin_state_up", sa.Boolean, True),
        required("status", sa.String(16)),
        required("status_description", Name, ""),
    )


pools = table(
    "pools",
    sa.Column("id", Id, primary_key=True),
    sa.Column("tenant_id", Name, nullable=False, index=True),
    required("name", Name, ""),
    required("description", Name, ""),
    required("subnet_id", Id),
    required("protocol", sa.String(16)),
    required("lb_method", sa.String(32)),
    # NULL: whatever is the default. As of a VIP, the reference keeps what is named from being deleted meanwhile.
    sa.Column("service_type_id", Id, sa.ForeignKey("service_types.id"), index=True),
    # The pool's one VIP. NULL while it has none, which may repeat.
    sa.Column("vip_id", Id, unique=True),
    *life_cycle(),
    required("created_at", UtcDateTime),
)

vips = table(
    "vips",
    sa.Column("id", Id, primary_key=True),
    sa.Column("tenant_id", Name, nullable=False, index=True),
    required("name", Name, ""),
    required("description", Name, ""),
    sa.Column("subnet_id", Id, nullable=False, index=True),
    required("address", sa.String(64)),
    sa.Column("port_id", Id, nullable=False, index=True),
    required("protocol", sa.String(16)),
    required("protocol_port", sa.Integer),
    sa.Column("pool_id", Id, index=True),
    sa.Column("persistence_type", sa.String(16)),
    sa.Column("cookie_name", Name),
    required("connection_limit", sa.BigInteger, -1),
    # The reference keeps a service type from being deleted while a VIP of it is being created.
    sa.Column("service_type_id", Id, sa.ForeignKey("service_types.id"), nullable=False, index=True),
    *life_cycle(),
    required("created_at", UtcDateTime),
    # By it members are recognised that are VIPs.
    sa.Index("ix_vips_address", "address", "protocol_port"),
)

members = table(
    "members",
    sa.Column("id", Id, primary_key=True),
    sa.Column("tenant_id", Name, nullable=False, index=True),
    sa.Column("pool_id", Id, sa.ForeignKey("pools.id"), nullable=False),
    required("address", sa.String(64)),
    required("protocol_port", sa.Integer),
    required("weight", sa.Integer, 1),
    # "" for a member that stays, its own id for one in PENDING_DELETE: so its address can be taken again at once.
    required("leaving", Id, ""),
    *life_cycle(),
    required("created_at", UtcDateTime),
    sa.UniqueConstraint("pool_id", "address", "protocol_port", "leaving"),
)

health_monitors = table(
    "health_monitors",
    sa.Column("id", Id, primary_key=True),
    sa.Column("tenant_id", Name, nullable=False, index=True),
    required("type", sa.String(16)),
    required("delay", sa.Integer),
    required("timeout", sa.Integer),
    required("max_retries", sa.Integer),
    required("http_method", sa.String(16), "GET"),
    required("url_path", Name, "/"),
    required("expected_codes", sa.String(64), "200"),
    required("admin_state_up", sa.Boolean, True),
    required("created_at", UtcDateTime),
)

pool_monitors = table(
    "pool_monitors",
    sa.Column("pool_id", Id, sa.ForeignKey("pools.id"), primary_key=True),
    sa.Column("monitor_id", Id, sa.ForeignKey("health_monitors.id"), primary_key=True, index=True),
    required("status", sa.String(16)),
    required("status_description", Name, ""),
)

pool_stats = table(
    "pool_stats",
    sa.Column("pool_id", Id, sa.ForeignKey("pools.id", ondelete="CASCADE"), primary_key=True),
    *(required(name, sa.BigInteger, 0) for name in ("bytes_in", "bytes_out", "active_connections", "total_connections")),
)

# --- quotas -----------------------------------------------------------------------------------------------------------

quotas = table(
    "quotas",
    # What a tenant may have, where that is not the default. -1 = any number.
    sa.Column("tenant_id", Name, primary_key=True),
    sa.Column("resource", sa.String(64), primary_key=True),
    required("limit", sa.Integer),
)

quota_turns = table(
    "quota_turns",
    # One row per tenant and limited resource, locked while one of it is created: so that counting and inserting are one step.
    sa.Column("tenant_id", Name, primary_key=True),
    sa.Column("resource", sa.String(64), primary_key=True),
    required("taken", sa.BigInteger, 0),
)
