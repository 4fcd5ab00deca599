"""A pool of 10,000 members: what its document weighs, and that nothing about it is done member by member."""

from __future__ import annotations

import json
import time

from oslo_utils import uuidutils

from lbaas_scheduler.db import members
from lbaas_scheduler.domain.deployments import Deployment, MemberHealth, VipStats
from lbaas_scheduler.rpc.codec import to_document
from tests.database import counted
from tests.functional.loadbalancer.lab import Lab

COUNT = 10_000
MAX_BYTES = 2_000_000
"""RabbitMQ takes messages of 128 MiB by default; a document must stay far below it."""


def _fill(lab: Lab, pool_id: str) -> list[str]:
    ids = [uuidutils.generate_uuid() for _ in range(COUNT)]
    common = {"tenant_id": "tenant", "pool_id": pool_id, "protocol_port": 80, "status": "PENDING_CREATE", "admin_state_up": True}

    rows = [{**common, "id": id_, "address": f"10.1.{number // 256}.{number % 256}"} for number, id_ in enumerate(ids)]
    lab.database.write(lambda conn: members.insert_many(conn, rows))
    return ids


def test_a_pool_of_10000_members_is_built_settled_and_listed_as_a_whole(lab: Lab) -> None:
    pool = lab.pool()
    vip = lab.vip(pool)
    ids = _fill(lab, pool["id"])

    started = time.monotonic()
    with counted(lab.database) as statements:
        document = lab.document(vip["id"])
    message = json.dumps(to_document(Deployment(document, lab.version(vip["id"]))))
    assert len(document.pool.members) == COUNT
    assert len(statements) <= 6
    assert len(message) < MAX_BYTES

    with counted(lab.database) as statements:
        lab.confirm(vip["id"])
    assert len(statements) < 30

    health = {member_id: MemberHealth(up=number % 2 == 0) for number, member_id in enumerate(ids)}
    lab.report_stats({vip["id"]: VipStats(members=health)})
    with counted(lab.database) as statements:
        lab.report_stats({vip["id"]: VipStats(members=health)})
    assert len(statements) <= 5

    shown = lab.plugin.get_members(lab.me, filters={"pool_id": pool["id"]})
    assert sum(each["status"] == "ACTIVE" for each in shown) == COUNT // 2
    assert len(lab.plugin.get_pool(lab.me, pool["id"])["members"]) == COUNT
    lab.plugin.delete_vip(lab.me, vip["id"])
    lab.plugin.delete_pool(lab.me, pool["id"])
    # Seconds on a slow machine; done one by one it would be minutes.
    assert time.monotonic() - started < 60
