from __future__ import annotations

import threading

import oslo_messaging
import pytest

from lbaas_scheduler.agent import resync as module
from lbaas_scheduler.agent.changes import Change
from lbaas_scheduler.agent.contact import Contact
from lbaas_scheduler.agent.resync import Resync
from lbaas_scheduler.agent.stats import Stats
from lbaas_scheduler.domain.deployments import Version
from lbaas_scheduler.errors import DriverError, KeptForRestore, Unavailable
from tests.agent_side import HOST, DirectServerAPI, Servers, deployment, device, sealed
from tests.rig.waiting import wait_for


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    monkeypatch.setattr(module, "FIRST_WAIT_SECONDS", 0.02)


class Agent:
    """Resync over the bench's workers, and servers behind JSON."""

    def __init__(self, bench):
        self.servers = Servers()
        self.workers, self.stub, self.local, self.last = bench.workers, bench.stub, bench.local, bench.last
        self.api = DirectServerAPI(self.servers)
        self.contact = Contact(self._lost)
        drivers = {"stub": bench.stub, "local": bench.local}
        self.resync = Resync(HOST, self.api, self.contact, bench.workers, drivers, lambda: 7, lambda: 0)
        self._bench = bench

    def _lost(self):
        self.resync.want_all()

    def start(self):
        """As the service does it: a device that casts wait for is compared."""
        self._bench.workers._wanted = self.resync.want
        self.resync.start()
        return self


@pytest.fixture
def agent(bench):
    made = Agent(bench)
    yield made
    made.resync.stop()


def deployed(agent, device_id="d1"):
    return {vip_id: tuple(version) for vip_id, version in agent.stub.content[device_id].items()}


def test_a_start_brings_the_device_to_what_is_desired_page_by_page(agent):
    agent.servers.assign(device())
    agent.servers.want("d1", *(deployment(f"v{n:03}", 2, n + 1) for n in range(40)))
    agent.stub.content["d1"] = {"v000": Version(2, 1), "v001": Version(1, 9), "orphan": Version(1, 1)}
    agent.start()
    wait_for(lambda: deployed(agent) == {f"v{n:03}": (2, n + 1) for n in range(40)})
    assert agent.servers.calls.count("list_desired") == 6
    assert not any("v000" in ids for ids in agent.stub.called("apply"))
    assert agent.stub.called("remove") == [("orphan",)]
    assert agent.last("orphan") is None
    assert agent.last("v001").version == Version(2, 2)


def test_removals_that_were_missed_are_made_up_for_and_reported(agent):
    agent.servers.assign(device())
    agent.servers.want_removed("d1", "v1", Version(1, 4))
    agent.servers.want_removed("d1", "never-there", Version(1, 2))
    agent.stub.content["d1"] = {"v1": Version(1, 3)}
    agent.start()
    wait_for(lambda: agent.last("v1") and agent.last("never-there"))
    assert agent.last("v1").removed
    assert agent.last("v1").version == Version(1, 4)
    assert agent.last("never-there").removed
    assert deployed(agent) == {}


def test_a_resync_of_an_unchanged_device_changes_nothing(agent):
    agent.servers.assign(device())
    agent.servers.want("d1", deployment("v1"))
    agent.start()
    wait_for(lambda: agent.last("v1"))
    agent.resync.want("d1")
    wait_for(lambda: len(agent.stub.called("list_deployed")) == 2)
    agent.resync.want_all()
    wait_for(lambda: len(agent.stub.called("list_deployed")) == 3)
    assert len(agent.stub.called("apply")) == 1


def test_a_vip_that_is_cast_while_the_list_is_read_is_no_orphan(agent):
    agent.servers.assign(device())
    agent.start()
    wait_for(agent.workers.ready)
    once = threading.Event()

    def cast_now(method, _arguments):
        # After the list was read, before it is used; the server's second look is late as well.
        if method == "list_desired" and not once.is_set():
            once.set()
            agent.workers.offer(sealed(device()), [Change.apply(deployment("new"))])
            wait_for(lambda: agent.last("new"))

    agent.stub.content["d1"]["new"] = Version(0, 1)
    agent.servers.refuse = cast_now
    agent.resync.want("d1")
    wait_for(lambda: once.is_set() and agent.servers.calls.count("get_deployments") >= 1)
    agent.servers.want("d1", deployment("new"))
    agent.resync.want("d1")
    wait_for(lambda: agent.servers.calls.count("list_desired") >= 3)
    assert deployed(agent) == {"new": (1, 1)}
    assert not agent.stub.called("remove")


