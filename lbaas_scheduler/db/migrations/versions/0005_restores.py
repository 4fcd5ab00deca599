"""Values that are still to be given back, and restores of the database.

Revision ID: 0005
Revises: 0004
Create Date: 2026-12-01

The columns' meaning is told in ``lbaas_scheduler.db.restore_models``.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

Id = sa.String(36)
UtcDateTime = sa.DateTime().with_variant(mysql.DATETIME(fsp=6), "mysql", "mariadb")

TABLES = ("owed_releases", "restores", "unknown_vips")


def table(name: str, *columns: sa.schema.SchemaItem) -> None:
    op.create_table(name, *columns, mysql_engine="InnoDB", mysql_charset="utf8mb4", mysql_collate="utf8mb4_bin")


def required(name: str, type_: Any) -> sa.Column[Any]:
    return sa.Column(name, type_, nullable=False)


def upgrade() -> None:
    table(
        "owed_releases",
        sa.Column("owner_type", sa.String(64), primary_key=True),
        sa.Column("owner_id", sa.String(255), primary_key=True),
        required("created_at", UtcDateTime),
    )
    table(
        "restores",
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
        required("started_at", UtcDateTime),
    )
    table(
        "unknown_vips",
        sa.Column("device_id", Id, primary_key=True),
        sa.Column("vip_id", Id, primary_key=True),
        required("host", sa.String(255)),
        required("found_at", UtcDateTime),
        required("to_remove", sa.Boolean),
    )


def downgrade() -> None:
    for name in reversed(TABLES):
        op.drop_table(name)
