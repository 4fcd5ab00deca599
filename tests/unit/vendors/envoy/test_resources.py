"""A VIP in Envoy's words."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from lbaas_scheduler.domain.loadbalancers import Method, MonitorType, Persistence, Protocol, SessionPersistence, Vip
from lbaas_scheduler.errors import InvalidRequest
from lbaas_scheduler.sdk.conformance.documents import HOSTILE, member, monitor, persistence, vip, with_pool
from lbaas_scheduler.vendors.envoy.resources import Resources, Timeouts, endpoints, render

TIMEOUTS = Timeouts(connect=5, idle=3600)


def web(**changes: Any) -> Vip:
    members = (member("192.0.2.1", 80, id="m1", weight=3), member("192.0.2.2", 80, id="m2", weight=0))
    return vip("198.51.100.1", 80, Protocol.HTTP, members=members, id="v1", **changes)


def cluster(document: Vip) -> dict[str, Any]:
    found = render(document, TIMEOUTS).cluster
    assert found is not None
    return found


def listener(document: Vip) -> dict[str, Any]:
    found = render(document, TIMEOUTS).listener
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
    assert render(web(admin_state_up=False), TIMEOUTS) == Resources(None, None)


def test_a_pool_that_is_switched_off_has_no_endpoints_and_no_checks() -> None:
    document = with_pool(web(), admin_state_up=False, health_monitors=(monitor(),))
    assert cluster(document)["load_assignment"]["endpoints"] == [{"lb_endpoints": []}]
    assert "health_checks" not in cluster(document)
    assert endpoints(document.pool) == {}


def test_members_and_monitors_that_are_switched_off_are_left_out() -> None:
    off = with_pool(web(), members=(member(admin_state_up=False), member("::1", 81, id="on")))
    off = with_pool(off, health_monitors=(monitor(admin_state_up=False), monitor(id="on")))
    assert dict(endpoints(off.pool)) == {"::1 81": "on"}
    assert [check["name"] for check in cluster(off)["health_checks"]] == ["on"]
    (only,) = cluster(off)["load_assignment"]["endpoints"][0]["lb_endpoints"]
    assert only["endpoint"]["health_check_config"] == {"hostname": "[::1]:81"}


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


@pytest.mark.parametrize(("limit", "limited"), [(-1, False), (0, False), (1, True), (2**31 - 1, True)])
def test_only_a_positive_connection_limit_limits(limit: int, limited: bool) -> None:
    assert ("envoy.filters.network.connection_limit" in filters(web(connection_limit=limit))) == limited


def test_a_cookie_on_a_protocol_without_cookies_is_refused_and_not_ignored() -> None:
    sticky = vip(port=80, protocol=Protocol.TCP, session_persistence=persistence(Persistence.HTTP_COOKIE))
    with pytest.raises(InvalidRequest, match="needs protocol HTTP, not TCP"):
        render(sticky, TIMEOUTS)


@pytest.mark.parametrize("text", [text for text in HOSTILE if not text.startswith("/a")])
@pytest.mark.parametrize("place", ["http_method", "expected_codes", "url_path"])
def test_a_hostile_text_is_refused_and_not_repeated(text: str, place: str) -> None:
    if place == "url_path" and text == '/"':
        pytest.skip("a quote may stand in a path; the next test")
    with pytest.raises(InvalidRequest) as caught:
        cluster(with_pool(web(), health_monitors=(monitor(MonitorType.HTTP, **{place: text}),)))
    assert text not in caught.value.message


@pytest.mark.parametrize("text", ['/"', "/]}\\'$(id){{7*7}}", "/" + "a" * 4000])
def test_a_path_with_signs_of_many_languages_stays_one_value(text: str) -> None:
    found = cluster(with_pool(web(), health_monitors=(monitor(MonitorType.HTTP, url_path=text),)))
    assert json.loads(json.dumps(found))["health_checks"][0]["http_health_check"]["path"] == text


@pytest.mark.parametrize("text", [*HOSTILE, "JSESSIONID"])
def test_an_applications_cookie_is_refused_and_its_name_reaches_nothing(text: str) -> None:
    document = web(session_persistence=SessionPersistence(Persistence.APP_COOKIE, text))
    with pytest.raises(InvalidRequest, match="use HTTP_COOKIE or SOURCE_IP") as caught:
        render(document, TIMEOUTS)
    assert text not in caught.value.message


@pytest.mark.parametrize("vip_id", ["", "a.b", "../x", "a/b", "a b", "a" * 65, "ä", "a\n"])
def test_an_id_that_cannot_name_a_file_or_a_counter_is_refused(vip_id: str) -> None:
    with pytest.raises(InvalidRequest):
        render(replace(web(), id=vip_id), TIMEOUTS)


@pytest.mark.parametrize("address", ["", "localhost", "192.0.2.1/24", "192.0.2.256", "1.2.3.4\n"])
def test_what_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(InvalidRequest):
        render(replace(web(), address=address), TIMEOUTS)
    with pytest.raises(InvalidRequest):
        render(with_pool(web(), members=(member(address),)), TIMEOUTS)
