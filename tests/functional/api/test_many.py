"""What is read of 500 objects of every noun takes as many statements as of one, whatever the route."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from oslo_utils import uuidutils

from lbaas_scheduler.api.routes import ROUTES
from lbaas_scheduler.db import fleet_models, models, rule_models
from lbaas_scheduler.db.allocator_models import allocator_pools
from tests.database import counted
from tests.functional.api.house import ADMIN, ANNE, House

MANY = 500
MOST_STATEMENTS = 10

SHORT = ("/", "/healthcheck/live", "/v2.0", "/v2.0/extensions", "/v2.0/resources/keys", "/v2.0/resources/check")
"""Lists of what the code has, in no database; and of what is wrong, which is nothing."""

NO_LISTS = {
    "/healthcheck": "answers for a while with what it found before",
    "/v2.0/placements/rebalance": "reads what would have to move only where something has to: fleet/test_rebalancing.py counts",
}


def furnished(house: House) -> dict[str, str]:
    """One of everything, and what fills the variables of a path, by what stands before them."""
    house.create("/v2.0/devices", "device", {"name": "spare", "device_type": "fake"}, ADMIN)
    for device in house.get("/v2.0/devices", ADMIN).json["devices"]:
        assert house.post(f"/v2.0/devices/{device['id']}/evacuate", None, ADMIN).status_code == 202
        house.put(f"/v2.0/devices/{device['id']}", {"device": {"admin_state": "enabled"}}, ADMIN)
    pool = house.pool()
    member, monitor, vip = house.member(pool), house.monitor(), house.vip(pool)
    house.associate(monitor, pool)
    house.put("/v2.0/quotas/anne", {"quota": {"vip": -1, "pool": -1}}, ADMIN)
    gold = house.create("/v2.0/service-types", "service_type", {"name": "gold"}, ADMIN)
    rule = house.plant.parts.rules.create({"name": "first", "enabled": False, "wishes": {"zone": "a"}})
    assert house.post(f"/v2.0/lb/vips/{vip['id']}/move", {"move": {}}, ADMIN).status_code == 202
    vlans = {"kind": "vlan", "name": "p", "config": {"ranges": "1-4000"}}
    house.create("/v2.0/resources", "resource", vlans, ADMIN)
    owner = {"type": "network", "id": "n"}
    taken = house.create("/v2.0/resources/vlan/p/allocations", "allocation", {"owner": owner, "value": 7}, ADMIN)
    return {
        "/v2.0/resources": "vlan",
        "/v2.0/resources/vlan": "p",
        "/v2.0/resources/vlan/p/allocations": taken["id"],
        "/v2.0/extensions": "lbaas",
        "/v2.0/lb/vips": vip["id"],
        "/v2.0/lb/pools": pool["id"],
        f"/v2.0/lb/pools/{pool['id']}/health_monitors": monitor["id"],
        "/v2.0/lb/members": member["id"],
        "/v2.0/lb/health_monitors": monitor["id"],
        "/v2.0/networks": house.network["id"],
        "/v2.0/subnets": house.subnet["id"],
        "/v2.0/ports": vip["port_id"],
        "/v2.0/service-types": gold["id"],
        "/v2.0/agents": house.get("/v2.0/agents", ADMIN).json["agents"][0]["id"],
        "/v2.0/quotas": "anne",
        "/v2.0/moves": vip["id"],
        "/v2.0/placement-rules": rule["id"],
        "/v2.0/devices": house.get(f"/v2.0/lb/vips/{vip['id']}/placement", ADMIN).json["placement"]["device_id"],
    }


def multiply(conn: sa.Connection, table: sa.Table, wanted: sa.ColumnElement[bool] | None = None, **columns: list[Any]) -> None:
    """Rows like the first one, one for each value of ``columns``."""
    query = sa.select(table) if wanted is None else sa.select(table).where(wanted)
    row = dict(conn.execute(query).mappings().first() or {})
    assert row, table.name
    row.pop("seq", None)
    conn.execute(
        sa.insert(table), [{**row, **dict(zip(columns, new, strict=True))} for new in zip(*columns.values(), strict=True)]
    )


def ids() -> list[str]:
    return [uuidutils.generate_uuid() for _ in range(MANY)]


def words(word: str) -> list[str]:
    return [f"{word}-{number:03}" for number in range(MANY)]


def fill(conn: sa.Connection, device_id: str) -> None:
    """``MANY`` more of every noun; the VIPs on the device."""
    pools, vips, monitors, members, devices, types = (ids() for _ in range(6))
    multiply(conn, models.networks, id=ids())
    multiply(conn, models.subnets, id=ids())
    multiply(conn, models.service_types, models.service_types.c.name == "gold", id=types, name=words("type"))
    multiply(conn, models.pools, id=pools, vip_id=vips)
    multiply(conn, models.vips, id=vips, pool_id=pools, port_id=vips)
    multiply(conn, models.members, id=members, pool_id=pools)
    multiply(conn, models.health_monitors, id=monitors)
    multiply(conn, models.pool_monitors, pool_id=pools, monitor_id=monitors)
    for table in (models.deployments, models.placements):
        multiply(conn, table, table.c.device_id == device_id, resource_id=vips)
    multiply(conn, fleet_models.moves, resource_id=vips, id=ids())
    multiply(conn, rule_models.placement_rules, id=ids(), name=words("rule"))
    multiply(conn, models.devices, models.devices.c.name == "spare", id=devices, name=words("device"))
    multiply(conn, models.device_load, device_id=devices)
    multiply(conn, models.device_agents, device_id=devices)
    multiply(conn, models.agents, id=ids(), host=words("agent"))
    multiply(conn, models.quotas, tenant_id=words("tenant"))
    multiply(conn, allocator_pools, allocator_pools.c.name == "p", id=ids(), name=words("pool"))


def take(house: House) -> None:
    """``MANY`` VLANs, all at once."""
    wanted = [{"kind": "vlan", "pool": "p", "owner": {"type": "network", "id": "n"}, "slot": slot} for slot in words("slot")]
    answer = house.post("/v2.0/resources/allocations", {"allocations": {"requests": wanted}}, ADMIN)
    assert answer.status_code == 201, answer.text


QUERIES = {
    "/v2.0/resources/allocations": "owner_type=network&owner_id=n",
    "/v2.0/resources/history": f"limit={MANY}",
    "/v2.0/resources/{kind}/{name}/history": f"limit={MANY}",
}
"""What a route has to be asked with."""


def filled(path: str, variables: dict[str, str]) -> str:
    """:raises KeyError: nothing is known that could stand for a variable of the path."""
    while "{" in path:
        before = path[: path.index("/{")]
        path = f"{before}/{variables[before]}{path[path.index('}') + 1 :]}"
    return path


def statements(house: House, paths: dict[str, str]) -> dict[tuple[str, str], int]:
    """By route and who asks: an administrator, and the tenant where a tenant may."""
    found = {}
    for route, path in paths.items():
        for name, who in (("administrator", ADMIN), ("tenant", ANNE)):
            with counted(house.database) as seen:
                answer = house.get(path, who)
            if name == "administrator":
                assert answer.status_code == 200, (path, answer.text)
            found[route, name] = len([statement for statement in seen if not statement.startswith(("BEGIN", "PRAGMA"))])
    return found


def test_every_route_reads_500_of_everything_with_as_many_statements_as_one(own_any_house: House) -> None:
    house, variables = own_any_house, furnished(own_any_house)
    paths = {route: filled(route, variables) for route, methods in ROUTES.items() if "GET" in methods and route not in NO_LISTS}
    paths = {route: f"{path}?{QUERIES[route]}" if route in QUERIES else path for route, path in paths.items()}
    few = statements(house, paths)
    house.database.write(lambda conn: fill(conn, variables["/v2.0/devices"]))
    take(house)
    many = statements(house, paths)
    assert many == few
    assert {asked: count for asked, count in many.items() if count > MOST_STATEMENTS} == {}
    for route, path in paths.items():
        for name, schema in (ROUTES[route]["GET"].gives or {}).get("properties", {}).items():
            if schema.get("type") == "array" and not name.endswith("_links") and route not in SHORT:
                assert len(house.get(path, ADMIN).json[name]) >= MANY, f"{route} was not filled: add its table to fill()"


def test_what_most_clients_look_for_is_looked_up_and_not_sought_through_everything(house: House) -> None:
    vip, other = house.vip(), house.vip()

    def ports(query: str) -> list[str]:
        return [port["device_id"] for port in house.get(f"/v2.0/ports?{query}").json["ports"]]

    with counted(house.database) as sent:
        assert ports(f"device_id={vip['id']}") == [vip["id"]]
        assert ports(f"id={other['port_id'].upper()}") == [other["id"]]
        assert ports(f"device_id={vip['id']}&id={other['port_id']}") == []
        assert ports("device_id=nothing") == []
    of_vips = [statement for statement in sent if "FROM vips" in statement]
    assert len(of_vips) == 4
    assert all("vips.id IN" in statement or "vips.port_id IN" in statement for statement in of_vips)
    with counted(house.database) as sent:
        assert house.get(f"/v2.0/moves?state=queued&device_id={house.device['id']}", ADMIN).json["moves"] == []
        assert house.get("/v2.0/moves?state=nonsense", ADMIN).status_code == 400
    assert ["moves.state IN" in it and "moves.source_id IN" in it for it in sent if "FROM moves" in it] == [True]
