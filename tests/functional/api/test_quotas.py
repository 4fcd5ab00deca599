"""Quotas hold, exactly, however many create at once."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.functional.api.house import ADMIN, ANNE, BERT, READER, House

DEFAULTS = {"vip": 10, "pool": 10, "member": -1, "health_monitor": -1, "device": -1}
CLIENTS = 16


def pool_body(house: House, **attributes: Any) -> dict[str, Any]:
    return {"pool": {"subnet_id": house.subnet["id"], "protocol": "HTTP", "lb_method": "ROUND_ROBIN", **attributes}}


def test_a_tenant_without_quotas_of_its_own_has_the_defaults(house: House) -> None:
    assert house.get("/v2.0/quotas/anne").json == {"quota": DEFAULTS}
    assert house.get("/v2.0/quotas/anne", ADMIN).json == {"quota": DEFAULTS}
    assert house.get("/v2.0/quotas/anne/default").json == {"quota": DEFAULTS}
    assert house.get("/v2.0/quotas/tenant").json == {"tenant": {"tenant_id": "anne"}}


def test_an_administrator_sets_and_resets_quotas(house: House) -> None:
    set_ = house.put("/v2.0/quotas/anne", {"quota": {"vip": "2", "pool": -1}}, ADMIN)
    assert (set_.status_code, set_.json) == (200, {"quota": {**DEFAULTS, "vip": 2, "pool": -1}})
    assert house.get("/v2.0/quotas", ADMIN).json == {"quotas": [{**DEFAULTS, "tenant_id": "anne", "vip": 2, "pool": -1}]}
    assert house.get("/v2.0/quotas/anne", READER).json["quota"]["vip"] == 2
    assert house.get("/v2.0/quotas/anne/default").json == {"quota": DEFAULTS}

    assert house.delete("/v2.0/quotas/anne", ADMIN).status_code == 204
    assert house.get("/v2.0/quotas/anne").json == {"quota": DEFAULTS}
    assert house.delete("/v2.0/quotas/anne", ADMIN).status_code == 404


def test_quotas_of_others_are_forbidden(house: House) -> None:
    for method, path, body in (
        ("GET", "/v2.0/quotas/bert", None),
        ("GET", "/v2.0/quotas/bert/default", None),
        ("GET", "/v2.0/quotas", None),
        ("PUT", "/v2.0/quotas/anne", {"quota": {"vip": 100}}),
        ("DELETE", "/v2.0/quotas/anne", None),
    ):
        assert house.call(method, path, ANNE, body).status_code == 403, (method, path)


@pytest.mark.parametrize("quota", [{"vip": -2}, {"vip": "many"}, {"volumes": 3}, {"vip": None}, {"vip": 2**31}, [], 3])
def test_a_quota_that_makes_no_sense_is_refused(house: House, quota: Any) -> None:
    assert house.put("/v2.0/quotas/anne", {"quota": quota}, ADMIN).status_code == 400


def test_more_than_the_quota_is_refused_until_there_is_room_or_no_limit(house: House) -> None:
    pools = [house.pool(name=str(number)) for number in range(10)]
    refused = house.post("/v2.0/lb/pools", pool_body(house))
    assert refused.status_code == 409
    assert refused.json["NeutronError"]["type"] == "OverQuota"
    assert "'pool'" in refused.json["NeutronError"]["message"]
    house.pool(BERT)

    house.delete(f"/v2.0/lb/pools/{pools[0]['id']}")
    house.pool()
    assert house.post("/v2.0/lb/pools", pool_body(house)).status_code == 409

    house.put("/v2.0/quotas/anne", {"quota": {"pool": -1}}, ADMIN)
    house.pool()


def test_each_resource_has_its_own_quota(house: House) -> None:
    house.put("/v2.0/quotas/anne", {"quota": {"vip": 1, "pool": 2, "member": 1, "health_monitor": 1}}, ADMIN)
    first, second = house.pool(), house.pool()
    house.vip(first)
    house.member(first)
    house.monitor()

    bodies = {
        "vips": {"vip": house.vip_body(second)},
        "pools": pool_body(house),
        "members": {"member": {"pool_id": first["id"], "address": "10.1.0.9", "protocol_port": 80}},
        "health_monitors": {"health_monitor": {"type": "TCP", "delay": 2, "timeout": 1, "max_retries": 1}},
    }
    for collection, body in bodies.items():
        refused = house.post(f"/v2.0/lb/{collection}", body)
        assert (refused.status_code, refused.json["NeutronError"]["type"]) == (409, "OverQuota"), collection
        assert len(house.get(f"/v2.0/lb/{collection}").json[collection]) == body_count(collection), collection
    assert house.get(f"/v2.0/lb/pools/{second['id']}").json["pool"]["vip_id"] is None


def body_count(collection: str) -> int:
    return 2 if collection == "pools" else 1


def test_a_vip_that_is_refused_for_the_quota_leaves_nothing_behind(house: House) -> None:
    house.put("/v2.0/quotas/anne", {"quota": {"vip": 0}}, ADMIN)
    assert house.post("/v2.0/lb/vips", {"vip": house.vip_body(house.pool(), address="10.0.0.77")}).status_code == 409
    usage = house.get(f"/v2.0/devices/{house.device['id']}", ADMIN).json["device"]["usage"]
    assert usage["VIPS"]["used"] == 0
    house.put("/v2.0/quotas/anne", {"quota": {"vip": 1}}, ADMIN)
    house.vip(address="10.0.0.77")


def test_a_devices_quota_counts_a_tenants_own_devices(house: House) -> None:
    house.put("/v2.0/quotas/anne", {"quota": {"device": 1}}, ADMIN)
    private = {"device": {"device_type": "fake", "tenant_id": "anne", "shared": False}}
    assert house.post("/v2.0/devices", private, ADMIN).status_code == 201
    assert house.post("/v2.0/devices", private, ADMIN).status_code == 409
    assert house.post("/v2.0/devices", {"device": {"device_type": "fake"}}, ADMIN).status_code == 201


@pytest.mark.parametrize("resource", ["pool", "vip"])
def test_sixteen_clients_get_exactly_the_quota_at_a_new_tenants_first_use(any_house: House, resource: str) -> None:
    house = any_house
    house.put(f"/v2.0/quotas/{house.tenant}", {"quota": {"pool": -1} if resource == "vip" else {"pool": 7}}, ADMIN)
    if resource == "vip":
        house.put(f"/v2.0/quotas/{house.tenant}", {"quota": {"vip": 7}}, ADMIN)
    bodies = (
        [pool_body(house) for _ in range(CLIENTS)]
        if resource == "pool"
        else [{"vip": house.vip_body(house.pool())} for _ in range(CLIENTS)]
    )
    with ThreadPoolExecutor(CLIENTS) as clients:
        answers = list(clients.map(lambda body: house.post(f"/v2.0/lb/{resource}s", body), bodies))
    assert Counter(answer.status_code for answer in answers) == {201: 7, 409: CLIENTS - 7}
    assert len(house.get(f"/v2.0/lb/{resource}s").json[f"{resource}s"]) == 7


def test_sixteen_clients_within_the_quota_all_succeed(any_house: House) -> None:
    any_house.put(f"/v2.0/quotas/{any_house.tenant}", {"quota": {"pool": CLIENTS}}, ADMIN)
    with ThreadPoolExecutor(CLIENTS) as clients:
        answers = list(clients.map(lambda _: any_house.post("/v2.0/lb/pools", pool_body(any_house)), range(CLIENTS)))
    assert Counter(answer.status_code for answer in answers) == {201: CLIENTS}
