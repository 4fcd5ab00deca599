"""The table of placement rules."""

from __future__ import annotations

import sqlalchemy as sa

from lbaas_scheduler.db.models import Id, Name, UtcDateTime, required, table

placement_rules = table(
    "placement_rules",
    sa.Column("id", Id, primary_key=True),
    sa.Column("name", Name, nullable=False, unique=True),
    required("service", sa.String(64)),
    required("position", sa.Integer),
    required("description", Name, ""),
    required("enabled", sa.Boolean, True),
    # What a resource must be like, and what is asked of its device then; both as an administrator wrote them.
    required("match", sa.JSON),
    required("wishes", sa.JSON),
    required("created_at", UtcDateTime),
)