def test_a_vip_that_the_second_look_finds_is_no_orphan(agent):
    agent.servers.assign(device())
    agent.stub.content["d1"] = {"v1": Version(1, 1)}

    def appears(method, _arguments):
        if method == "get_deployments":
            agent.servers.want("d1", deployment("v1"))

    agent.servers.refuse = appears
    agent.start()
    wait_for(lambda: agent.workers.ready() and "get_deployments" in agent.servers.calls)
    agent.resync.want("d1")
    wait_for(lambda: agent.servers.calls.count("list_desired") == 2)
    assert deployed(agent) == {"v1": (1, 1)}


@pytest.mark.parametrize("synced", [False, True])
def test_a_stale_cast_from_a_queue_that_outlived_the_agent_is_dropped(agent, synced):
    agent.servers.assign(device())
    agent.servers.want("d1", deployment("moved-on", 1, 5))
    agent.start()
    if synced:
        wait_for(agent.workers.ready)
    stale = [Change.apply(deployment("moved-on", 1, 4)), Change.apply(deployment("elsewhere", 1, 1))]
    lists = agent.servers.calls.count("list_desired")
    agent.workers.offer(sealed(device()), stale, trusted=False)
    wait_for(lambda: agent.last("moved-on"))
    wait_for(lambda: agent.servers.calls.count("list_desired") > lists)
    agent.servers.want("d1", deployment("marker"))
    agent.resync.want("d1")
    wait_for(lambda: agent.last("marker"))
    assert set(agent.stub.called("apply")) == {("moved-on",), ("marker",)}
    assert deployed(agent) == {"moved-on": (1, 5), "marker": (1, 1)}


def test_a_cast_that_is_not_trusted_is_carried_out_after_a_look_at_what_is_desired(agent):
    agent.servers.assign(device())
    agent.start()
    wait_for(agent.workers.ready)
    agent.servers.want("d1", deployment("v1"))
    agent.workers.offer(sealed(device()), [Change.apply(deployment("v1"))], trusted=False)
    assert wait_for(lambda: agent.last("v1")).ok
    assert agent.stub.called("apply") == [("v1",)]


def test_one_broken_vip_stops_none_of_the_others(agent):
    agent.servers.assign(device())
    agent.servers.want("d1", *(deployment(f"v{n:02}") for n in range(30)))

    def refuse(method, arguments):
        if method == "get_deployments" and "v17" in arguments["vip_ids"]:
            raise KeyError("poisoned")

    agent.servers.refuse = refuse
    agent.start()
    wait_for(lambda: len(deployed(agent)) == 29)
    agent.servers.refuse = lambda *_: None
    wait_for(lambda: len(deployed(agent)) == 30)


def test_an_answer_that_is_too_large_for_the_broker_is_asked_for_in_parts(agent):
    agent.servers.assign(device())
    agent.servers.want("d1", *(deployment(f"v{n:02}") for n in range(20)))

    def refuse(method, arguments):
        if method == "get_deployments" and len(arguments["vip_ids"]) > 1:
            raise oslo_messaging.MessagingTimeout

    agent.servers.refuse = refuse
    agent.start()
    wait_for(lambda: len(deployed(agent)) == 20)


def test_one_broken_device_stops_none_of_the_others(agent):
    for name in ("bad", "good"):
        agent.servers.assign(device(name))
        agent.servers.want(name, deployment(f"v-{name}"))
    broken = [True]

    def fail(_call, device_id):
        if device_id == "bad" and broken[0]:
            raise DriverError("The device is off.")

    agent.stub.before = fail
    agent.start()
    wait_for(lambda: agent.last("v-good"))
    agent.workers.offer(sealed(device("bad")), [Change.apply(deployment("v-bad"))])
    assert wait_for(lambda: agent.last("v-bad")).error == "The device is off."
    broken[0] = False
    wait_for(lambda: deployed(agent, "bad") == {"v-bad": (1, 1)})


