"""Run by alembic for every command. The connection comes from :mod:`lbaas_scheduler.db.migration`."""

from __future__ import annotations

from alembic import context

from lbaas_scheduler.db import models

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=models.metadata,
    # SQLite changes a column only by copying its table.
    render_as_batch=True,
)
with context.begin_transaction():
    context.run_migrations()
