"""Counters and health, as read from HAProxy."""

from __future__ import annotations

import http.client
import logging
from dataclasses import replace

import pytest

from lbaas_scheduler.domain.deployments import VipStats
from lbaas_scheduler.domain.loadbalancers import Vip
from lbaas_scheduler.errors import DriverError
from tests.functional.haproxy.backends import Backend
from tests.functional.haproxy.lab import Lab, request
from tests.rig.waiting import wait_for


def stats(lab: Lab, vip: Vip) -> VipStats:
    return lab.driver.read_stats(lab.device)[vip.id]


def ask(lab: Lab, vip: Vip, times: int) -> None:
    """Requests whose connections are counted when this returns."""
    total = stats(lab, vip).total_connections + times
    for _ in range(times):
        assert request(vip)[0] == 200
    wait_for(lambda: (now := stats(lab, vip)).total_connections >= total and now.active_connections == 0, 5)


def test_counters_are_exact_and_per_vip(lab: Lab, web: Vip, neighbour: Vip) -> None:
    lab.serve(web, neighbour)
    ask(lab, web, 7)
    ask(lab, neighbour, 2)
    assert stats(lab, web).total_connections == 7
    assert stats(lab, neighbour).total_connections == 2
    assert stats(lab, web).bytes_in > stats(lab, neighbour).bytes_in > 0
    assert stats(lab, web).bytes_out > stats(lab, neighbour).bytes_out > 0


def test_counters_go_on_over_reloads_restarts_of_the_agent_and_of_haproxy(lab: Lab, web: Vip) -> None:
    lab.serve(web)
    ask(lab, web, 3)
    before = stats(lab, web)
    for limit in (10, 20, 30):
        lab.serve(replace(web, connection_limit=limit))
        assert stats(lab, web) == before
        ask(lab, web, 1)
        before = stats(lab, web)
    assert before.total_connections == 6
    lab = lab.restarted()
    assert stats(lab, web) == before
    lab.kill(lab.master)
    lab.serve(web)
    assert stats(lab, web).total_connections == 6
    ask(lab, web, 1)
    assert stats(lab, web).total_connections == 7


def test_a_vip_that_comes_back_counts_from_zero(lab: Lab, web: Vip, neighbour: Vip) -> None:
    lab.serve(web, neighbour)
    ask(lab, web, 2)
    lab.remove(web)
    lab.serve(web)
    assert stats(lab, web).total_connections == 0


def test_an_old_workers_connections_are_counted_as_long_as_it_has_them(lab: Lab, web: Vip, backends: list[Backend]) -> None:
    vip = replace(web, pool=replace(web.pool, members=(backends[0].member(),)))
    lab.serve(vip)
    connection = http.client.HTTPConnection(vip.address, vip.protocol_port, timeout=10)
    connection.request("GET", "/slow", headers={"Connection": "close"})
    wait_for(lambda: stats(lab, vip).active_connections == 1, 5)
    lab.serve(replace(vip, connection_limit=5))
    assert stats(lab, vip).active_connections == 1
    backends[0].release.set()
    assert connection.getresponse().status == 200
    connection.close()
    wait_for(lambda: stats(lab, vip).active_connections == 0, 5)
    assert stats(lab, vip).total_connections == 1


def test_a_dead_device_raises_each_time_and_floods_no_log(lab: Lab, web: Vip, caplog: pytest.LogCaptureFixture) -> None:
    lab.serve(web)
    lab.kill(lab.master)
    caplog.set_level(logging.DEBUG)
    for _ in range(5):
        with pytest.raises(DriverError):
            lab.driver.read_stats(lab.device)
    assert caplog.text == ""
