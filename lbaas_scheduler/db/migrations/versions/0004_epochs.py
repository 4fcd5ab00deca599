"""Epochs that outlive the deployments that had them.

Revision ID: 0004
Revises: 0003
Create Date: 2026-12-01

The columns' meaning is told in ``lbaas_scheduler.db.fleet_models``.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

NAME = "epochs"

FILL = """
    INSERT INTO epochs (resource_id, epoch)
    SELECT resource_id, MAX(epoch) FROM deployments
    WHERE resource_id NOT IN (SELECT resource_id FROM epochs) AND epoch > 1
    GROUP BY resource_id
"""


def upgrade() -> None:
    # MariaDB commits each statement: what an upgrade that was killed did already is there.
    if not sa.inspect(op.get_bind()).has_table(NAME):
        op.create_table(
            NAME,
            sa.Column("resource_id", sa.String(36), primary_key=True),
            sa.Column("epoch", sa.Integer, nullable=False),
            mysql_engine="InnoDB",
            mysql_charset="utf8mb4",
            mysql_collate="utf8mb4_bin",
        )
    op.execute(FILL)


def downgrade() -> None:
    op.execute(f"DROP TABLE IF EXISTS {NAME}")
