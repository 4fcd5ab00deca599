"""Two transactions of which the second comes when the first has written everything, and has not committed."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import sqlalchemy as sa

from lbaas_scheduler.db.session import Database
from tests.rig.waiting import wait_for

_WAITING = {
    "postgresql": "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()",
    "mysql": "SELECT count(*) FROM information_schema.innodb_trx JOIN information_schema.processlist ON id = trx_mysql_thread_id "
    "WHERE trx_state = 'LOCK WAIT' AND db = database()",
}

INTERVAL_SECONDS = 0.15
"""MariaDB goes on showing what it showed last to whoever looks again within 0.1 s."""


def interleave(database: Database, first: Callable[[], Any], second: Callable[[], Any]) -> None:
    """Run both. The first one's first transaction commits when the second has to wait for it, or has ended.

    Not for SQLite, which has one writer at a time.
    """
    written, go_on = threading.Event(), threading.Event()
    original = database._write_once

    def write_once(work: Callable[[sa.Connection], Any]) -> Any:
        if threading.current_thread() is not one or written.is_set():
            return original(work)

        def paused(conn: sa.Connection) -> Any:
            answer = work(conn)
            written.set()
            go_on.wait(60)
            return answer

        return original(paused)

    bugs: list[BaseException] = []

    def run(job: Callable[[], Any]) -> None:
        try:
            job()
        except BaseException as error:
            bugs.append(error)

    one, two = (threading.Thread(target=run, args=(job,)) for job in (first, second))
    database._write_once = write_once  # type: ignore[method-assign]
    try:
        one.start()
        wait_for(lambda: written.is_set() or bugs, 30, "the first transaction's writes")
        two.start()
        wait_for(lambda: not two.is_alive() or _somebody_waits(database), 30, "the second transaction", interval=INTERVAL_SECONDS)
    finally:
        go_on.set()
        one.join(60)
        two.join(60)
        database._write_once = original  # type: ignore[method-assign]
    if bugs:
        raise bugs[0]


def _somebody_waits(database: Database) -> bool:
    with database.engine.connect() as conn:
        return bool(conn.scalar(sa.text(_WAITING[database.engine.dialect.name])))
