"""Who calls: from headers to a context, and the policy that judges it."""

from __future__ import annotations

import logging
import re
import time
from typing import Any, Protocol

import falcon
from oslo_config import cfg
from oslo_context.context import RequestContext
from oslo_policy import policy

from lbaas_scheduler.api import policies
from lbaas_scheduler.api.policies import base
from lbaas_scheduler.conf.api import KEYSTONE
from lbaas_scheduler.errors import ConfigurationError, NotAuthorized

LOG = logging.getLogger(__name__)

IDENTITY_HEADERS = ("HTTP_X_PROJECT_ID", "HTTP_X_TENANT_ID", "HTTP_X_USER_ID", "HTTP_X_ROLES")

VERDICTS_SECONDS = 2.0
"""For how long a verdict on the same caller holds. oslo.policy looks at its files with each question, which takes as long as some
statements; an operator's change counts after so long."""

_REQUEST_ID = re.compile(r"req-[0-9a-fA-F-]{8,64}")


class Policies:
    """Our rules with the operator's changes, as ``[oslo_policy] policy_file`` has them."""

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        self._enforcer = policy.Enforcer(conf)
        self._enforcer.register_defaults(policies.list_rules())
        self._verdicts: dict[tuple[Any, ...], bool] = {}
        self._valid_until = 0.0
        try:
            self._enforcer.load_rules()
        except (policy.InvalidDefinitionError, policy.InvalidRuleDefault, ValueError, OSError) as error:
            raise ConfigurationError(reason=f"[oslo_policy] policy_file: {error}") from error

    def is_admin(self, context: RequestContext) -> bool:
        return self._allows(base.ADMIN_RULE, context)

    def check(self, rule: str, context: RequestContext) -> None:
        """:raises NotAuthorized: the policy does not let the caller do this at all, whoever's the object is."""
        if not self._allows(rule, context):
            raise NotAuthorized(reason=f"policy rule '{rule}' does not let you do this")

    def _allows(self, rule: str, context: RequestContext) -> bool:
        values = context.to_policy_values()
        question = (rule, *(tuple(it) if isinstance(it, list) else it for it in values.values()))
        now = time.monotonic()
        if now >= self._valid_until:
            self._verdicts, self._valid_until = {}, now + VERDICTS_SECONDS
        verdicts = self._verdicts
        if question not in verdicts:
            target = {"project_id": context.project_id, "tenant_id": context.project_id}
            verdicts[question] = bool(self._enforcer.authorize(rule, target, values))
        return verdicts[question]


class Identities(Protocol):
    """A way to tell who calls."""

    def identify(self, environ: dict[str, Any], **request_ids: Any) -> RequestContext | None:
        """None: nobody whom we know."""


class FromKeystone:
    """keystonemiddleware has checked the token and set the headers; those that a client sent it has removed."""

    def identify(self, environ: dict[str, Any], **request_ids: Any) -> RequestContext | None:
        if environ.get("HTTP_X_IDENTITY_STATUS") != "Confirmed":
            return None
        # A service that speaks for a user and cannot say who it is, is none.
        if environ.get("HTTP_X_SERVICE_IDENTITY_STATUS", "Confirmed") != "Confirmed":
            return None
        return RequestContext.from_environ(environ, **request_ids)


class FromHeaders:
    """The headers are believed.

    :param project_id: of requests without any identity header, which come from an administrator.
    """

    def __init__(self, project_id: str) -> None:
        self._project_id = project_id

    def identify(self, environ: dict[str, Any], **request_ids: Any) -> RequestContext | None:
        if not any(environ.get(name) for name in IDENTITY_HEADERS):
            return RequestContext(project_id=self._project_id, user_id="admin", roles=["admin"], **request_ids)
        context = RequestContext.from_environ(environ, **request_ids)
        if not context.roles:
            context.roles = ["member"]
        return context


def identities(conf: cfg.ConfigOpts) -> Identities:
    if conf.api.auth_strategy == KEYSTONE:
        return FromKeystone()
    return FromHeaders(conf.api.noauth_project_id)


class Callers:
    """Falcon middleware: gives each request an id and, if we know who calls, ``req.context.caller``."""

    def __init__(self, known: Identities, rules: Policies) -> None:
        self._identities = known
        self._policies = rules

    def process_request(self, req: falcon.Request, resp: falcon.Response) -> None:
        given = req.get_header("X-OpenStack-Request-ID") or ""
        above = given if _REQUEST_ID.fullmatch(given) else None
        context = self._identities.identify(req.env, global_request_id=above)
        if context is not None:
            context.is_admin = self._policies.is_admin(context)
        req.context.caller = context
        req.context.request_id = context.request_id if context is not None else RequestContext(overwrite=False).request_id
        resp.set_header("X-OpenStack-Request-ID", req.context.request_id)
