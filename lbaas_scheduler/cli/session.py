"""Where the server is, and how to prove who calls."""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from keystoneauth1 import noauth
from keystoneauth1.adapter import Adapter
from keystoneauth1.session import Session

from lbaas_scheduler.cli.client import Client
from lbaas_scheduler.cli.problems import Problem

if TYPE_CHECKING:
    from requests import Response

USER_AGENT = "lbaas-scheduler"
TIMEOUT_SECONDS = 60

SERVICE_TYPE = "load-balancing"
"""Under which a catalogue names the REST API, unless told otherwise: ``network`` is Neutron's."""


def add_options(parser: argparse.ArgumentParser, environment: Mapping[str, str]) -> None:
    """The options that every command has."""
    group = parser.add_argument_group("where the server is, and who calls")
    group.add_argument(
        "--endpoint",
        metavar="URL",
        default=environment.get("LBAAS_ENDPOINT", ""),
        help="a server that asks for no credentials, like http://127.0.0.1:9696 (LBAAS_ENDPOINT)",
    )
    group.add_argument(
        "--as-project",
        metavar="ID",
        default=environment.get("LBAAS_PROJECT", ""),
        help="with --endpoint: act as a member of this project instead of as an administrator (LBAAS_PROJECT)",
    )
    group.add_argument("--os-cloud", metavar="NAME", default=environment.get("OS_CLOUD", ""), help="of clouds.yaml (OS_CLOUD)")
    group.add_argument(
        "--os-service-type",
        metavar="TYPE",
        default=environment.get("OS_SERVICE_TYPE", SERVICE_TYPE),
        help="under which Keystone's catalogue names the server (OS_SERVICE_TYPE; default: %(default)s)",
    )


def connect(options: argparse.Namespace, environment: Mapping[str, str]) -> Client:
    """Nothing is sent before the first request.

    :raises Problem: nothing says where the server is, or what says it is wrong.
    """
    if options.endpoint:
        return Client(_trusted(options.endpoint, options.as_project))
    if not options.os_cloud and not any(name.startswith("OS_") for name in environment):
        raise Problem(
            "Where is the server? Give --endpoint http://HOST:PORT (LBAAS_ENDPOINT) for one without authentication, or name a "
            "cloud of clouds.yaml with --os-cloud (OS_CLOUD), or set OS_AUTH_URL, OS_USERNAME, OS_PASSWORD and OS_PROJECT_NAME."
        )
    return Client(_authenticated(options.os_cloud, options.os_service_type))


def _trusted(endpoint: str, project_id: str) -> Adapter:
    parts = urlsplit(endpoint)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise Problem(f"{endpoint!r} is no URL of a server; give one like http://127.0.0.1:9696.")
    headers = {"X-Project-Id": project_id, "X-User-Id": project_id, "X-Roles": "member"} if project_id else {}
    session = Session(auth=noauth.NoAuth(), user_agent=USER_AGENT, timeout=TIMEOUT_SECONDS)
    return Adapter(session, endpoint_override=_root(endpoint), additional_headers=headers, connect_retries=0)


def _authenticated(cloud: str, service_type: str) -> Adapter:
    # It takes longer to import than all else together, and only this needs it.
    clouds = importlib.import_module("lbaas_scheduler.cli.clouds")
    session, region, interface, override = clouds.session(cloud, USER_AGENT, TIMEOUT_SECONDS)
    return _Rooted(
        session,
        service_type=service_type,
        region_name=region,
        interface=interface,
        endpoint_override=_root(override) if override else None,
        connect_retries=0,
    )


class _Rooted(Adapter):
    """Catalogues name the API with its version or without; our paths have it."""

    def request(self, url: str, method: str, **words: Any) -> Response:
        if self.endpoint_override is None:
            found = self.get_endpoint()
            self.endpoint_override = _root(found) if found else None
        return super().request(url, method, **words)


def _root(endpoint: str) -> str:
    return endpoint.rstrip("/").removesuffix("/v2.0").rstrip("/")