@pytest.mark.parametrize("error", [oslo_messaging.MessagingTimeout(), Unavailable(dependency="database", reason="down")])
def test_servers_that_are_away_are_asked_until_they_answer_and_casts_are_carried_out_meanwhile(agent, error):
    agent.servers.assign(device())
    agent.start()
    wait_for(agent.workers.ready)

    def away(*_):
        raise error

    agent.servers.refuse = away
    agent.resync.want_all()
    wait_for(lambda: agent.servers.calls.count("get_devices") >= 4)
    agent.workers.offer(sealed(device()), [Change.apply(deployment("v1"))])
    assert wait_for(lambda: agent.last("v1")).ok
    agent.servers.want("d1", deployment("v1"), deployment("v2"))
    agent.servers.refuse = lambda *_: None
    assert wait_for(lambda: agent.last("v2")).ok


def test_a_local_device_that_is_no_longer_ours_is_purged_from_this_host(agent):
    agent.servers.assign(device("mine", "local"))
    agent.local.content |= {"mine": {}, "stray": {"v": Version(1, 1)}}
    agent.start()
    wait_for(lambda: "stray" not in agent.local.content)
    agent.servers.unassign("mine")
    agent.resync.want_all()
    wait_for(lambda: "mine" not in agent.local.content)
    wait_for(lambda: not agent.workers.held())


def test_a_device_that_a_newer_server_describes_is_left_as_it_is_and_stops_no_other(agent, caplog):
    agent.servers.assign(device("ours", "local"))
    agent.servers.assign(device("good"))
    agent.servers.want("good", deployment("v1"))
    agent.servers.owned["ours"][1]["form"] = "container"
    agent.local.content["ours"] = {"v2": Version(1, 1)}
    agent.local.content["stray"] = {"v3": Version(1, 1)}
    agent.start()
    wait_for(lambda: "stray" not in agent.local.content and deployed(agent, "good"))
    assert agent.local.content["ours"] == {"v2": Version(1, 1)}
    assert "Device ours is left as it is: Device.form must be one of" in caplog.text


def test_a_remote_device_that_is_no_longer_ours_is_forgotten_and_left_as_it_is(agent):
    agent.servers.assign(device())
    agent.servers.want("d1", deployment("v1"))
    agent.start()
    wait_for(lambda: agent.last("v1"))
    agent.servers.unassign("d1")
    agent.resync.want_all()
    wait_for(lambda: not agent.workers.held())
    assert agent.stub.called("forget") == [()]
    assert deployed(agent) == {"v1": (1, 1)}


def test_what_a_restored_database_does_not_know_stays_until_it_is_decided(agent):
    """A VIP on a device that is ours, and a whole device."""
    agent.servers.assign(device("ours", "local"))
    agent.local.content |= {"ours": {"new": Version(1, 1)}, "unknown": {"v": Version(1, 1)}}

    def restored(method, arguments):
        if method == "get_deployments" and (arguments["device_id"] == "unknown" or "new" in arguments["vip_ids"]):
            raise KeptForRestore(what="it", device_id=arguments["device_id"])

    agent.servers.refuse = restored
    agent.start()
    wait_for(agent.workers.ready)
    wait_for(lambda: agent.servers.calls.count("get_deployments") >= 2)
    assert not agent.local.called("purge")
    assert not agent.local.called("remove")

    agent.servers.refuse = lambda *_: None
    agent.resync.want_all()
    wait_for(lambda: "unknown" not in agent.local.content and not agent.local.content["ours"])


def test_a_device_that_comes_back_between_two_looks_is_kept(agent):
    agent.local.content["mine"] = {}

    def appears(method, _arguments):
        if method == "get_devices" and agent.servers.calls.count("get_devices") == 2:
            agent.servers.assign(device("mine", "local"))

    agent.servers.refuse = appears
    agent.start()
    wait_for(agent.workers.ready)
    assert not agent.local.called("purge")


