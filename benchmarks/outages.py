"""What PUT and GET of VIPs cost over REST while the message bus is there, stopped, a black hole, or in alarm.

``python -m benchmarks.outages --rounds 30``

A server that answers REST is a process of its own, on a private RabbitMQ behind a proxy and a private PostgreSQL; eight clients
change and read VIPs at once, so that there is a cast for each PUT. An agent that answers nothing listens.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from benchmarks.rest import milliseconds
from lbaas_scheduler.db import migration
from tests.database import open_database
from tests.functional.system.bus_site import OUTAGES, Site
from tests.rig.daemon import Daemon
from tests.rig.postgresql import PostgreSQL
from tests.rig.rabbitmq import RabbitMQ
from tests.rig.run import Run


def _measured(site: Site, rounds: int) -> dict[str, float]:
    puts, gets = zip(*site.timings(rounds), strict=True)
    return {
        f"{name}_p{int(share * 100)}_ms": milliseconds(taken, share)
        for name, taken in (("put", puts), ("get", gets))
        for share in (0.5, 0.95, 0.99)
    }


def _spawn(rig: Run, stack: ExitStack) -> Callable[..., Daemon]:
    def start(name: str, command: Sequence[str]) -> Daemon:
        daemon = Daemon(rig, name, command, log=rig.folder / f"{name}.log")
        daemon.start()
        stack.callback(daemon.kill)
        return daemon

    return start


def run(rounds: int) -> dict[str, dict[str, float]]:
    """State of the bus → percentiles in milliseconds."""
    with ExitStack() as stack:
        rig = Run.begin()
        stack.callback(rig.end)
        broker: Any = rig.private(RabbitMQ, "benchmark-rabbitmq")
        service: Any = rig.private(PostgreSQL, "benchmark-postgresql")
        broker.start()
        service.start()
        url = service.create_database()
        database = open_database(url)
        stack.callback(database.dispose)
        migration.sync(database.engine)
        site = Site(Path(rig.folder), database, url, broker, _spawn(rig, stack))
        stack.callback(site.close)
        site.timings(rounds)  # so that all connections and caches are there
        found = {"there": _measured(site, rounds)}
        for name, (breaks, mends) in OUTAGES.items():
            breaks(site)
            found[name] = _measured(site, rounds)
            mends(site)
            found[f"after {name}"] = _measured(site, rounds)
        return found


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.outages", description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=30, help="changes by each client, per state of the bus")
    print(json.dumps(run(parser.parse_args(arguments).rounds), indent=2))


if __name__ == "__main__":
    main(sys.argv[1:])
