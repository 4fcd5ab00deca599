"""How fast resources are placed, beside OpenStack Placement on the same database server in the same run.

``python -m benchmarks.peers --db postgresql --devices 10000 --clients 1,4 --json``

The peer is installed from the package index into a virtual environment of its own (``--venv``), once. It runs in the process
of each client, without HTTP: one placement is a GET of allocation candidates and a PUT of an allocation on one of them. Ours is
measured as :mod:`benchmarks.placement` does it, VIP row, address and deployment included: the peer knows none of these. ``ratio``
= our rate / the peer's; measured in turns, median of the rounds.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import venv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from benchmarks import fleet, placement

PACKAGES = ("openstack-placement", "psycopg2-binary", "pymysql")
DRIVERS = {"postgresql": "postgresql+psycopg2", "mysql": "mysql+pymysql", "sqlite": "sqlite"}
WORKER = Path(__file__).with_name("peer_worker.py")
WARM_UP = 1
PATIENCE_SECONDS = 600


class Peer:
    """OpenStack Placement in an environment of its own."""

    def __init__(self, folder: Path) -> None:
        self._python = folder / "bin" / "python"
        if not self._python.exists():
            venv.create(folder, with_pip=True)
            subprocess.run([self._python, "-m", "pip", "install", "--quiet", *PACKAGES], check=True)

    def version(self) -> str:
        asked = [self._python, "-c", "import importlib.metadata as m; print(m.version('openstack-placement'))"]
        return subprocess.run(asked, check=True, capture_output=True, text=True).stdout.strip()

    def prepare(self, url: str, devices: int) -> None:
        subprocess.run([*self._command("prepare"), url, str(devices)], check=True, timeout=PATIENCE_SECONDS)

    def measure(self, url: str, clients: int, seconds: float) -> list[dict[str, Any]]:
        """What each client did, all of them at once."""
        command = [*self._command("run"), url, str(seconds), str(WARM_UP)]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        running = [subprocess.Popen(command, **pipes) for _ in range(clients)]  # type: ignore[call-overload]
        try:
            for process in running:
                assert process.stdout.readline() == "ready\n", "a peer died while it warmed up"
            for process in running:
                process.stdin.write("go\n")
                process.stdin.flush()
            return [json.loads(process.communicate(timeout=seconds + PATIENCE_SECONDS)[0]) for process in running]
        finally:
            for process in running:
                process.kill()
                process.wait()

    def _command(self, verb: str) -> list[str]:
        # -P: the folder of the worker holds a module called placement, too.
        return [str(self._python), "-P", "-W", "ignore", str(WORKER), verb]


def peer_url(url: str) -> str:
    """The same database by the driver that the peer has."""
    parsed = sa.make_url(url)
    return parsed.set(drivername=DRIVERS[parsed.get_backend_name()]).render_as_string(hide_password=False)


def point(urls: tuple[str, str], peer: Peer, options: argparse.Namespace, devices: int, clients: int) -> dict[str, Any]:
    """:param urls: of our database and of the peer's."""
    ours, theirs, errors, conflicts = [], [], 0, 0
    for _ in range(options.rounds):
        runs = placement.measure("engine", urls[0], clients, options.seconds)
        ours.append(sum(len(run.seconds) / run.elapsed for run in runs))
        answers = peer.measure(urls[1], clients, options.seconds)
        theirs.append(sum(len(it["seconds"]) / it["elapsed"] for it in answers))
        errors += sum(it["errors"] for it in answers)
        conflicts += sum(it["conflicts"] for it in answers)
    return {
        "db": options.db,
        "devices": devices,
        "clients": clients,
        "peer": f"openstack-placement {peer.version()}",
        "rate": round(statistics.median(ours), 1),
        "peer_rate": round(statistics.median(theirs), 2),
        "ratio": round(statistics.median(mine / max(its, 1e-9) for mine, its in zip(ours, theirs, strict=True)), 1),
        "peer_conflicts": conflicts,
        "peer_errors": errors,
    }


def run(options: argparse.Namespace) -> list[dict[str, Any]]:
    peer = Peer(options.venv)
    points = []
    with fleet.servers(options.db) as new_database:
        for devices in options.devices:
            urls = new_database(), new_database()
            database = fleet.open_database(urls[0])
            fleet.create(database, devices)
            database.dispose()
            theirs = peer_url(urls[1])
            peer.prepare(theirs, devices)
            for clients in options.clients:
                points.append(point((urls[0], theirs), peer, options, devices, clients))
                if not options.json:
                    print(points[-1], flush=True)
    return points


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=__doc__.splitlines()[0])
    parser.add_argument("--db", choices=["sqlite", "postgresql", "mysql"], default="postgresql")
    parser.add_argument("--devices", type=placement.numbers, default=[10000], help="sizes of the fleet, comma-separated")
    parser.add_argument("--clients", type=placement.numbers, default=[1, 4], help="numbers of processes, comma-separated")
    parser.add_argument("--seconds", type=float, default=10.0, help="how long each measurement of a round takes at least")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--venv", type=Path, default=Path(".venv-peers"), help="the peer's environment; made where it is absent")
    parser.add_argument("--json", action="store_true", help="print one JSON document and nothing else")
    options = parser.parse_args(arguments)
    points = run(options)
    if options.json:
        print(json.dumps({"points": points}))


if __name__ == "__main__":
    main(sys.argv[1:])
