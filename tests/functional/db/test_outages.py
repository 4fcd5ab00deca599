"""A database server that goes away and comes back."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from sqlalchemy.engine import make_url

from lbaas_scheduler.errors import ConfigurationError, Unavailable
from tests.database import open_database
from tests.functional.db.conftest import add_one, prepare, value_of
from tests.rig.ports import free_port


@pytest.mark.parametrize("server", ["own_postgresql", "own_mariadb"])
def test_a_restart_of_the_server_costs_a_delay(server: str, request: pytest.FixtureRequest) -> None:
    service: Any = request.getfixturevalue(server)
    database = open_database(service.create_database())
    prepare(database)

    service.kill()
    with ThreadPoolExecutor(1) as threads:
        written = threads.submit(database.write, add_one)
        with pytest.raises(TimeoutError):
            written.result(timeout=0.5)
        service.start()
        written.result(timeout=60)
    assert value_of(database) == 1
    database.dispose()


@pytest.mark.parametrize("driver", ["postgresql+psycopg", "mysql+pymysql"])
def test_a_server_that_stays_away_is_reported_after_the_configured_patience(driver: str) -> None:
    port = free_port()
    url = f"{driver}://user:pa55word@127.0.0.1:{port}/name"
    database = open_database(url, db_max_retries=5)
    begun = time.monotonic()

    with pytest.raises(Unavailable) as caught:
        database.write(add_one)
    # 10 + 20 + 40 + 80 + 160 ms
    assert 0.3 <= time.monotonic() - begun < 5
    assert caught.value.message.startswith("The database is unavailable for now: ")
    assert "refused" in caught.value.message
    assert "pa55word" not in caught.value.message
    assert "\n" not in caught.value.message


@pytest.mark.parametrize("empty_database_url", ["postgresql", "mariadb"], indirect=True)
def test_a_wrong_password_is_the_operators_error_and_not_waited_for(empty_database_url: str) -> None:
    url = make_url(empty_database_url).set(username="nobody", password="secret")
    database = open_database(url.render_as_string(hide_password=False))
    begun = time.monotonic()

    with pytest.raises(ConfigurationError, match=r"\[database\] connection \(.*\): .*nobody") as caught:
        database.read(value_of)  # type: ignore[arg-type]  # never gets to run
    assert time.monotonic() - begun < 5
    assert "secret" not in caught.value.message
