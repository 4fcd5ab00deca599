"""OpenStack Placement in process, driven through its WSGI application. Run by :mod:`benchmarks.peers` in a virtual environment
of its own, hence without a single import of ours.

``prepare URL DEVICES`` makes the tables and a fleet; ``run URL SECONDS WARM_UP`` waits for a line on standard input, places for
so long and prints a JSON document; ``check URL`` prints by how much it is over-committed.
"""

from __future__ import annotations

import itertools
import json
import random
import sys
import time
import uuid
from typing import Any

import sqlalchemy as sa
import webob
from oslo_config import cfg
from placement import conf as placement_options
from placement import db_api, deploy

TRAITS = ("CUSTOM_ADDRESS_IPV4", "CUSTOM_METHOD_ROUND_ROBIN", "CUSTOM_PROTOCOL_HTTP")
SLOTS = 1_000_000
CHUNK = 1000
PAGE_SIZE = 32
HEADERS = {"X-Auth-Token": "admin", "OpenStack-API-Version": "placement 1.39", "Accept": "application/json"}
CANDIDATES = f"/allocation_candidates?resources=VCPU:1&required={','.join(TRAITS)}&limit={PAGE_SIZE}"
MAX_TRIES = 10


def application(url: str) -> Any:
    config = cfg.ConfigOpts()
    placement_options.register_opts(config)
    config.set_override("connection", url, group="placement_database")
    config.set_override("sync_on_startup", True, group="placement_database")
    config.set_override("auth_strategy", "noauth2", group="api")
    config.set_override("randomize_allocation_candidates", True, group="placement")
    config([], project="placement", default_config_files=[], default_config_dirs=[])
    db_api.configure(config)
    return deploy.loadapp(config)


def send(app: Any, method: str, path: str, body: Any = None) -> webob.Response:
    request = webob.Request.blank(path, method=method, headers=HEADERS)
    if body is not None:
        request.json = body
        request.content_type = "application/json"
    return request.get_response(app)


def prepare(url: str, devices: int) -> None:
    """Rows, since ten thousand providers take minutes through the API."""
    app = application(url)
    for trait in TRAITS:
        answer = send(app, "PUT", f"/traits/{trait}")
        if answer.status_int not in (201, 204):
            raise SystemExit(f"PUT /traits/{trait}: {answer.status} {answer.text}")
    engine = db_api.get_placement_engine()
    tables = sa.MetaData()
    tables.reflect(engine)
    providers, inventories, rp_traits = (
        tables.tables[name] for name in ("resource_providers", "inventories", "resource_provider_traits")
    )
    with engine.begin() as conn:
        classes = tables.tables["resource_classes"]
        vcpu = conn.scalar(sa.select(classes.c.id).where(classes.c.name == "VCPU"))
        traits = tables.tables["traits"]
        trait_ids = list(conn.scalars(sa.select(traits.c.id).where(traits.c.name.in_(TRAITS))))
        numbers = iter(range(1, devices + 1))
        while chunk := list(itertools.islice(numbers, CHUNK)):
            rows = [_provider(number) for number in chunk]
            conn.execute(sa.insert(providers), rows)
            conn.execute(sa.insert(inventories), [_inventory(number, vcpu, devices) for number in chunk])
            conn.execute(
                sa.insert(rp_traits), [{"resource_provider_id": number, "trait_id": it} for number in chunk for it in trait_ids]
            )
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as conn:
        for table in (providers, inventories, rp_traits):
            command = "ANALYZE TABLE" if engine.dialect.name == "mysql" else "ANALYZE"
            conn.exec_driver_sql(f"{command} {table.name}").close()


def _provider(number: int) -> dict[str, Any]:
    return {"id": number, "uuid": str(uuid.uuid4()), "name": f"device-{number}", "generation": 0, "root_provider_id": number}


def _inventory(number: int, resource_class: int, devices: int) -> dict[str, Any]:
    sizes = {"total": max(1, SLOTS // devices), "reserved": 0, "min_unit": 1, "max_unit": 100, "step_size": 1}
    return {"resource_provider_id": number, "resource_class_id": resource_class, "allocation_ratio": 1.0, **sizes}


def place(app: Any) -> tuple[int, int]:
    """One placement as Nova makes one: candidates, then an allocation on one of them. :returns: conflicts and errors."""
    conflicts = errors = 0
    for _ in range(MAX_TRIES):
        answer = send(app, "GET", CANDIDATES)
        if answer.status_int != 200:
            errors += 1
            continue
        chosen = random.choice(answer.json["allocation_requests"])  # noqa: S311
        tenant = f"tenant-{random.randrange(100)}"  # noqa: S311
        body = {**chosen, "project_id": tenant, "user_id": tenant, "consumer_generation": None, "consumer_type": "VIP"}
        body.pop("mappings", None)
        answer = send(app, "PUT", f"/allocations/{uuid.uuid4()}", body)
        if answer.status_int == 204:
            return conflicts, errors
        if answer.status_int == 409:
            conflicts += 1
        else:
            errors += 1
            sys.stderr.write(f"{answer.status} {answer.text[:500]}\n")
    return conflicts, errors + 1


def run(url: str, seconds: float, warm_up: int) -> None:
    app = application(url)
    for _ in range(warm_up):
        place(app)
    print("ready", flush=True)
    sys.stdin.readline()
    taken: list[float] = []
    conflicts = errors = 0
    began = time.monotonic()
    while time.monotonic() - began < seconds:
        start = time.perf_counter()
        lost, failed = place(app)
        taken.append(time.perf_counter() - start)
        conflicts, errors = conflicts + lost, errors + failed
    print(json.dumps({"seconds": taken, "elapsed": time.monotonic() - began, "conflicts": conflicts, "errors": errors}))


if __name__ == "__main__":
    verb, *arguments = sys.argv[1:]
    if verb == "prepare":
        prepare(arguments[0], int(arguments[1]))
    else:
        run(arguments[0], float(arguments[1]), int(arguments[2]))
