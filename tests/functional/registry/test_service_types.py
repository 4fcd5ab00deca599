"""Service types: one default, one definition per service, and clear refusals."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import pytest
import sqlalchemy as sa
from oslo_context.context import RequestContext

from lbaas_scheduler.allocator.drivers.memory import MemoryDriver
from lbaas_scheduler.allocator.manager import ResourceAllocator
from lbaas_scheduler.db import models
from lbaas_scheduler.db.candidates import SqlCandidates
from lbaas_scheduler.db.session import Database
from lbaas_scheduler.devices.tenants import TenantDevices
from lbaas_scheduler.domain.clock import utcnow
from lbaas_scheduler.domain.service_types import ServiceDefinition
from lbaas_scheduler.errors import (
    Conflict,
    InvalidRequest,
    LBaaSError,
    NotAuthorized,
    ServiceProviderNotFound,
    ServiceTypeInUse,
    ServiceTypeNotFound,
    UnknownDeviceType,
)
from lbaas_scheduler.networks.registry import NetworkRegistry
from lbaas_scheduler.plugins.device_scheduler.endpoint import METHODS
from lbaas_scheduler.plugins.device_scheduler.placement_rules import PlacementRules
from lbaas_scheduler.plugins.device_scheduler.placer import Placer
from lbaas_scheduler.plugins.device_scheduler.plugin import DeviceSchedulerPlugin
from lbaas_scheduler.plugins.device_scheduler.service_types import ServiceTypes
from lbaas_scheduler.plugins.fleet.build import build_fleet
from tests.allocator_side import KINDS
from tests.database import open_database
from tests.functional.registry.fleet import AGENT_DOWN_SECONDS, Fleet

LB = "LoadBalancer"
ALGORITHMS = {LB: {"least_loaded", "wired"}}


def service_types(database: Database) -> ServiceTypes:
    return ServiceTypes(database, {LB: {"haproxy", "fake"}}, {LB: LB, "Firewall": "FirewallPlugin"}, ALGORITHMS)


@pytest.fixture
def types(sqlite_tables_url: str) -> Iterator[ServiceTypes]:
    yield from _ready(sqlite_tables_url)


@pytest.fixture
def any_types(database_url: str) -> Iterator[ServiceTypes]:
    yield from _ready(database_url)


def _ready(url: str) -> Iterator[ServiceTypes]:
    database = open_database(url)
    yield service_types(database)
    database.dispose()


def defaults(types: ServiceTypes) -> list[str]:
    return [it.name for it in types.list() if it.default]


def choose(types: ServiceTypes, name: str | None, service: str = LB) -> Any:
    return types._database.read(lambda conn: types.choose(conn, name, service))


def test_the_default_is_created_once_however_many_servers_start(any_types: ServiceTypes, database_url: str) -> None:
    databases = [open_database(database_url) for _ in range(4)]
    with ThreadPoolExecutor(4) as pool:
        made = list(pool.map(lambda database: service_types(database).ensure_default("default"), databases))
    assert len({it.id for it in made}) == 1
    assert [(it.name, it.default, it.enabled) for it in any_types.list()] == [("default", True, True)]
    for database in databases:
        database.dispose()


def test_a_default_that_was_chosen_later_survives_a_restart(types: ServiceTypes) -> None:
    types.ensure_default("default")
    gold = types.create({"name": "gold", "default": True})
    assert types.ensure_default("default").id == gold.id
    assert defaults(types) == ["gold"]


def test_a_type_that_has_the_name_of_the_default_becomes_it(types: ServiceTypes) -> None:
    made = types.create({"name": "default"})
    assert types.ensure_default("default").id == made.id
    assert defaults(types) == ["default"]


def test_the_default_moves_and_there_is_always_exactly_one(any_types: ServiceTypes) -> None:
    default = any_types.ensure_default("default")
    gold = any_types.create({"name": "gold"})
    assert any_types.update(gold.id, {"default": True}).default
    assert defaults(any_types) == ["gold"]
    assert any_types.update(gold.id, {"name": "Gold"}).default
    assert defaults(any_types) == ["Gold"]
    with pytest.raises(InvalidRequest, match="make another one the default instead"):
        any_types.update(gold.id, {"default": False})
    with pytest.raises(Conflict, match="is the default"):
        any_types.delete(gold.id)
    any_types.delete(default.id)
    with pytest.raises(ServiceTypeNotFound):
        any_types.delete(default.id)


def test_two_who_become_the_default_at_once_do_so_one_after_the_other(any_types: ServiceTypes, database_url: str) -> None:
    any_types.ensure_default("default")
    ids = [any_types.create({"name": f"type-{number}"}).id for number in range(4)]
    databases = [open_database(database_url) for _ in ids]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda pair: service_types(pair[0]).update(pair[1], {"default": True}), zip(databases, ids, strict=True)))
    assert len(defaults(any_types)) == 1
    for database in databases:
        database.dispose()


def test_changes_of_different_attributes_at_once_all_hold(any_types: ServiceTypes) -> None:
    changes: list[dict[str, Any]] = [
        {"description": "dear"},
        {"options": {"zone": "z"}},
        {"service_definitions": [{"service": LB, "driver": "fake"}]},
        {"enabled": False},
    ]
    for number in range(3):
        made = any_types.create({"name": f"type-{number}"})
        with ThreadPoolExecutor(len(changes)) as pool:
            list(pool.map(lambda change, id=made.id: any_types.update(id, change), changes))  # type: ignore[misc]
        read = any_types.get(made.id)
        assert (read.description, read.options, len(read.definitions), read.enabled) == ("dear", {"zone": "z"}, 1, False)


def test_what_becomes_the_default_is_not_deleted_at_that_moment(any_types: ServiceTypes) -> None:
    any_types.ensure_default("default")

    def delete(id: str) -> None:
        with suppress(Conflict):
            any_types.delete(id)

    def promote(id: str) -> None:
        with suppress(ServiceTypeNotFound):
            any_types.update(id, {"default": True})

    for number in range(5):
        made = any_types.create({"name": f"type-{number}"})
        with ThreadPoolExecutor(3) as pool:
            list(pool.map(lambda job, id=made.id: job(id), [promote, delete, promote]))  # type: ignore[misc]
        assert len(defaults(any_types)) == 1


def test_definitions_are_kept_as_given(any_types: ServiceTypes) -> None:
    made = any_types.create(
        {
            "name": "gold",
            "description": "dedicated",
            "service_definitions": [{"service": LB, "plugin": LB, "driver": "haproxy"}, {"service": "Firewall"}],
        }
    )
    read = any_types.get(made.id)
    assert set(read.definitions) == {ServiceDefinition(LB, LB, "haproxy"), ServiceDefinition("Firewall", "FirewallPlugin", None)}
    assert any_types.update(made.id, {"service_definitions": []}).definitions == ()


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({}, "service_type: name is missing"),
        ({"name": ""}, "name must be a string of 1 to 255 characters"),
        ({"name": "a", "colour": "red"}, "unknown attribute 'colour'; known are"),
        ({"name": "a", "enabled": "yes"}, "enabled must be true or false"),
        ({"name": "a", "service_definitions": {}}, "service_definitions must be a list"),
        ({"name": "a", "service_definitions": [{}]}, "service_definitions.0: service is missing"),
        ({"name": "a", "service_definitions": [{"service": "VPN"}]}, "unknown service 'VPN'; loaded: Firewall, LoadBalancer"),
        ({"name": "a", "service_definitions": [{"service": LB, "plugin": "x"}]}, "served by plugin 'LoadBalancer'"),
        ({"name": "a", "service_definitions": [{"service": LB}, {"service": LB}]}, "one definition per service; LoadBalancer"),
        ({"name": "a", "options": {"tenancy": "mine"}}, "options.tenancy must be one of private_first"),
        ({"name": "a", "options": {"required": ["fast"]}}, "'fast' is no trait"),
        ({"name": "a\x00"}, "name must be a string of 1 to 255 characters"),
        ({"name": "a "}, "without blanks at its beginning or end"),
        ({"name": "a", "options": {"options": {"x": float("inf")}}}, "options.options.x must not contain infinite numbers"),
        ({"name": "a", "options": {"evacuate_after_seconds": 10**9 + 1}}, "must be after how many seconds (0 to 1000000000)"),
    ],
)
def test_wrong_attributes_are_refused_with_what_would_be_right(types: ServiceTypes, attributes: Any, message: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        types.create(attributes)
    assert message in refused.value.message
    assert types.list() == []


def test_a_driver_must_be_a_loaded_device_type(types: ServiceTypes) -> None:
    with pytest.raises(UnknownDeviceType, match="'cisco' for service LoadBalancer; loaded: fake, haproxy"):
        types.create({"name": "a", "service_definitions": [{"service": LB, "driver": "cisco"}]})


def test_a_name_is_taken_once(any_types: ServiceTypes) -> None:
    any_types.create({"name": "gold"})
    silver = any_types.create({"name": "silver"})
    with pytest.raises(Conflict, match="named 'gold' already"):
        any_types.create({"name": "gold"})
    with pytest.raises(Conflict, match="named 'gold' already"):
        any_types.update(silver.id, {"name": "gold"})


def test_a_type_is_found_by_id_name_and_default(types: ServiceTypes) -> None:
    default = types.ensure_default("default")
    gold = types.create({"name": "Gold", "service_definitions": [{"service": LB, "driver": "haproxy"}]})
    assert choose(types, None).id == default.id
    assert choose(types, None).device_types == frozenset()
    for name in (gold.id, "Gold", "gold"):
        assert (choose(types, name).id, choose(types, name).device_types) == (gold.id, {"haproxy"})


def test_unknown_disabled_and_unfitting_types_are_refused_at_use(types: ServiceTypes) -> None:
    default = types.ensure_default("default")
    firewall = types.create({"name": "fw", "service_definitions": [{"service": "Firewall"}]})
    with pytest.raises(ServiceProviderNotFound, match="'gold' is unknown or disabled"):
        choose(types, "gold")
    with pytest.raises(ServiceProviderNotFound, match="has no definition for service LoadBalancer"):
        choose(types, firewall.id)
    types.update(default.id, {"enabled": False})
    with pytest.raises(ServiceProviderNotFound, match="'default' is unknown or disabled"):
        choose(types, None)


def test_options_become_wishes_of_the_request(types: ServiceTypes) -> None:
    types.create({"name": "gold", "options": {"tenancy": "dedicated", "zone": "north", "required": ["CUSTOM_SSD"], "form": None}})
    assert choose(types, "gold").wishes == {"tenancy": "dedicated", "zone": "north", "required": frozenset({"CUSTOM_SSD"})}


def test_a_change_of_one_option_leaves_the_others(any_types: ServiceTypes) -> None:
    made = any_types.create({"name": "gold", "options": {"zone": "north", "required": ["CUSTOM_SSD"]}})
    changed = any_types.update(made.id, {"options": {"zone": None, "form": "virtual"}})
    assert changed.options == {"required": ["CUSTOM_SSD"], "form": "virtual"}
    with pytest.raises(InvalidRequest, match="CUSTOM_SSD is required and forbidden at once"):
        any_types.update(made.id, {"options": {"forbidden": ["CUSTOM_SSD"]}})
    assert any_types.update(made.id, {"options": None}).options == {}


def test_a_type_in_use_is_not_deleted(types: ServiceTypes) -> None:
    types.ensure_default("default")
    gold = types.create({"name": "gold"})
    pool = {
        "id": "pool",
        "tenant_id": "t",
        "subnet_id": "s",
        "protocol": "TCP",
        "lb_method": "ROUND_ROBIN",
        "service_type_id": gold.id,
        "status": "ACTIVE",
        "created_at": utcnow(),
    }
    types._database.write(lambda conn: conn.execute(sa.insert(models.pools).values(pool)))
    with pytest.raises(ServiceTypeInUse, match=r"still in use by 1 pool\(s\)"):
        types.delete(gold.id)
    types._database.write(lambda conn: conn.execute(sa.delete(models.pools)))
    types.delete(gold.id)


def facade(fleet: Fleet) -> DeviceSchedulerPlugin:
    database = fleet.database
    types, networks = service_types(database), NetworkRegistry(database, ResourceAllocator(MemoryDriver(), KINDS))
    placer = Placer(database, SqlCandidates(database, AGENT_DOWN_SECONDS), {})
    rules = PlacementRules(database, {LB}, ALGORITHMS)
    nothing_is_reported: Any = None
    operations = build_fleet(
        fleet.conf, database, placer, fleet.caster, fleet.registry, fleet.assignments, {}, {}, nothing_is_reported
    )
    return DeviceSchedulerPlugin(
        database=database,
        registry=fleet.registry,
        service_types=types,
        agents=fleet.agents,
        placer=placer,
        caster=fleet.caster,
        networks=networks,
        fleet=operations,
        default_service_type="default",
        rules=rules,
        tenants=TenantDevices(fleet.conf),
    )


def test_only_administrators_pass_but_for_reading_service_types_and_own_devices(fleet: Fleet) -> None:
    plugin = facade(fleet)
    plugin.start()
    tenant, admin = RequestContext(project_id="t", is_admin=False), RequestContext(project_id="a", is_admin=True)
    (default,) = plugin.get_service_types(tenant)
    assert plugin.get_service_type(tenant, default["id"], fields=["name"]) == {"name": "default"}
    arguments: dict[str, tuple[Any, ...]] = {
        "create": ({},),
        "get": ("x",),
        "update": ("x", {}),
        "delete": ("x",),
        "explain": ("x",),
    }
    for method in METHODS:
        verb, _, noun = method.partition("_")
        given = () if noun.endswith("s") else arguments[verb]
        if method in ("get_service_type", "get_service_types") or noun in ("device", "devices"):
            continue
        with pytest.raises(NotAuthorized):
            getattr(plugin, method)(tenant, *given)
        if given:
            with pytest.raises(LBaaSError) as refused:
                getattr(plugin, method)(admin, "absent", *given[1:]) if verb != "create" else getattr(plugin, method)(admin, {})
            assert not isinstance(refused.value, NotAuthorized)


def test_the_facade_registers_changes_and_removes_devices(fleet: Fleet) -> None:
    plugin = facade(fleet)
    admin = RequestContext(project_id="a", is_admin=True)
    fleet.report("host-1")
    made = plugin.create_device(admin, {"device_type": "fake", "name": "one"})
    assert made["agent"]["host"] == "host-1"
    assert plugin.get_devices(admin, {"name": ["one"]}, ["id"]) == [{"id": made["id"]}]
    assert plugin.update_device(admin, made["id"], {"name": "two", "generation": 0})["generation"] == 1
    assert fleet.bus.resynced == []
    plugin.update_device(admin, made["id"], {"management": {"address": "192.0.2.9"}})
    assert fleet.bus.resynced == [("host-1", made["id"])]
    fleet.report("host-2")
    plugin.update_device(admin, made["id"], {"agent_host": "host-2"})
    assert fleet.bus.resynced[1:] == [("host-1", made["id"]), ("host-2", made["id"])]
    with pytest.raises(InvalidRequest, match="generation must be an integer"):
        plugin.update_device(admin, made["id"], {"generation": "one"})
    plugin.delete_device(admin, made["id"])
    assert fleet.bus.resynced[3:] == [("host-2", made["id"])]
    assert plugin.get_devices(admin) == []
