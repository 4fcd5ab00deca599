"""Meshes.

Revision ID: acme_mesh_0001
Revises:
Create Date: 2026-12-01
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "acme_mesh_0001"
down_revision = None
branch_labels = ("acme_mesh",)
depends_on = None


def upgrade() -> None:
    op.create_table(
        "acme_meshes",
        sa.Column("name", sa.String(64), primary_key=True),
        sa.Column("frozen", sa.Boolean, nullable=False),
    )


def downgrade() -> None:
    op.drop_table("acme_meshes")
