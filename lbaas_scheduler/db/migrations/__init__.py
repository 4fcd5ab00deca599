"""Alembic's environment. Driven by :mod:`lbaas_scheduler.db.migration`; there is no alembic.ini."""
