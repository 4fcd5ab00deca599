"""Checks before a new version is started, in the frame of oslo.upgradecheck."""

from __future__ import annotations

from collections.abc import Sequence

import sqlalchemy as sa
from oslo_upgradecheck.upgradecheck import Code, Result, UpgradeCommands

from lbaas_scheduler import extensions
from lbaas_scheduler.db import devices, migration
from lbaas_scheduler.db.models import service_types
from lbaas_scheduler.db.session import Database
from lbaas_scheduler.devices.secrets import Vault
from lbaas_scheduler.errors import ConfigurationError


class UpgradeChecks(UpgradeCommands):
    """:meth:`check` prints a table and returns the worst code."""

    def __init__(self, database: Database, encryption_keys: Sequence[str]) -> None:
        self._database = database
        self._keys = encryption_keys

    def _schema(self) -> Result:
        try:
            migration.require_current(self._database, extensions.migration_folders())
        except ConfigurationError as error:
            return Result(Code.FAILURE, error.message)
        return Result(Code.SUCCESS)

    def _default_service_type(self) -> Result:
        if not self._has_tables():
            return Result(Code.WARNING, "Cannot be checked before 'db sync'.")
        default = sa.select(service_types.c.name, service_types.c.enabled).where(service_types.c.default_slot == 1)
        found = self._database.read(lambda conn: conn.execute(default).one_or_none())
        if found is None:
            return Result(Code.WARNING, "There is none; the server creates the one of [DEFAULT] default_service_type at start.")
        if not found.enabled:
            return Result(Code.WARNING, f"'{found.name}' is disabled: requests that name no service type are refused.")
        return Result(Code.SUCCESS)

    def _encryption_keys(self) -> Result:
        try:
            vault = Vault(self._keys)
            for token in self._sealed():
                vault.open(token)
        except ConfigurationError as error:
            return Result(Code.FAILURE, error.message)
        return Result(Code.SUCCESS)

    def _sealed(self) -> list[str]:
        return list(self._database.read(devices.sealed_secrets).values()) if self._has_tables() else []

    def _has_tables(self) -> bool:
        return bool(self._database.read(migration.current))

    _upgrade_checks = (
        ("Database schema", _schema),
        ("Default service type", _default_service_type),
        ("Encryption keys", _encryption_keys),
    )