def test_a_cast_for_a_device_that_is_not_ours_changes_nothing(agent):
    agent.start()
    agent.workers.offer(sealed(device("theirs")), [Change.apply(deployment("v1"))])
    wait_for(lambda: agent.stub.called("forget"))
    wait_for(lambda: not agent.workers.held())
    assert not agent.stub.called("apply")


def test_a_hanging_device_delays_no_other_resync(agent, release):
    for name in ("slow", *(f"d{n}" for n in range(20))):
        agent.servers.assign(device(name))
        agent.servers.want(name, deployment(f"v-{name}"))
    agent.stub.before = lambda _call, device_id: device_id == "slow" and release.wait(30)
    agent.start()
    wait_for(lambda: all(agent.last(f"v-d{n}") for n in range(20)), 10)
    release.set()
    wait_for(lambda: agent.last("v-slow"))


def stats_of(agent, interval=0.2):
    return Stats(HOST, agent.api, agent.contact, agent.workers, agent.resync, lambda: interval)


def test_statistics_go_up_with_64_bit_counters(agent):
    agent.servers.assign(device())
    agent.servers.want("d1", deployment("v1"))
    agent.start()
    wait_for(lambda: agent.last("v1"))
    stats = stats_of(agent)
    wait_for(lambda: stats.collect() or agent.servers.stats.get("d1"))
    assert agent.servers.stats["d1"]["v1"].bytes_in == 5_000_000_000


def test_a_device_without_statistics_is_compared_once_and_logged_once(agent, caplog):
    caplog.set_level("INFO")
    for name in ("died", "fine"):
        agent.servers.assign(device(name))
        agent.servers.want(name, deployment(f"v-{name}"))
    agent.start()
    wait_for(lambda: agent.last("v-died") and agent.last("v-fine"))
    wait_for(lambda: len(agent.workers.ready()) == 2)
    agent.stub.content["died"].clear()

    def fail(call, device_id):
        if call == "read_stats" and device_id == "died":
            raise DriverError("The process is gone.")

    agent.stub.before = fail
    stats = stats_of(agent)
    for _ in range(5):
        stats.collect()
        wait_for(lambda: len(agent.workers.ready()) == 2)
    wait_for(lambda: deployed(agent, "died") == {"v-died": (1, 1)})
    assert len(agent.stub.called("list_deployed", "died")) == 2
    assert len(agent.stub.called("list_deployed", "fine")) == 1
    agent.stub.before = lambda *_: None
    wait_for(lambda: stats.collect() or "can be read again" in caplog.text)
    assert caplog.text.count("Statistics of device died cannot be read") == 1


def test_statistics_are_not_read_while_a_device_is_busy(agent, release):
    agent.servers.assign(device())
    agent.start()
    wait_for(agent.workers.ready)
    agent.stub.before = lambda call, _device_id: call == "apply" and release.wait(30)
    agent.workers.offer(sealed(device()), [Change.apply(deployment("v1"))])
    wait_for(lambda: agent.stub.called("apply"))
    stats_of(agent).collect()
    assert not agent.stub.called("read_stats")


def test_stop_ends_the_planning(agent):
    agent.start()
    agent.resync.stop()
    wait_for(lambda: not any(thread.is_alive() for thread in agent.resync._threads), 5)


def test_what_a_device_does_not_serve_as_it_confirmed_is_applied_again_and_counted(agent, caplog):
    agent.servers.assign(device())
    agent.servers.want("d1", deployment("fine"), deployment("drifted"), deployment("new"))
    agent.stub.content["d1"] = {"fine": Version(1, 1), "drifted": Version(0, 0)}
    agent.start()
    wait_for(lambda: deployed(agent) == {"fine": (1, 1), "drifted": (1, 1), "new": (1, 1)})
    assert agent.resync.repaired == 1
    assert "does not serve 1 VIPs as it confirmed, the first: drifted" in caplog.text
