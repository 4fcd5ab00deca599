"""One agent process over RabbitMQ."""

from __future__ import annotations

import random
import signal
from concurrent.futures import ThreadPoolExecutor

from lbaas_scheduler.devices.secrets import Vault, generate_key
from lbaas_scheduler.domain.deployments import Version
from lbaas_scheduler.rpc.codec import encode_device
from tests.agent_side import HOST, deployment
from tests.functional.agent.conftest import KEY
from tests.rig.waiting import wait_for


def test_create_update_and_delete_reach_the_device_and_come_back(site):
    one = site.give("d1")
    site.start_agent()
    site.create(one, deployment("v1"))
    assert wait_for(lambda: site.servers.last("v1")).ok
    site.create(one, deployment("v1", revision=2))
    wait_for(lambda: site.servers.last("v1").version == Version(1, 2))
    assert site.deployed("d1") == {"v1": (1, 2)}
    wait_for(lambda: "v1" in site.servers.stats.get("d1", {}))
    site.delete(one, "v1", Version(1, 3))
    assert wait_for(lambda: site.servers.last("v1").removed)
    assert site.deployed("d1") == {}


def test_sigterm_during_an_apply_finishes_it_and_delivers_its_result(site):
    one = site.give("d1", hang=["apply"], hang_seconds=2)
    agent = site.start_agent()
    wait_for(lambda: site.calls("d1"))
    site.create(one, deployment("v1"))
    wait_for(lambda: ("apply", ["v1"]) in site.calls("d1"))
    agent.signal(signal.SIGTERM)
    assert agent.wait(15) == 0, agent.tail()
    assert site.servers.last("v1").ok
    assert site.deployed("d1") == {"v1": (1, 1)}


def test_sigterm_with_a_device_that_hangs_ends_in_time(site):
    one = site.give("d1", hang=["apply"], hang_seconds=600)
    agent = site.start_agent()
    wait_for(lambda: site.calls("d1"))
    site.create(one, deployment("v1"))
    wait_for(lambda: ("apply", ["v1"]) in site.calls("d1"))
    agent.signal(signal.SIGTERM)
    assert agent.wait(12) == 0, agent.tail()


def test_an_agent_killed_before_it_applied_makes_up_for_it_when_it_is_back(site):
    slow = site.give("d1", hang=["apply"], hang_seconds=600)
    agent = site.start_agent()
    wait_for(lambda: site.calls("d1"))
    site.create(slow, deployment("taken"))
    wait_for(lambda: ("apply", ["taken"]) in site.calls("d1"))
    agent.kill()
    cured = site.give("d1")
    site.create(cured, deployment("cast-while-dead"))
    stale = deployment("moved-away-while-dead")
    site.api.create_vip(HOST, encode_device(cured, ""), stale)
    site.put("d1", {"orphan": Version(1, 1), "deleted-while-dead": Version(1, 1)})
    site.servers.want_removed("d1", "deleted-while-dead", Version(1, 2))
    agent.start()
    wait_for(lambda: site.deployed("d1") == {"taken": (1, 1), "cast-while-dead": (1, 1)})
    assert wait_for(lambda: site.servers.last("deleted-while-dead")).removed
    assert wait_for(lambda: site.servers.last("taken")).ok
    assert not any("moved-away-while-dead" in ids for _, ids in site.calls("d1"))


def test_fifty_parallel_creates_and_deletes_of_one_vip_end_in_the_last_state(site):
    one = site.give("d1", latency_seconds=0.05)
    site.start_agent()
    wait_for(lambda: site.calls("d1"))
    site.servers.want("d1", deployment("v1", revision=51))

    def cast(revision):
        if revision % 2:
            site.api.create_vip(HOST, encode_device(one, ""), deployment("v1", revision=revision))
        else:
            site.api.delete_vip(HOST, encode_device(one, ""), "v1", Version(1, revision))

    revisions = list(range(2, 52))
    random.Random(7).shuffle(revisions)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(cast, revisions))
    wait_for(lambda: site.servers.last("v1") and site.servers.last("v1").version == Version(1, 51))
    assert site.deployed("d1") == {"v1": (1, 51)}
    assert all(result.ok for result in site.servers.results_of("v1"))


def test_a_hanging_device_delays_no_other(site):
    slow, quick = site.give("slow", hang=["apply"], hang_seconds=600), site.give("quick")
    site.start_agent(timeout=2)
    wait_for(lambda: site.calls("slow") and site.calls("quick"))
    site.create(slow, deployment("v1"))
    wait_for(lambda: ("apply", ["v1"]) in site.calls("slow"))
    site.create(quick, deployment("v2"))
    assert wait_for(lambda: site.servers.last("v2"), 5).ok
    assert wait_for(lambda: site.servers.last("v1"), 10).error == "The device did not answer within 2 seconds."


def test_a_stale_epoch_changes_nothing(site):
    one = site.give("d1")
    site.start_agent()
    site.create(one, deployment("v1", epoch=3))
    wait_for(lambda: site.servers.last("v1"))
    site.api.update_vip(HOST, encode_device(one, ""), deployment("v1", epoch=2, revision=9))
    site.api.delete_vip(HOST, encode_device(one, ""), "v1", Version(2, 10))
    site.create(one, deployment("after"))
    wait_for(lambda: site.servers.last("after"))
    assert site.deployed("d1")["v1"] == (3, 1)


def test_sighup_reads_mutable_options_again_and_a_wrong_value_changes_nothing(site, tmp_path):
    agent = site.start_agent()
    path = tmp_path / "agent.conf"
    good = path.read_text()
    path.write_text(good.replace("stats_interval_seconds = 1", "stats_interval_seconds = 2"))
    agent.signal(signal.SIGHUP)
    wait_for(lambda: "1 options changed" in agent.tail(2000))
    path.write_text(good.replace("stats_interval_seconds = 1", "stats_interval_seconds = never"))
    agent.signal(signal.SIGHUP)
    wait_for(lambda: "The configuration stays as it was" in agent.tail(2000))
    site.wait_agent(agent)


def test_nothing_secret_is_in_the_log(site, rabbitmq_url):
    one = site.give("d1")
    token = Vault([KEY]).seal({"password": "s3cret-of-the-device"})
    site.servers.assign(one, token=token)
    agent = site.start_agent()
    site.servers.want("d1", deployment("v1"))
    site.api.create_vip(HOST, encode_device(one, token), deployment("v1"))
    assert wait_for(lambda: site.servers.last("v1")).ok
    log = agent.log.read_text()
    assert "s3cret-of-the-device" not in log
    assert KEY not in log
    assert "rig:rig@" in rabbitmq_url
    assert "rig:rig" not in log


def test_a_key_that_does_not_fit_is_a_clear_result(site):
    one = site.give("d1")
    token = Vault([generate_key()]).seal({"password": "s3cret"})
    site.servers.assign(one, token=token)
    site.servers.want("d1", deployment("v1"))
    site.start_agent()
    site.api.create_vip(HOST, encode_device(one, token), deployment("v1"))
    assert wait_for(lambda: site.servers.last("v1")).error == "The agent's configuration does not allow to reach the device."
