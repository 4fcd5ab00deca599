"""Tokens: keystonemiddleware around the application. It comes with the extra ``keystone``."""

from __future__ import annotations

import importlib
import threading
from collections.abc import Callable
from typing import Any

from oslo_config import cfg

from lbaas_scheduler.errors import ConfigurationError

GROUP = "keystone_authtoken"

AWAY = "lbaas_scheduler.keystone_away"
"""Of the WSGI environment: the request has a token, and nobody could say whether it is good."""


def protected(conf: cfg.ConfigOpts, app: Callable[..., Any]) -> Callable[..., Any]:
    """``app`` behind the check of tokens. Requests without a valid one come through unnamed: what is for everybody needs none.

    :raises ConfigurationError: the middleware is not installed, or ``[keystone_authtoken]`` does not say how to reach Keystone.
    """
    try:
        middleware = importlib.import_module("keystonemiddleware.auth_token")
    except ImportError as error:
        raise ConfigurationError(
            reason="[api] auth_strategy is keystone, and keystonemiddleware is not installed; install it with: "
            "pip install 'lbaas-scheduler[keystone]', or set [api] auth_strategy to noauth where everybody who reaches "
            "the port is trusted"
        ) from error
    try:
        checked: Callable[..., Any] = _patient(middleware)(app, {"oslo_config_config": conf, "delay_auth_decision": True})
    except Exception as error:
        raise ConfigurationError(reason=f"[{GROUP}]: {error}") from error
    if not conf[GROUP].auth_type:
        raise ConfigurationError(
            reason=f"[api] auth_strategy is keystone, and [{GROUP}] does not say how to reach it: set auth_type (password), "
            "auth_url, username, password and project_name there, or set [api] auth_strategy to noauth"
        )
    return checked


def _patient(middleware: Any) -> Any:
    """``AuthProtocol``, told apart: where decisions are delayed, it takes a Keystone that is away for a bad token, and a client
    that is told so throws a good one away."""
    errors = importlib.import_module("keystoneauth1.exceptions")
    own = importlib.import_module("keystonemiddleware.auth_token._exceptions")
    outages = (errors.ConnectFailure, errors.DiscoveryFailure, errors.RequestTimeout, own.ServiceError)
    noted = threading.local()

    class Patient(middleware.AuthProtocol):  # type: ignore[misc]
        def process_request(self, request: Any) -> Any:
            noted.away = False
            answer = super().process_request(request)
            request.environ[AWAY] = noted.away
            return answer

        def fetch_token(self, *arguments: Any, **words: Any) -> Any:
            try:
                return super().fetch_token(*arguments, **words)
            except own.InvalidToken as error:
                noted.away = noted.away or isinstance(error.__context__, outages)
                raise

    return Patient
