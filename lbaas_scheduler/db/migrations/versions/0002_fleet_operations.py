"""Moves, evacuations, reports of load and the circuit breaker.

Revision ID: 0002
Revises: 0001
Create Date: 2026-12-01

The columns' meaning is told in ``lbaas_scheduler.db.fleet_models``.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

Id = sa.String(36)
UtcDateTime = sa.DateTime().with_variant(mysql.DATETIME(fsp=6), "mysql", "mariadb")

TABLES = ("moves", "evacuations", "device_reports", "breakers")


def table(name: str, *columns: sa.schema.SchemaItem) -> None:
    op.create_table(name, *columns, mysql_engine="InnoDB", mysql_charset="utf8mb4", mysql_collate="utf8mb4_bin")


def required(name: str, type_: Any) -> sa.Column[Any]:
    return sa.Column(name, type_, nullable=False)


def upgrade() -> None:
    table(
        "moves",
        sa.Column("resource_id", Id, primary_key=True),
        required("id", Id),
        required("service", sa.String(64)),
        sa.Column("source_id", Id, nullable=False, index=True),
        sa.Column("target_id", Id, index=True),
        sa.Column("state", sa.String(16), nullable=False, index=True),
        required("cause", sa.String(16)),
        required("tried", sa.JSON),
        required("attempts", sa.Integer),
        required("error", sa.Text),
        sa.Column("due_at", UtcDateTime, index=True),
        required("created_at", UtcDateTime),
        required("updated_at", UtcDateTime),
    )
    table(
        "evacuations",
        sa.Column("device_id", Id, sa.ForeignKey("devices.id", ondelete="CASCADE"), primary_key=True),
        required("total", sa.Integer),
        required("started_at", UtcDateTime),
        sa.Column("finished_at", UtcDateTime),
        required("cancelled", sa.Boolean),
    )
    table(
        "device_reports",
        sa.Column("device_id", Id, sa.ForeignKey("devices.id", ondelete="CASCADE"), primary_key=True),
        required("connections", sa.BigInteger),
        required("reported_at", UtcDateTime),
    )
    table(
        "breakers",
        sa.Column("kind", sa.String(16), primary_key=True),
        sa.Column("tripped_at", UtcDateTime),
        sa.Column("acknowledged_at", UtcDateTime),
        required("reason", sa.Text),
    )


def downgrade() -> None:
    for name in reversed(TABLES):
        op.drop_table(name)
