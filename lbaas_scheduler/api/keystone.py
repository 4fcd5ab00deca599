"""Tokens: keystonemiddleware around the application. It comes with the extra ``keystone``."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from oslo_config import cfg

from lbaas_scheduler.errors import ConfigurationError

GROUP = "keystone_authtoken"


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
        checked: Callable[..., Any] = middleware.AuthProtocol(app, {"oslo_config_config": conf, "delay_auth_decision": True})
    except Exception as error:
        raise ConfigurationError(reason=f"[{GROUP}]: {error}") from error
    if not conf[GROUP].auth_type:
        raise ConfigurationError(
            reason=f"[api] auth_strategy is keystone, and [{GROUP}] does not say how to reach it: set auth_type (password), "
            "auth_url, username, password and project_name there, or set [api] auth_strategy to noauth"
        )
    return checked
