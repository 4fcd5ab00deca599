"""The allocator as documents, and how it is put together."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from oslo_config import cfg

from lbaas_scheduler import extensions
from lbaas_scheduler.allocator import api
from lbaas_scheduler.allocator.core.drivers import Settings
from lbaas_scheduler.allocator.drivers.etcd import EtcdDriver
from lbaas_scheduler.allocator.drivers.memory import MemoryDriver
from lbaas_scheduler.allocator.drivers.sql import SqlDriver
from lbaas_scheduler.conf import allocator as options
from lbaas_scheduler.errors import ConfigurationError, Conflict, InvalidRequest, NotFound
from tests.allocator_side import EXAMPLE, KINDS, new_allocator

V = {"kind": "vlan", "name": "v"}
OWNER = {"type": "network", "id": "n1"}


@pytest.fixture
def facade():
    return api.AllocatorAPI(new_allocator(MemoryDriver()))


@pytest.fixture
def conf():
    conf = cfg.ConfigOpts()
    options.register_opts(conf)
    conf([], default_config_files=[], default_config_dirs=[])
    return conf


def test_everything_is_a_document(facade):
    pool = facade.define(V, {"ranges": "5-9", "pick": "lowest"}, actor="op")
    (grant,) = facade.allocate([{"kind": "vlan", "pool": "v", "owner": OWNER}], request_id="r-1")
    (held,) = facade.hold([{"kind": "vlan", "pool": "v", "owner": OWNER, "slot": "b", "value": 7}], 60)
    answers = [
        pool,
        grant,
        held,
        facade.commit(held["id"]),
        facade.pool(V),
        facade.pools(),
        facade.allocation(grant["id"]),
        facade.usage(V),
        facade.allocations(V),
        facade.allocations(owner=OWNER),
        facade.history(V),
        facade.check(),
        facade.reconcile(),
        facade.keys(),
        facade.resize(V, {"ranges": "5-7", "pick": "lowest"}),
        facade.release(grant["id"]),
        facade.release_value(V, 7, OWNER),
        facade.release_owner(OWNER),
        facade.undefine(V),
    ]
    assert json.loads(json.dumps(answers)) == answers
    assert (grant["value"], held["value"], grant["owner"]) == (5, 7, OWNER)
    assert facade.history(V)[-1]["op"] == "define"


def test_a_nested_request_comes_as_a_document(facade):
    facade.define(V, {"ranges": "5-9"})
    facade.define({"kind": "subnet", "name": "s"}, {"cidr": "10.0.0.0/24"})
    (grant,) = facade.allocate(
        [{"kind": "address", "owner": OWNER, "within": {"kind": "subnet", "pool": "s", "owner": OWNER},
          "children": [{"kind": "vlan", "pool": "v", "owner": OWNER}]}]
    )  # fmt: skip
    assert grant["within"]["value"] == "10.0.0.0/24"
    assert grant["children"][0]["kind"] == "vlan"


@pytest.mark.parametrize(
    ("act", "text"),
    [
        (lambda it: it.pool({"kind": "vlan"}), "named by kind, name and scope"),
        (lambda it: it.pool("v"), "named by kind, name and scope"),
        (lambda it: it.release_owner({"id": "n1"}), "named by type and id"),
        (lambda it: it.allocate({"kind": "vlan"}), "Give a list"),
        (lambda it: it.allocate([{"kind": "vlan"}]), "needs kind and owner"),
        (lambda it: it.allocate([{"kind": "vlan", "owner": OWNER, "colour": 1}]), "'colour' is unknown"),
        (lambda it: it.allocate([{"kind": "vlan", "owner": OWNER, "children": {}} | {"children": "x"}]), "children is"),
        (lambda it: it.allocate([{"kind": "vlan", "owner": OWNER}] * 1_001), "at most 1000"),
    ],
)
def test_a_wrong_document_is_refused(facade, act, text):
    with pytest.raises(InvalidRequest, match=text):
        act(facade)


def test_endless_nesting_is_refused(facade):
    document = {"kind": "vlan", "pool": "v", "owner": OWNER}
    for _ in range(40):
        document = {"kind": "vlan", "pool": "v", "owner": OWNER, "children": [document]}
    with pytest.raises(InvalidRequest, match="nested deeper"):
        facade.allocate([document])


def test_cases_1_2_3_one_allocator_of_a_process():
    place = api.Instance()
    with pytest.raises(NotFound, match="No allocator has been made"):
        place.get()
    first = place.put(new_allocator(MemoryDriver()))
    assert place.get() is first
    with pytest.raises(Conflict, match="remove it first"):
        place.put(new_allocator(MemoryDriver()))
    place.remove()
    place.put(new_allocator(MemoryDriver()))


@pytest.mark.parametrize(("name", "cls"), [("memory", MemoryDriver), ("sql", SqlDriver), ("etcd", EtcdDriver)])
def test_the_configuration_names_the_store(conf, name, cls):
    conf.set_override("driver", name, "allocator")
    assert extensions.load_state_driver(conf) is cls


def test_it_is_built_from_the_configuration(conf):
    conf.set_override("driver", "memory", "allocator")
    allocator = api.build(conf, extensions.load_state_driver(conf), extensions.load_resources(conf), None)
    assert sorted(allocator.kinds) == ["address", "subnet", "vlan", "vxlan"]
    assert isinstance(allocator.driver, MemoryDriver)


def test_case_34_an_unknown_store_is_refused(conf):
    conf.set_override("driver", "xyz", "allocator")
    with pytest.raises(ConfigurationError, match=r"'xyz' is not in lbaas_scheduler.state_drivers; installed: etcd, memory, sql"):
        extensions.load_state_driver(conf)


def test_etcd_is_opened_as_configured(conf):
    conf.set_override("etcd_endpoints", ["https://a:2379", "ftp://b"], "allocator")
    with pytest.raises(ConfigurationError, match="'ftp://b' is no URL"):
        EtcdDriver.open(Settings(None, dict(conf.allocator.items())))
    conf.set_override("etcd_endpoints", ["https://a:2379"], "allocator")
    assert EtcdDriver.open(Settings(None, dict(conf.allocator.items()))).max_operations == 128


def test_sql_needs_a_database():
    with pytest.raises(ConfigurationError, match=r"set \[database\] connection"):
        SqlDriver.open(Settings(None, {}))


def test_a_fifth_kind_comes_by_its_class(conf):
    conf.set_override("resources", ["vlan", "acme_slots.kind:Slot"], "allocator")
    assert sorted(extensions.load_resources(conf)) == ["slot", "vlan"]
    conf.set_override("resources", ["vlan", "vlan"], "allocator")
    with pytest.raises(ConfigurationError, match="second resource of kind 'vlan'"):
        extensions.load_resources(conf)
    assert type(KINDS["slot"]).__module__ == "acme_slots.kind"


def test_the_examples_package_declares_its_kind():
    assert "slot = acme_slots.kind:Slot" in (EXAMPLE / "setup.cfg").read_text()


def test_the_documented_examples_work():
    code = (
        "import doctest, lbaas_scheduler.allocator.manager as m",
        "from lbaas_scheduler.allocator.drivers.memory import MemoryDriver",
        "from lbaas_scheduler.allocator.kinds.vlan import Vlan",
        "found = doctest.testmod(m, extraglobs={'MemoryDriver': MemoryDriver, 'Vlan': Vlan})",
        "assert found.attempted and not found.failed",
    )
    subprocess.run([sys.executable, "-W", "ignore", "-c", "\n".join(code)], check=True)
