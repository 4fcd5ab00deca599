"""Tokens: keystonemiddleware in front of the application, a Keystone behind it, everything over HTTP."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
from keystoneauth1 import loading
from keystonemiddleware import opts as middleware

from lbaas_scheduler.api.keystone import GROUP
from lbaas_scheduler.cmd import wiring
from tests.functional.api.house import ADMIN, House
from tests.functional.api.keystone import PASSWORD, SERVICE_USER, Keystone, Token
from tests.functional.api.serving import served

POOLS = "/v2.0/lb/pools"


@pytest.fixture
def keystone() -> Iterator[Keystone]:
    running = Keystone()
    yield running
    running.stop()


class Site:
    """``house`` behind tokens of ``keystone``, at ``url``."""

    def __init__(self, house: House, keystone: Keystone, url: str) -> None:
        self.house, self.keystone, self._url = house, keystone, url

    def ask(self, method: str, path: str, token: Token | str | None, body: Any = None, **headers: str) -> tuple[int, Any, Any]:
        """:returns: status, document, headers."""
        if token is not None:
            headers["X-Auth-Token"] = token if isinstance(token, str) else token.id
        connection = http.client.HTTPConnection(urlsplit(self._url).netloc, timeout=30)
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        answer = connection.getresponse()
        text = answer.read()
        connection.close()
        document = json.loads(text) if text and "json" in answer.headers.get("Content-Type", "") else text.decode()
        return answer.status, document, answer.headers

    def status(self, method: str, path: str, token: Token | str | None, body: Any = None, **headers: str) -> int:
        return self.ask(method, path, token, body, **headers)[0]

    def pool(self) -> dict[str, Any]:
        return {"pool": {"subnet_id": self.house.subnet["id"], "protocol": "HTTP", "lb_method": "ROUND_ROBIN"}}


@pytest.fixture
def site(house: House, keystone: Keystone) -> Iterator[Site]:
    conf = house.conf
    for group, options in middleware.list_auth_token_opts():
        conf.register_opts(options, group=group)
    loading.register_auth_conf_options(conf, GROUP)
    conf.register_opts(loading.get_auth_plugin_conf_options("password"), group=GROUP)
    values = {
        "auth_type": "password",
        "auth_url": keystone.url,
        "username": SERVICE_USER,
        "password": PASSWORD,
        "user_domain_id": "default",
        "project_name": "service",
        "project_domain_id": "default",
        "www_authenticate_uri": "https://keystone.example.org/v3",
        "service_token_roles": ["service"],
        "service_token_roles_required": True,
        # Nothing is kept: what is revoked is refused from then on.
        "token_cache_time": -1,
    }
    for name, value in values.items():
        conf.set_override(name, value, GROUP)
    conf.set_override("auth_strategy", "keystone", "api")
    house.app = wiring.rest_application(house.plant, lambda _seconds: None)
    with served(house) as url:
        yield Site(house, keystone, url)


def test_a_token_says_whose_the_caller_is_and_what_he_may(site: Site) -> None:
    issue = site.keystone.issue
    anne, reader, bert = issue("ann", "member"), issue("aud", "reader"), issue("ben", "member", project="bert")
    admin = issue("root", "admin", "member", project="operator")
    status, answer, _ = site.ask("POST", POOLS, anne, site.pool())
    assert (status, answer["pool"]["tenant_id"]) == (201, "anne")
    path = f"{POOLS}/{answer['pool']['id']}"
    for token, read, write, devices, agents in (
        (anne, 200, 200, 200, 403),
        (reader, 200, 403, 200, 403),
        (bert, 404, 404, 200, 403),
        (admin, 200, 200, 200, 200),
        (issue("guest", "dancer"), 403, 403, 403, 403),
        (issue("nobody"), 403, 403, 403, 403),
    ):
        assert site.status("GET", path, token) == read, token
        assert site.status("PUT", path, token, {"pool": {"name": "x"}}) == write, token
        assert site.status("GET", "/v2.0/devices", token) == devices, token
        assert site.status("GET", "/v2.0/agents", token) == agents, token
    # An administrator of any project is one of the service, and creates for whom he says.
    status, answer, _ = site.ask("POST", POOLS, admin, {"pool": {**site.pool()["pool"], "tenant_id": "bert"}})
    assert (status, answer["pool"]["tenant_id"]) == (201, "bert")
    assert [it["tenant_id"] for it in site.ask("GET", POOLS, bert)[1]["pools"]] == ["bert"]
    assert "POST /v3/auth/tokens" in site.keystone.asked


def test_a_token_without_a_project_owns_nothing(site: Site) -> None:
    unscoped = site.keystone.issue("ann", "member", project=None)
    assert site.ask("GET", POOLS, unscoped)[1] == {"pools": []}
    assert site.status("POST", POOLS, unscoped, site.pool()) == 400


def test_without_a_valid_token_nothing_is_told_but_where_to_get_one(site: Site) -> None:
    expired = site.keystone.issue("ann", "member", minutes=-1)
    revoked = site.keystone.issue("ann", "member")
    assert site.status("GET", POOLS, revoked) == 200
    revoked.revoked = True
    for token in (None, "", "forged", "x" * 2000, expired, revoked):
        status, answer, headers = site.ask("GET", POOLS, token)
        assert (status, answer["NeutronError"]["type"]) == (401, "HTTPUnauthorized"), token
        assert headers.get_all("WWW-Authenticate") == ['Keystone uri="https://keystone.example.org/v3"'], token
        assert site.status("POST", POOLS, token, site.pool()) == 401, token
        # What is for everybody needs no token, not even a good one.
        for path in ("/", "/healthcheck", "/openapi.json"):
            assert site.status("GET", path, token) == 200, (path, token)
    assert site.status("GET", "/nowhere", "forged") == 404


def test_headers_that_a_client_makes_up_count_for_nothing(site: Site) -> None:
    made_up = {
        **ADMIN,
        "X-Identity-Status": "Confirmed",
        "X-Is-Admin-Project": "True",
        "X-Tenant-Id": "operator",
        "X-Role": "admin",
    }
    assert site.status("GET", "/v2.0/agents", None, **made_up) == 401
    assert site.status("GET", "/v2.0/agents", site.keystone.issue("ann", "member"), **made_up) == 403
    status, answer, _ = site.ask("POST", POOLS, site.keystone.issue("ann", "member"), site.pool(), **made_up)
    assert (status, answer["pool"]["tenant_id"]) == (201, "anne")


def test_a_service_may_finish_what_an_expired_token_began_and_nobody_else(site: Site) -> None:
    issue = site.keystone.issue
    user, expired = issue("ann", "member"), issue("ann", "member", minutes=-1)
    service, other = issue("nova", "service", project="service"), issue("ben", "member", project="bert")
    assert site.status("GET", POOLS, user, **{"X-Service-Token": service.id}) == 200
    assert site.status("GET", POOLS, expired, **{"X-Service-Token": service.id}) == 200
    # The user's roles count, not the service's.
    assert site.status("GET", "/v2.0/agents", expired, **{"X-Service-Token": service.id}) == 403
    for wrong in (other.id, "forged"):
        assert site.status("GET", POOLS, expired, **{"X-Service-Token": wrong}) == 401
        assert site.status("GET", POOLS, user, **{"X-Service-Token": wrong}) == 401
    assert site.status("GET", POOLS, None, **{"X-Service-Token": service.id}) == 401


def test_a_keystone_that_is_away_is_no_bad_token(site: Site) -> None:
    token = site.keystone.issue("ann", "member")
    site.keystone.stop()
    status, answer, headers = site.ask("GET", POOLS, token)
    assert (status, answer["NeutronError"]["type"], headers["Retry-After"]) == (503, "Unavailable", "5")
    assert "Keystone" in answer["NeutronError"]["message"]
    assert site.status("GET", "/healthcheck", token) == 200
    assert site.status("GET", "/", None) == 200
