"""A VIP in Envoy's words."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from lbaas_scheduler.domain.loadbalancers import ForwardedFor, Method, MonitorType, Persistence, Protocol, SessionPersistence, Vip
from lbaas_scheduler.errors import DriverError
from lbaas_scheduler.sdk.conformance.documents import HOSTILE, member, monitor, persistence, vip, with_pool
from lbaas_scheduler.vendors.envoy.resources import Resources, Terms, render

TERMS = Terms(connect=5, idle=3600, connections=100)


def web(**changes: Any) -> Vip:
    members = (member("192.0.2.1", 80, id="m1", weight=3), member("192.0.2.2", 80, id="m2", weight=0))
    return vip("198.51.100.1", 80, Protocol.HTTP, members=members, id="v1", **changes)


def cluster(document: Vip) -> dict[str, Any]:
    found = render(document, TERMS).resources.cluster
    assert found is not None
    return found


def listener(document: Vip) -> dict[str, Any]:
    found = render(document, TERMS).resources.listener
    assert found is not None
    return found


def filters(document: Vip) -> list[str]:
    return [item["name"] for item in listener(document)["filter_chains"][0]["filters"]]


def test_cluster_of_an_http_vip() -> None:
    assert cluster(with_pool(web(), health_monitors=(monitor(id="h1", delay=5, timeout=3, max_retries=2),))) == {
        "@type": "type.googleapis.com/envoy.config.cluster.v3.Cluster",
        "name": "v1",
        "type": "STATIC",
        "connect_timeout": "5s",
        "common_lb_config": {
            "healthy_panic_threshold": {"value": 0},
            "update_merge_window": "0s",
            "override_host_status": {"statuses": ["UNKNOWN", "HEALTHY", "DEGRADED", "DRAINING"]},
        },
        "load_balancing_policy": {
            "policies": [
                {
                    "typed_extension_config": {
                        "name": "envoy.load_balancing_policies.round_robin",
                        "typed_config": {
                            "@type": "type.googleapis.com/envoy.extensions.load_balancing_policies.round_robin.v3.RoundRobin"
                        },
                    }
                }
            ]
        },
        "circuit_breakers": {
            "thresholds": [
                {
                    "priority": priority,
                    "max_connections": 4294967295,
                    "max_pending_requests": 4294967295,
                    "max_requests": 4294967295,
                    "max_retries": 4294967295,
                }
                for priority in ("DEFAULT", "HIGH")
            ]
        },
        "load_assignment": {
            "cluster_name": "v1",
            "endpoints": [
                {
                    "lb_endpoints": [
                        {
                            "endpoint": {
                                "address": {"socket_address": {"address": "192.0.2.1", "port_value": 80}},
                                "health_check_config": {"hostname": "192.0.2.1:80"},
                            },
                            "load_balancing_weight": 3,
                            "health_status": "HEALTHY",
                        },
                        {
                            "endpoint": {
                                "address": {"socket_address": {"address": "192.0.2.2", "port_value": 80}},
                                "health_check_config": {"hostname": "192.0.2.2:80"},
                            },
                            "load_balancing_weight": 1,
                            "health_status": "DRAINING",
                        },
                    ]
                }
            ],
        },
        "typed_extension_protocol_options": {
            "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": {
                "@type": "type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions",
                "common_http_protocol_options": {"idle_timeout": "4s"},
                "explicit_http_config": {
                    "http_protocol_options": {
                        "header_key_format": {
                            "stateful_formatter": {
                                "name": "preserve_case",
                                "typed_config": {
                                    "@type": "type.googleapis.com/envoy.extensions.http.header_formatters."
                                    "preserve_case.v3.PreserveCaseFormatterConfig"
                                },
                            }
                        }
                    }
                },
            }
        },
        "health_checks": [
            {
                "name": "h1",
                "timeout": "3s",
                "interval": "5s",
                "no_traffic_interval": "5s",
                "unhealthy_threshold": 2,
                "healthy_threshold": 1,
                "reuse_connection": False,
                "tcp_health_check": {},
            }
        ],
        "transport_socket_matches": [
            {
                "name": "https-monitor",
                "match": {"lbaas_check": "tls"},
                "transport_socket": {
                    "name": "envoy.transport_sockets.tls",
                    "typed_config": {"@type": "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext"},
                },
            }
        ],
    }


def test_listener_of_a_tcp_vip_with_a_limit() -> None:
    document = vip("2001:DB8:0::1", 443, Protocol.HTTPS, id="v2", connection_limit=7)
    assert listener(document) == {
        "@type": "type.googleapis.com/envoy.config.listener.v3.Listener",
        "name": "v2",
        "stat_prefix": "v2",
        "address": {"socket_address": {"address": "2001:db8::1", "port_value": 443}},
        "enable_reuse_port": True,
        "filter_chains": [
            {
                "filters": [
                    {
                        "name": "envoy.filters.network.connection_limit",
                        "typed_config": {
                            "@type": "type.googleapis.com/envoy.extensions.filters.network.connection_limit.v3.ConnectionLimit",
                            "stat_prefix": "v2",
                            "max_connections": 7,
                        },
                    },
                    {
                        "name": "envoy.filters.network.tcp_proxy",
                        "typed_config": {
                            "@type": "type.googleapis.com/envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy",
                            "stat_prefix": "v2",
                            "cluster": "v2",
                            "idle_timeout": "3600s",
                            "max_connect_attempts": 6,
                            "hash_policy": [{"source_ip": {}}],
                        },
                    },
                ]
            }
        ],
    }


def test_a_change_of_the_pool_leaves_the_listener_as_it_is() -> None:
    before = listener(web())
    for changes in (
        {"members": ()},
        {"members": (member(),)},
        {"lb_method": Method.SOURCE_IP},
        {"admin_state_up": False},
        {"health_monitors": (monitor(MonitorType.HTTP),)},
        {"id": "another"},
    ):
        assert listener(with_pool(web(), **changes)) == before, changes


def test_a_vip_that_is_switched_off_has_no_resources() -> None:
    assert render(web(admin_state_up=False), TERMS).resources == Resources(None, None)


def test_a_pool_that_is_switched_off_has_no_endpoints_and_no_checks() -> None:
    document = with_pool(web(), admin_state_up=False, health_monitors=(monitor(),))
    assert cluster(document)["load_assignment"]["endpoints"] == [{"lb_endpoints": []}]
    assert "health_checks" not in cluster(document)
    assert render(document, TERMS).members == {}


def test_members_and_monitors_that_are_switched_off_are_left_out() -> None:
    off = with_pool(web(), members=(member(admin_state_up=False), member("2001:DB8::1", 81, id="on")))
    off = with_pool(off, health_monitors=(monitor(admin_state_up=False), monitor(id="on")))
    assert dict(render(off, TERMS).members) == {"2001:db8::1 81": "on"}
    assert [check["name"] for check in cluster(off)["health_checks"]] == ["on"]
    (only,) = cluster(off)["load_assignment"]["endpoints"][0]["lb_endpoints"]
    assert only["endpoint"]["health_check_config"] == {"hostname": "[2001:db8::1]:81"}


@pytest.mark.parametrize(
    ("method", "sticky", "policy"),
    [
        (Method.ROUND_ROBIN, None, "round_robin"),
        (Method.LEAST_CONNECTIONS, None, "least_request"),
        (Method.SOURCE_IP, None, "maglev"),
        (Method.ROUND_ROBIN, Persistence.SOURCE_IP, "maglev"),
        (Method.LEAST_CONNECTIONS, Persistence.HTTP_COOKIE, "least_request"),
    ],
)
def test_policy_follows_from_method_and_persistence(method: Method, sticky: Persistence | None, policy: str) -> None:
    document = with_pool(replace(web(), session_persistence=persistence(sticky)), lb_method=method)
    (chosen,) = cluster(document)["load_balancing_policy"]["policies"]
    assert chosen["typed_extension_config"]["name"] == f"envoy.load_balancing_policies.{policy}"


def test_cookies_of_two_vips_have_different_names() -> None:
    def cookie(vip_id: str) -> str:
        document = replace(web(session_persistence=persistence(Persistence.HTTP_COOKIE)), id=vip_id)
        manager = listener(document)["filter_chains"][0]["filters"][-1]["typed_config"]
        session = manager["http_filters"][0]["typed_config"]["session_state"]["typed_config"]
        return str(session["cookie"]["name"])

    assert cookie("0a1b2c3d-rest") == "lbaas-0a1b2c3d"
    assert cookie("0a1b2c3d-rest") != cookie("1a1b2c3d-rest")


@pytest.mark.parametrize(("limit", "granted"), [(-1, 100), (1, 1), (99, 99), (101, 100), (2**31 - 1, 100)])
def test_a_vip_has_its_own_limit_or_its_share_of_the_device_whichever_is_less(limit: int, granted: int) -> None:
    first = listener(web(connection_limit=limit))["filter_chains"][0]["filters"][0]
    assert (first["name"], first["typed_config"]["max_connections"]) == ("envoy.filters.network.connection_limit", granted)


def test_a_limit_of_0_matches_no_client() -> None:
    (chain,) = listener(web(connection_limit=0))["filter_chains"]
    assert chain["filter_chain_match"] == {"source_prefix_ranges": [{"address_prefix": "255.255.255.255", "prefix_len": 32}]}
    assert "filter_chain_match" not in listener(web())["filter_chains"][0]


def test_a_cookie_on_a_protocol_without_cookies_is_refused_and_not_ignored() -> None:
    sticky = vip(port=80, protocol=Protocol.TCP, session_persistence=persistence(Persistence.HTTP_COOKIE))
    with pytest.raises(DriverError, match="needs protocol HTTP, not TCP"):
        render(sticky, TERMS)


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("place", ["http_method", "expected_codes", "url_path"])
def test_a_monitor_with_a_hostile_text_is_left_out_and_the_text_not_repeated(text: str, place: str) -> None:
    bad = monitor(MonitorType.HTTP, id="bad", **{place: text})
    found = render(with_pool(web(), health_monitors=(bad,)), TERMS)
    assert set(found.errors) == {"bad"}
    assert text not in found.errors["bad"]
    assert "health_checks" not in (found.resources.cluster or {})


@pytest.mark.parametrize("text", [*HOSTILE, "JSESSIONID"])
def test_an_applications_cookie_is_refused_and_its_name_reaches_nothing(text: str) -> None:
    document = web(session_persistence=SessionPersistence(Persistence.APP_COOKIE, text))
    with pytest.raises(DriverError, match="use HTTP_COOKIE or SOURCE_IP") as caught:
        render(document, TERMS)
    assert text not in caught.value.message


@pytest.mark.parametrize("vip_id", ["", "a.b", "../x", "a/b", "a b", "a" * 65, "ä", "a\n"])
def test_an_id_that_cannot_name_a_file_or_a_counter_is_refused(vip_id: str) -> None:
    with pytest.raises(DriverError):
        render(replace(web(), id=vip_id), TERMS)


@pytest.mark.parametrize("address", ["", "localhost", "192.0.2.1/24", "192.0.2.256", "1.2.3.4\n"])
def test_what_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(DriverError):
        render(replace(web(), address=address), TERMS)
    assert set(render(with_pool(web(), members=(member(address, id="bad"),)), TERMS).errors) == {"bad"}


def test_a_members_fault_is_its_own() -> None:
    document = web()
    bad = member("198.51.100.1", 80, id="itself")
    found = render(with_pool(document, members=(*document.pool.members, bad)), TERMS)
    assert (set(found.errors), dict(found.members)) == ({"itself"}, {"192.0.2.1 80": "m1", "192.0.2.2 80": "m2"})


def test_a_clients_word_on_where_it_comes_from_is_replaced_unless_the_vip_says_otherwise() -> None:
    def action(document: Vip) -> str:
        manager = listener(document)["filter_chains"][0]["filters"][-1]["typed_config"]
        (added,) = manager["route_config"]["request_headers_to_add"]
        return str(added["append_action"])

    assert action(web()) == "OVERWRITE_IF_EXISTS_OR_ADD"
    assert action(replace(web(), forwarded_for=ForwardedFor.APPEND)) == "APPEND_IF_EXISTS_OR_ADD"
