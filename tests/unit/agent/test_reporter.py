from __future__ import annotations

import threading
import time

import oslo_messaging
import pytest

from lbaas_scheduler.agent import reporter as module
from lbaas_scheduler.agent.contact import Contact
from lbaas_scheduler.agent.reporter import Reporter
from lbaas_scheduler.domain.deployments import Result, Version
from tests.agent_side import HOST, DirectServerAPI, Servers
from tests.rig.waiting import wait_for


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    monkeypatch.setattr(module, "FIRST_WAIT_SECONDS", 0.01)


@pytest.fixture
def servers():
    return Servers()


@pytest.fixture
def reporter(servers):
    made = Reporter(HOST, DirectServerAPI(servers), Contact(lambda: None), lambda: 10)
    yield made
    made.stop(time.monotonic() + 5)


def result(vip_id, revision=1, **fields):
    return Result(vip_id, Version(1, revision), **fields)


def test_results_go_in_batches_of_however_many_devices(servers, reporter):
    for number in range(25):
        reporter.add("d1", result(f"v{number:02}"))
    reporter.add("d2", result("w"))
    reporter.start()
    wait_for(lambda: len(servers.results) == 26)
    assert servers.calls.count("report_results") == 3
    assert {device for device, found in servers.results if found.vip_id == "w"} == {"d2"}


def test_the_newest_result_of_a_vip_is_the_one_that_is_sent(servers, reporter):
    reporter.add("d1", result("v", 2, error="timed out"))
    reporter.add("d1", result("v", 1))
    reporter.add("d1", result("v", 2))
    reporter.start()
    wait_for(lambda: servers.results)
    assert servers.results == [("d1", result("v", 2))]


@pytest.mark.parametrize("error", [oslo_messaging.MessagingTimeout(), oslo_messaging.MessageDeliveryFailure()])
def test_results_wait_until_a_server_takes_them(servers, reporter, error):
    attempts = []

    def away(method, _arguments):
        attempts.append(method)
        if len(attempts) < 5:
            raise error

    servers.refuse = away
    reporter.start()
    reporter.add("d1", result("v"))
    wait_for(lambda: servers.results)
    assert len(attempts) == 5


def test_one_result_that_the_server_refuses_stops_no_other(servers, reporter, caplog):
    def refuse(_method, arguments):
        if any(document["vip_id"] == "v13" for documents in arguments["results"].values() for document in documents):
            raise KeyError("bug")

    servers.refuse = refuse
    for number in range(30):
        reporter.add("d1", result(f"v{number}"))
    reporter.add("d2", result("w"))
    reporter.start()
    wait_for(lambda: "v13 on device d1" in caplog.text and len(servers.results) == 30)
    assert {found.vip_id for _, found in servers.results} == {f"v{n}" for n in range(30) if n != 13} | {"w"}
    assert reporter.stop(time.monotonic() + 5)


def test_stop_delivers_what_waits(servers, reporter):
    gate = threading.Event()
    servers.refuse = lambda *_: gate.wait(10)
    reporter.start()
    for number in range(50):
        reporter.add("d1", result(f"v{number}"))
    threading.Timer(0.1, gate.set).start()
    assert reporter.stop(time.monotonic() + 10)
    assert len(servers.results) == 50


def test_stop_gives_up_at_its_deadline(servers, reporter):
    def away(*_):
        raise oslo_messaging.MessagingTimeout

    servers.refuse = away
    reporter.start()
    reporter.add("d1", result("v"))
    began = time.monotonic()
    assert not reporter.stop(began + 0.3)
    assert time.monotonic() - began < 2


def test_what_waits_is_bounded_and_the_newest_stay(servers, reporter, monkeypatch):
    monkeypatch.setattr(module, "MAX_WAITING", 20)
    for number in range(30):
        reporter.add("d1", result(f"v{number}"))
    reporter.start()
    wait_for(lambda: len(servers.results) == 20)
    assert {found.vip_id for _, found in servers.results} == {f"v{n}" for n in range(10, 30)}


def test_contact_is_lost_once_and_logged_once(caplog):
    caplog.set_level("INFO")
    lost = []
    contact = Contact(lambda: lost.append(1))
    for _ in range(3):
        contact.note(oslo_messaging.MessagingTimeout())
    contact.note(KeyError("an answer, or none of the server's business"))
    assert contact.away
    contact.made()
    contact.made()
    assert not contact.away
    assert lost == [1]
    assert [record.getMessage().split(":")[0] for record in caplog.records] == [
        "No server can be reached",
        "A server answers again",
    ]
