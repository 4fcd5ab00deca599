"""From errors to HTTP: the one table, and the body that LBaaS v1 clients read."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import Any

import falcon

from lbaas_scheduler import errors
from lbaas_scheduler.errors import LBaaSError
from lbaas_scheduler.schemas.checker import shown

LOG = logging.getLogger(__name__)

STATUSES: Mapping[type[LBaaSError], int] = {
    errors.InvalidRequest: 400,
    errors.NotAuthorized: 403,
    errors.NotFound: 404,
    errors.Conflict: 409,
    errors.Exhausted: 409,
    errors.NoValidDevice: 503,
    errors.DriverError: 502,
    errors.Unavailable: 503,
    errors.ConfigurationError: 500,
    errors.IncompatibleVersion: 500,
    LBaaSError: 500,
}
"""Error → status. One that is not listed has that of its nearest parent."""

NAMES: Mapping[type[LBaaSError], str] = {
    errors.InvalidRequest: "HTTPBadRequest",
    errors.NoValidDevice: "NoEligibleBackend",
}
"""Error → ``type`` in the body, where LBaaS v1 clients know another name than ours. No subclass inherits it."""

RETRY_AFTER_SECONDS = 5
"""When a client may try again what failed because something was away."""

_FAILED = "The server failed to answer; its log has the reason under request id {request_id}."


def status_of(kind: type[LBaaSError]) -> int:
    return next(STATUSES[parent] for parent in kind.__mro__ if parent in STATUSES)


def body(kind: str, message: str, detail: str = "") -> bytes:
    return json.dumps({"NeutronError": {"type": kind, "message": message, "detail": detail}}).encode()


def handle_own(req: falcon.Request, resp: falcon.Response, error: LBaaSError, _params: Any) -> None:
    """What this package raises on purpose. Of what went wrong inside, a client learns no more than that."""
    kind = type(error)
    status = status_of(kind)
    resp.status = status
    message = error.message
    if status == 500:
        LOG.error("%s %s: %s", req.method, req.path, error.message, exc_info=error)
        message = _FAILED.format(request_id=getattr(req.context, "request_id", "-"))
    elif isinstance(error, errors.DriverError):
        LOG.error("%s %s: %s", req.method, req.path, error.operator_message)
    if isinstance(error, errors.Unavailable):
        resp.set_header("Retry-After", str(RETRY_AFTER_SECONDS))
    _write(resp, body(NAMES.get(kind, kind.__name__), message, _detail(error)))


def handle_http(req: falcon.Request, resp: falcon.Response, error: falcon.HTTPError, _params: Any) -> None:
    """What Falcon and the layers before the handlers raise: unknown paths and methods, unreadable bodies."""
    resp.status = error.status
    for name, value in dict(error.headers or {}).items():
        resp.set_header(name, value)
    _write(resp, body(type(error).__name__, error.description or _described(req, error)))


def _described(req: falcon.Request, error: falcon.HTTPError) -> str:
    """What Falcon itself has no words for."""
    if isinstance(error, falcon.HTTPRouteNotFound):
        return f"There is nothing at {shown(req.path)}; /openapi.json says what there is."
    if isinstance(error, falcon.HTTPMethodNotAllowed):
        return f"{req.method} is not possible here; these are: {dict(error.headers or {}).get('Allow', 'none')}."
    return error.title or "The request failed."


def handle_unknown(req: falcon.Request, resp: falcon.Response, error: Exception, _params: Any) -> None:
    LOG.error("%s %s failed", req.method, req.path, exc_info=error)
    resp.status = 500
    _write(resp, body("HTTPInternalServerError", _FAILED.format(request_id=getattr(req.context, "request_id", "-"))))


def _detail(error: LBaaSError) -> str:
    """Why each device was refused; only what administrators get has it (see plugins.loadbalancer.placing)."""
    trail = error.details.get("trail") if isinstance(error, errors.NoValidDevice) else None
    return json.dumps(trail) if trail else ""


def _write(resp: falcon.Response, data: bytes) -> None:
    resp.data = data
    resp.content_type = falcon.MEDIA_JSON
