"""Database URLs."""

from __future__ import annotations

import pytest

from lbaas_scheduler.db import engine
from lbaas_scheduler.db.session import Database
from lbaas_scheduler.errors import ConfigurationError
from tests.database import configured


@pytest.mark.parametrize(
    ("given", "driver"),
    [
        ("sqlite://", "sqlite"),
        ("postgresql://h/n", "postgresql+psycopg"),
        ("postgresql+psycopg://h/n", "postgresql+psycopg"),
        ("mysql://h/n", "mysql+pymysql"),
        ("mariadb://h/n", "mysql+pymysql"),
        ("mariadb+pymysql://h/n", "mysql+pymysql"),
    ],
)
def test_the_driver_is_completed(given: str, driver: str) -> None:
    assert engine.parse(given).drivername == driver


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        (None, "is not set; give sqlite:"),
        ("", "is not set"),
        ("/var/lib/lbaas.sqlite", "is not a database URL; give sqlite:"),
        ("oracle://user:pa55word@host/name", "'oracle' is not supported; give sqlite:"),
        ("postgresql+nonsense://user:pa55word@host/name", r"unknown driver 'postgresql\+nonsense'; give sqlite:"),
        ("mysql://user:pa55word@host:port/name", "is not a database URL"),
    ],
)
def test_a_url_that_is_wrong_is_told_without_its_password(given: str | None, complaint: str) -> None:
    with pytest.raises(ConfigurationError, match=rf"\[database\] connection:? {complaint}") as caught:
        engine.parse(given)
    assert "pa55word" not in caught.value.message


def test_a_driver_that_is_not_installed_is_named_with_what_to_install() -> None:
    with pytest.raises(ConfigurationError, match=r"'mysql\+oursql' is not installed|unknown driver|pip install"):
        Database.open(configured("mysql+mysqldb://host/name"))


def test_opening_connects_to_nothing() -> None:
    Database.open(configured("postgresql://user@192.0.2.1/name"))
