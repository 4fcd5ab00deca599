"""A server that does nothing but place: ``python -m … URL ALGORITHM CREATES NUMBER`` prints what became of each create."""

from __future__ import annotations

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from lbaas_scheduler.db.session import Database
from lbaas_scheduler.errors import NoValidDevice
from tests.database import configured
from tests.factories import new_request
from tests.functional.placement.conftest import new_placer

THREADS = 4


def main(url: str, algorithm: str, creates: str, number: str) -> None:
    database = Database.open(configured(url))
    placer = new_placer(database, algorithm=algorithm)

    def create(turn: int) -> dict[str, Any]:
        try:
            return {"placed": True, "device": placer.place(new_request(f"vip-{number}-{turn}")).device_id}
        except NoValidDevice as error:
            return {"placed": False, "dropped": error.kwargs["trail"]["dropped"]}

    with ThreadPoolExecutor(THREADS) as pool:
        outcomes = list(pool.map(create, range(int(creates))))
    print(json.dumps(outcomes))


if __name__ == "__main__":
    main(*sys.argv[1:])
