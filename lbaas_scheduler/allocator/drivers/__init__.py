"""Stores: ``memory`` (one process), ``sql`` (SQLite, PostgreSQL, MariaDB), ``etcd``."""
