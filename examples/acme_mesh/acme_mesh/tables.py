"""The table that only this package needs."""

from __future__ import annotations

import sqlalchemy as sa

metadata = sa.MetaData()

acme_meshes = sa.Table(
    "acme_meshes",
    metadata,
    sa.Column("name", sa.String(64), primary_key=True),
    # Under maintenance: takes no new VIPs.
    sa.Column("frozen", sa.Boolean, nullable=False),
)
