"""The Falcon application: from the table of routes to something that WSGI servers call."""

from __future__ import annotations

import json
import logging
import re
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import falcon
from oslo_middleware.http_proxy_to_wsgi import HTTPProxyToWSGI

from lbaas_scheduler.api import auth, bodies, errors, keystone, queries
from lbaas_scheduler.api.metrics import RequestMeter
from lbaas_scheduler.api.operations import UUID_IN_PATH, Call, Operation, Raw, Services
from lbaas_scheduler.api.routes import ROUTES
from lbaas_scheduler.conf.api import KEYSTONE
from lbaas_scheduler.errors import (
    AgentNotFound,
    DeviceNotFound,
    HealthMonitorNotFound,
    LBaaSError,
    MemberNotFound,
    NetworkNotFound,
    NotFound,
    PlacementRuleNotFound,
    PoolNotFound,
    PortNotFound,
    ServiceTypeNotFound,
    SubnetNotFound,
    Unavailable,
    VipNotFound,
)

LOG = logging.getLogger(__name__)

Wsgi = Callable[..., Any]


def build(services: Services) -> Wsgi:
    """The application, whole.

    :raises ConfigurationError: the policy file is wrong, or what checks tokens cannot be set up.
    """
    app: Wsgi = _falcon(services)
    if services.conf.api.auth_strategy == KEYSTONE:
        app = keystone.protected(services.conf, app)
    # It registers its options, and costs more than our own part of a request: only where there is a proxy.
    proxied: Wsgi = HTTPProxyToWSGI(app, services.conf)
    return proxied if services.conf.oslo_middleware.enable_proxy_headers_parsing else app


def _falcon(services: Services) -> falcon.App[falcon.Request, falcon.Response]:
    rules = auth.Policies(services.conf)
    app: falcon.App[falcon.Request, falcon.Response] = falcon.App(
        middleware=[Suffixes(), auth.Callers(auth.identities(services.conf), rules), RequestMeter(services.meters), AccessLog()]
    )
    app.req_options.strip_url_path_trailing_slash = True
    app.add_error_handler(Exception, errors.handle_unknown)
    app.add_error_handler(falcon.HTTPError, errors.handle_http)
    app.add_error_handler(LBaaSError, errors.handle_own)
    runner = Runner(services, rules)
    for path, operations in ROUTES.items():
        app.add_route(path, _resource(runner, operations))
    return app


def _resource(runner: Runner, operations: Mapping[str, Operation]) -> object:
    """A resource as Falcon wants it: an object with one method per verb."""
    resource = _Resource()
    for method, operation in operations.items():
        setattr(resource, f"on_{method.lower()}", partial(runner.run, operation))
    return resource


class _Resource:
    pass


class Runner:
    """What every request goes through: policy, body, handler, answer."""

    def __init__(self, services: Services, rules: auth.Policies) -> None:
        self._services = services
        self._policies = rules
        self._max_body_bytes = services.conf.api.max_body_bytes

    def run(self, operation: Operation, req: falcon.Request, resp: falcon.Response, **ids: str) -> None:
        caller = req.context.caller
        if operation.rule is not None:
            if caller is None:
                raise _nobody(req)
            self._policies.check(operation.rule, caller)
        call = Call(
            services=self._services,
            context=caller,
            url=f"{req.prefix}{req.path}",
            root=req.prefix,
            ids={name: _id(operation, req.uri_template or "", name, text) for name, text in ids.items()},
            query=queries.parse(req.params),
            body=self._body(operation, req),
        )
        _answer(resp, operation, operation.run(call))

    def _body(self, operation: Operation, req: falcon.Request) -> Any:
        if not operation.envelope:
            return None
        return bodies.read(req, operation.envelope, operation.plural, self._max_body_bytes, operation.bulk)


def _nobody(req: falcon.Request) -> Exception:
    """Where to get a token, keystonemiddleware adds."""
    if req.env.get(keystone.AWAY):
        return Unavailable(dependency="Keystone", reason="tokens cannot be checked")
    return falcon.HTTPUnauthorized(description="Authentication is required.")


def _answer(resp: falcon.Response, operation: Operation, result: Any) -> None:
    resp.status = operation.status
    if isinstance(result, Raw):
        resp.status, resp.data, resp.content_type = result.status, result.data, result.content_type
    elif operation.gives is not None:
        resp.data, resp.content_type = json.dumps(result).encode(), falcon.MEDIA_JSON


_MISSING: Mapping[str, Callable[..., NotFound]] = {
    "vips": VipNotFound,
    "pools": PoolNotFound,
    "members": MemberNotFound,
    "health_monitors": HealthMonitorNotFound,
    "networks": NetworkNotFound,
    "subnets": SubnetNotFound,
    "ports": PortNotFound,
    "service-types": ServiceTypeNotFound,
    "agents": AgentNotFound,
    "devices": DeviceNotFound,
    "placement-rules": PlacementRuleNotFound,
    "moves": partial(NotFound, resource="Move of resource"),
}
"""The collection before a variable of a path → what is said of an object that is not in it."""


def _id(operation: Operation, path: str, name: str, text: str) -> str:
    """A variable of the path. A database need not be asked for what it may choke on.

    :raises NotFound: nothing can be called so. It reads as of something that could be and is not.
    """
    wanted = text.lower() if operation.ids is UUID_IN_PATH else text
    if re.fullmatch(operation.ids["pattern"], wanted, re.ASCII) is None:
        collection = path.partition(f"/{{{name}}}")[0].rpartition("/")[2]
        missing = _MISSING.get(collection, partial(NotFound, resource=operation.tag.removesuffix("s")))
        raise missing(id=ascii(text[:64])[1:-1])
    return wanted


class Suffixes:
    """``/v2.0/lb/vips.json`` is ``/v2.0/lb/vips``: clients of before 2017 say it so."""

    def process_request(self, req: falcon.Request, resp: falcon.Response) -> None:
        if req.path.endswith(".json") and req.path != "/openapi.json":
            req.path = req.path.removesuffix(".json")


class AccessLog:
    """A line per request."""

    def process_request(self, req: falcon.Request, resp: falcon.Response) -> None:
        req.context.arrived = time.monotonic()

    def process_response(self, req: falcon.Request, resp: falcon.Response, resource: Any, req_succeeded: bool) -> None:
        now = time.monotonic()
        # Whoever was turned away before has not arrived here.
        took = (now - getattr(req.context, "arrived", now)) * 1000
        LOG.info("%s %s %s %s %.1f ms", req.remote_addr, req.method, req.path, resp.status_code, took)
