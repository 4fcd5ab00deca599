"""What release 1.0 said is read today, and what is said today release 1.0 could read."""

from __future__ import annotations

from typing import Any

import oslo_messaging
import pytest

from lbaas_scheduler.agent.contact import Contact
from lbaas_scheduler.agent.heartbeat import Heartbeat
from lbaas_scheduler.domain.deployments import Deployment, MemberHealth, Result, Version, VipStats
from lbaas_scheduler.rpc import topics
from lbaas_scheduler.rpc.agent_api import AgentAPI, VipChange
from lbaas_scheduler.rpc.codec import decode_device, encode_device, from_document, to_document
from lbaas_scheduler.rpc.dispatching import Dispatcher, expecting
from lbaas_scheduler.rpc.server_api import Desired, ServerAPI
from tests.frozen.peers import RECORDED, fits, recorded

REPLIES = RECORDED["replies"]


def _deployment() -> Deployment:
    return from_document(Deployment, recorded("create_vip")["deployment"])


def test_the_desired_state_of_release_1_0_loses_nothing_when_read_today() -> None:
    for method in ("create_vip", "update_vip"):
        document = recorded(method)["deployment"]
        assert fits(document, to_document(from_document(Deployment, document))) == []
    document = recorded("create_vip")["device"]
    assert fits(document, encode_device(*decode_device(document))) == []


def test_the_answers_and_reports_of_release_1_0_are_read_today() -> None:
    assert [from_document(Desired, it).version for it in REPLIES["list_desired"]] == [Version(1, 1)]
    (result,) = recorded("report_results")["results"]["device-1"]
    assert from_document(Result, result).object_errors == {"member-1": "It is down."}
    assert from_document(VipStats, recorded("report_stats")["stats"]["vip-1"]).members["member-1"].up


class Bus:
    """Keeps what is sent, and answers as release 1.0 did."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, dict[str, Any]]] = []

    def prepare(self, **_: Any) -> Bus:
        return self

    def call(self, _context: Any, method: str, **arguments: Any) -> Any:
        self.sent.append((method, arguments))
        return REPLIES.get(method)

    cast = call


def test_whatever_is_sent_today_has_all_that_a_reader_of_release_1_0_may_want() -> None:
    bus = Bus()
    agents, servers = AgentAPI.__new__(AgentAPI), ServerAPI.__new__(ServerAPI)
    agents._client = servers._client = bus  # type: ignore[assignment]
    deployment, document = _deployment(), recorded("create_vip")["device"]
    agents.create_vip("host-1", document, deployment)
    agents.update_vip("host-1", document, deployment)
    agents.delete_vip("host-1", document, "vip-1", Version(1, 3))
    agents.change_vips("host-1", [VipChange("create_vip", {"device": document, "deployment": deployment})])
    agents.resync("host-1", "device-1")
    agents.agent_updated("host-1", True)
    Heartbeat("host-1", servers, Contact(lambda: None), ["stub"], lambda: {"devices": 1}).beat()
    servers.get_devices("host-1")
    servers.list_desired("host-1", "device-1", None, 100)
    servers.get_deployments("host-1", "device-1", ["vip-1"])
    servers.report_results("host-1", {"device-1": [Result("vip-1", Version(1, 1))]})
    servers.report_stats("host-1", "device-1", {"vip-1": VipStats(members={"member-1": MemberHealth(None)})})
    assert {method for method, _ in bus.sent} == {it["method"] for it in RECORDED["messages"]}
    assert [it for method, arguments in bus.sent for it in fits(recorded(method), to_document(arguments), method)] == []


def test_messages_call_themselves_what_the_first_release_of_the_major_version_takes() -> None:
    assert topics.ON_THE_WIRE == "1.0"
    assert topics.VERSION.startswith("1.")


class Endpoint:
    target = oslo_messaging.Target(version="1.2")

    @expecting(ValueError)
    def known(self, context: Any, name: str, size: int = 1) -> list[Any]:
        return [name, size]


class Incoming:
    def __init__(self, version: str, method: str = "known", **arguments: Any) -> None:
        self.message = {"method": method, "version": version, "args": arguments}
        self.ctxt: dict[str, Any] = {}
        self.client_timeout = None


@pytest.mark.parametrize("version", ["1.0", "1.2", "1.9"])
def test_a_message_of_any_minor_version_is_taken_without_what_is_not_known(version: str) -> None:
    told: list[Any] = []
    dispatcher = Dispatcher([Endpoint()], None, lambda *message: told.append(message))
    assert dispatcher.dispatch(Incoming(version, name="a", colour="red")) == ["a", 1]
    assert told == []


@pytest.mark.parametrize(("version", "method"), [("0.9", "known"), ("2.0", "known"), ("1.0", "unknown")])
def test_a_message_that_cannot_be_taken_is_told_of_and_is_no_fault_of_ours(version: str, method: str) -> None:
    told: list[Any] = []
    dispatcher = Dispatcher([Endpoint()], None, lambda *message: told.append(message))
    with pytest.raises(oslo_messaging.ExpectedException):
        dispatcher.dispatch(Incoming(version, method, name="a"))
    assert told == [(version, method, {"name": "a"})]


def test_clients_whose_argument_is_not_known_are_not_answered_as_if_it_were() -> None:
    with pytest.raises(TypeError):
        Dispatcher([Endpoint()], None).dispatch(Incoming("1.0", name="a", dry_run=True))
