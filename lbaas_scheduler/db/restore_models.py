"""The tables of what outlives a fault: values that are still to be given back, and a restore of the database."""

from __future__ import annotations

import sqlalchemy as sa

from lbaas_scheduler.db.models import Id, Name, UtcDateTime, required, table

owed_releases = table(
    "owed_releases",
    # Owners that are gone, and whose values an allocator outside of this database was not told of yet. The row comes with the
    # transaction that ends the owner, and goes when the store has confirmed.
    sa.Column("owner_type", sa.String(64), primary_key=True),
    sa.Column("owner_id", sa.String(255), primary_key=True),
    required("created_at", UtcDateTime),
)

restores = table(
    "restores",
    # One row while a restore is under way: agents keep what this database does not know.
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
    required("started_at", UtcDateTime),
)

unknown_vips = table(
    "unknown_vips",
    # What agents found on devices during a restore, and is not here. vip_id "": the whole device is not here.
    sa.Column("device_id", Id, primary_key=True),
    sa.Column("vip_id", Id, primary_key=True),
    required("host", Name),
    required("found_at", UtcDateTime),
    # Whether an operator said that it is to go.
    required("to_remove", sa.Boolean, False),
)
