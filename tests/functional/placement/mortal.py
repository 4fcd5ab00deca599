"""A server that places and may be killed at any moment: ``python -m … URL NUMBER CREATES JOURNAL``.

What became of each create is a line of the journal. Started again, it repeats those of which it does not know, the one
that it died in included.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from lbaas_scheduler.db.session import Database
from lbaas_scheduler.domain.requests import ScheduleRequest
from lbaas_scheduler.errors import NoValidDevice
from tests.database import configured
from tests.factories import new_request
from tests.functional.placement.conftest import new_placer

OWN_CLASS = "CUSTOM_TPS"


def request_for(number: str, turn: int) -> ScheduleRequest:
    """Of several tenants and networks; some demand a vendor's own class as well."""
    demand = {"VIPS": 1, OWN_CLASS: 2} if turn % 3 == 0 else {"VIPS": 1}
    return new_request(f"vip-{number}-{turn}", tenant_id=f"tenant-{turn % 5}", networks=(f"net-{turn % 4}",), demand=demand)


def main(url: str, number: str, creates: str, journal: str) -> None:
    path = Path(journal)
    known = {line.split()[0] for line in path.read_text().splitlines()} if path.exists() else set()
    placer = new_placer(Database.open(configured(url)), max_rounds=100)
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for turn in range(int(creates)):
        if str(turn) in known:
            continue
        try:
            outcome = placer.place(request_for(number, turn)).device_id
        except NoValidDevice:
            outcome = "refused"
        os.write(file, f"{turn} {outcome}\n".encode())


if __name__ == "__main__":
    main(*sys.argv[1:])
