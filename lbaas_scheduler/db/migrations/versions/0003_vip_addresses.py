"""An index of where VIPs are, by which members are recognised that are VIPs.

Revision ID: 0003
Revises: 0002
Create Date: 2026-12-01
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

INDEX = "ix_vips_address"


def _is_there() -> bool:
    return any(index["name"] == INDEX for index in sa.inspect(op.get_bind()).get_indexes("vips"))


def upgrade() -> None:
    # MariaDB commits each statement: an upgrade that was killed after this one comes here again.
    if not _is_there():
        op.create_index(INDEX, "vips", ["address", "protocol_port"])


def downgrade() -> None:
    if _is_there():
        op.drop_index(INDEX, "vips")
