"""The allocator on the bus: the client's calls arrive, errors come back as themselves, and tenants see what is theirs."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

import pytest
from oslo_config import cfg
from oslo_context.context import RequestContext

from lbaas_scheduler import errors
from lbaas_scheduler.allocator.api import AllocatorAPI
from lbaas_scheduler.allocator.core.requests import Owner
from lbaas_scheduler.allocator.drivers.memory import MemoryDriver
from lbaas_scheduler.conf import allocator as options
from lbaas_scheduler.plugins.resource_endpoint import METHODS, AllocatorEndpoint
from lbaas_scheduler.plugins.resources import Resources
from lbaas_scheduler.rpc import topics, transport
from lbaas_scheduler.rpc.allocator_api import AllocatorClient
from tests.agent_side import bus_conf
from tests.allocator_side import new_allocator

ADMIN = RequestContext(user_id="root", project_id="operator", roles=["admin"], is_admin=True)
ANNE = RequestContext(user_id="anne", project_id="anne", roles=["member"], is_admin=False)
NOBODY = RequestContext(user_id="x", roles=["member"], is_admin=False)

V = {"kind": "vlan", "name": "v"}
OWN = {**V, "scope": "tenant:anne"}
BLUE, ALIVE = {"type": "network", "id": "blue"}, {"type": "network", "id": "alive"}


def probe(owner: Owner) -> bool | None:
    return {"dead": False, "alive": True}.get(owner.id)


@pytest.fixture
def resources() -> Resources:
    conf = cfg.ConfigOpts()
    options.register_opts(conf)
    conf([], default_config_files=[], default_config_dirs=[])
    conf.set_override("owner_grace_delay_seconds", 0, "allocator")
    return Resources(AllocatorAPI(new_allocator(MemoryDriver())), conf, probe)


@pytest.fixture
def client(resources: Resources) -> Iterator[AllocatorClient]:
    bus = transport.get_transport(bus_conf())
    server = transport.get_server(bus, topics.PLUGINS, "server-1", [AllocatorEndpoint(resources)])
    server.start()
    yield AllocatorClient(bus)
    server.stop()
    server.wait()
    bus.cleanup()


def _public(thing: object) -> set[str]:
    return {name for name, value in inspect.getmembers(thing) if name[0] != "_" and inspect.isroutine(value)}


def test_the_endpoint_has_what_the_client_calls_and_nothing_else(resources: Resources) -> None:
    assert _public(AllocatorEndpoint(resources)) == _public(AllocatorClient) == set(METHODS)
    for name in METHODS:
        sent, taken = (list(inspect.signature(getattr(of, name)).parameters) for of in (AllocatorClient, Resources))
        assert sent == taken, name


def test_everything_over_the_bus(client: AllocatorClient) -> None:
    pool = client.define(ADMIN, V, {"ranges": "100-199", "pick": "lowest"})
    (grant,) = client.allocate(ADMIN, [{"kind": "vlan", "pool": "v", "owner": BLUE}], request_id="r-1")
    (again,) = client.allocate(ADMIN, [{"kind": "vlan", "pool": "v", "owner": BLUE}], request_id="r-1")
    assert (grant["value"], again["id"], again["created"]) == (100, grant["id"], False)
    (held,) = client.hold(ADMIN, [{"kind": "vlan", "pool": "v", "owner": BLUE, "slot": "b"}])
    assert held["status"] == "held"
    assert client.commit(ADMIN, held["id"], held["generation"])["status"] == "active"
    assert client.pool(ADMIN, V) == pool
    assert client.pools(ADMIN) == client.pools(ADMIN, "vlan") == [pool]
    assert client.usage(ADMIN, V)["used"] == 2
    assert client.allocation(ADMIN, grant["id"])["value"] == 100
    assert {it["id"] for it in client.allocations(ADMIN, owner=BLUE)} == {grant["id"], held["id"]}
    assert client.release(ADMIN, grant["id"], 1) == {"released": 1}
    assert client.release(ADMIN, grant["id"], missing_ok=True) == {"released": 0}
    assert client.release_value(ADMIN, V, held["value"], BLUE) == {"released": 1}
    (used,) = client.allocate(ADMIN, [{"kind": "vlan", "pool": "v", "owner": ALIVE}])
    for refused in (
        lambda: client.release(ADMIN, used["id"]),
        lambda: client.release_value(ADMIN, V, used["value"], ALIVE),
        lambda: client.release_owner(ADMIN, ALIVE),
    ):
        with pytest.raises(errors.OwnerLives, match="network alive lives"):
            refused()
    assert client.release(ADMIN, used["id"], force=True) == {"released": 1}
    client.allocate(ADMIN, [{"kind": "vlan", "pool": "v", "owner": {"type": "network", "id": "dead"}}])
    assert client.reconcile(ADMIN)["dry_run"]
    leaked = [len(client.reconcile(ADMIN, dry_run=False)["leaked"]) for _ in range(2)]
    assert sum(leaked) == 1, "found missing once, and taken back"
    assert client.release_owner(ADMIN, BLUE) == {"released": 0}
    assert client.check(ADMIN) == []
    assert client.resize(ADMIN, V, {"ranges": "100-300"})["generation"] == 2
    assert "/lbaas_scheduler/1/val/" in client.keys(ADMIN)
    events = client.history(ADMIN, V, since="2020-01-01T00:00:00+01:00", limit=1000)
    assert (events[-1]["op"], events[-1]["actor"]) == ("define", "root")
    assert client.undefine(ADMIN, V) == {"removed": True}


def test_errors_come_back_as_themselves(client: AllocatorClient) -> None:
    with pytest.raises(errors.NotDefined) as absent:
        client.usage(ADMIN, V)
    assert absent.value.message == 'No resource found for description: "vlan" and id: "v"'
    client.define(ADMIN, V, {"ranges": "1-1"})
    client.allocate(ADMIN, [{"kind": "vlan", "pool": "v", "owner": BLUE}])
    with pytest.raises(errors.PoolExhausted, match="no vlans available"):
        client.allocate(ADMIN, [{"kind": "vlan", "pool": "v", "owner": {"type": "network", "id": "red"}}])
    for wrong in (
        lambda: client.define(ADMIN, {"kind": [], "name": "v"}, {}),
        lambda: client.define(ADMIN, {"kind": "vlan", "name": "w\x00"}, {}),
        lambda: client.hold(ADMIN, [], ttl_seconds="1"),  # type: ignore[arg-type]
        lambda: client.release(ADMIN, 7),  # type: ignore[arg-type]
        lambda: client.release(ADMIN, "x", generation="1"),  # type: ignore[arg-type]
        lambda: client.release_owner(ADMIN, {"type": "pool", "id": "x"}),
        lambda: client.allocations(ADMIN, owner=False),  # type: ignore[arg-type]
        lambda: client.history(ADMIN, limit=0),
        lambda: client.history(ADMIN, since="yesterday"),
        lambda: client.reconcile(ADMIN, grace_seconds=-1),
    ):
        with pytest.raises(errors.InvalidRequest):
            wrong()


def test_whoever_is_no_administrator_sees_and_takes_what_is_his(client: AllocatorClient) -> None:
    client.define(ADMIN, V, {"ranges": "1-9"})
    own = client.define(ADMIN, OWN, {"ranges": "20-29", "quotas": {"anne": 2}})
    assert client.pools(ANNE) == [own]
    assert client.pool(ANNE, V) == client.pool(ANNE, OWN) == own
    foreign = client.allocate(ADMIN, [{"kind": "vlan", "pool": "v", "owner": BLUE}])[0]["id"]
    for hidden in (
        lambda: client.pool(ANNE, {**V, "scope": "cluster"}),
        lambda: client.pool(ANNE, {**V, "scope": "tenant:bert"}),
        lambda: client.pool(NOBODY, V),
        lambda: client.usage(ANNE, {**V, "scope": "cluster"}),
        lambda: client.allocations(ANNE, {**V, "scope": "cluster"}),
        lambda: client.allocation(ANNE, foreign, V),
        lambda: client.release(ANNE, foreign, pool=V),
        lambda: client.release(ANNE, foreign, pool=V, missing_ok=True),
        lambda: client.commit(ANNE, foreign, pool=V),
        lambda: client.release_value(ANNE, {**V, "scope": "cluster"}, 1, BLUE),
        lambda: client.release_value(ANNE, V, 20, ALIVE),
        lambda: client.allocate(ANNE, [{"kind": "vlan", "pool": "v", "scope": "cluster", "owner": BLUE}]),
    ):
        with pytest.raises(errors.NotFound):
            hidden()
    asked = {"kind": "vlan", "pool": "v", "owner": BLUE}
    nested = {**asked, "children": [{**asked, "scope": "cluster", "slot": "child"}]}
    with pytest.raises(errors.NotDefined):
        client.allocate(ANNE, [nested])
    (taken,) = client.allocate(ANNE, [{**asked, "tenant_id": "bert"}])
    assert taken["value"] in range(20, 30)
    client.allocate(ANNE, [{**asked, "slot": "b"}])
    with pytest.raises(errors.QuotaExceeded):
        client.allocate(ANNE, [{**asked, "slot": "c", "tenant_id": "bert"}])
    assert client.release(ANNE, taken["id"], pool=V) == {"released": 1}
    for refused in (
        lambda: client.define(ANNE, {**V, "name": "w"}, {}),
        lambda: client.resize(ANNE, V, {}),
        lambda: client.undefine(ANNE, V, force=True),
        lambda: client.allocation(ANNE, foreign),
        lambda: client.allocations(ANNE, owner=BLUE),
        lambda: client.release_owner(ANNE, BLUE),
        lambda: client.history(ANNE, V),
        lambda: client.check(ANNE),
        lambda: client.keys(ANNE),
        lambda: client.reconcile(ANNE),
    ):
        with pytest.raises(errors.NotAuthorized):
            refused()


def test_an_actor_is_text_whatever_the_caller_calls_himself(client: AllocatorClient) -> None:
    for user in (None, "", " a\nb ", "\ud800x".encode("utf-8", "replace").decode(), "y" * 10_000):
        context = RequestContext(user_id=user, project_id="p", is_admin=True)
        client.define(context, V, {"ranges": "1-9"})
        client.undefine(context, V)
    assert {event["actor"] for event in client.history(ADMIN)} == {"", "ab", "?x", "y" * 255}
