from __future__ import annotations

import kombu.exceptions
import oslo_messaging
import pytest
from oslo_context.context import RequestContext

from lbaas_scheduler.errors import ConfigurationError, VipNotFound
from lbaas_scheduler.rpc import topics
from lbaas_scheduler.rpc.lbaas_api import LoadBalancerClient
from lbaas_scheduler.rpc.transport import ContextSerializer, delivering, get_server, get_transport
from tests.agent_side import bus_conf
from tests.troubled_server import ERRORS_OF_OTHERS, troubled_server


def test_only_who_asks_travels_with_a_message():
    context = RequestContext(
        auth_token="t0ken", user_id="u1", project_id="p1", roles=["member"], request_id="req-1", overwrite=False
    )
    document = ContextSerializer().serialize_context(context)
    assert document == {"user_id": "u1", "project_id": "p1", "roles": ["member"], "is_admin": False, "request_id": "req-1"}
    back = ContextSerializer().deserialize_context(document)
    assert (back.user_id, back.project_id, back.roles, back.is_admin, back.request_id, back.auth_token) == (
        "u1", "p1", ["member"], False, "req-1", None,
    )  # fmt: skip


def test_rabbitmq_queues_are_quorum_queues_unless_the_operator_says_otherwise():
    conf = bus_conf("rabbit://")
    get_transport(conf)
    assert conf.oslo_messaging_rabbit.rabbit_quorum_queue is True
    chosen = bus_conf("rabbit://")
    get_transport(chosen)
    chosen.set_override("rabbit_quorum_queue", False, group="oslo_messaging_rabbit")
    get_transport(chosen)
    assert chosen.oslo_messaging_rabbit.rabbit_quorum_queue is False


@pytest.mark.parametrize("url", ["nope://user:s3cret@host", "rabbit://user:s3cret@[bad", "rabbit://user:s3cret@host:port/"])
def test_a_wrong_transport_url_is_refused_without_being_shown(url):
    with pytest.raises(ConfigurationError, match="transport_url") as raised:
        get_transport(bus_conf(url))
    assert "s3cret" not in raised.value.message
    assert raised.value.__cause__ is None


class _Plugin:
    target = oslo_messaging.Target(namespace=topics.LOADBALANCER_NAMESPACE, version=topics.VERSION)

    def get_vip(self, context, id, fields=None):
        if id == "gone":
            raise VipNotFound(id=id)
        return {"id": id, "tenant_id": context.project_id, "fields": fields}

    def create_vip(self, context, vip):
        return {**vip, "id": "v1"}


def test_a_client_reaches_the_plugin_of_its_namespace():
    transport = get_transport(bus_conf())
    server = get_server(transport, topics.PLUGINS, "server-1", [_Plugin()])
    server.start()
    try:
        client = LoadBalancerClient(transport)
        context = RequestContext(project_id="p1", overwrite=False)
        assert client.get_vip(context, "v9", ["id"]) == {"id": "v9", "tenant_id": "p1", "fields": ["id"]}
        assert client.create_vip(context, {"name": "web"}) == {"name": "web", "id": "v1"}
        with pytest.raises(VipNotFound, match="gone"):
            client.get_vip(context, "gone")
    finally:
        server.stop()
        server.wait()


@pytest.mark.parametrize("error", [kombu.exceptions.OperationalError("refused"), ConnectionRefusedError("refused")])
def test_errors_of_the_libraries_below_say_that_the_broker_is_away(error):
    with pytest.raises(oslo_messaging.MessageDeliveryFailure, match="refused"), delivering():
        raise error


@pytest.mark.parametrize("error", ERRORS_OF_OTHERS, ids=lambda it: type(it).__name__)
def test_an_error_of_the_other_side_stays_what_it_is(error):
    with troubled_server(get_transport(bus_conf()), error) as server, pytest.raises(type(error), match="theirs"):
        server.report_results("agent-1", {})
