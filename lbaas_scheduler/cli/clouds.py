"""Credentials out of ``OS_*`` variables and clouds.yaml, as all OpenStack clients read them."""

from __future__ import annotations

from keystoneauth1 import exceptions
from keystoneauth1.session import Session
from openstack.config import OpenStackConfig
from openstack.exceptions import SDKException

from lbaas_scheduler.cli.problems import Problem

Found = tuple[Session, str | None, str | list[str] | None, str | None]
"""A session, the region, the interface or several that will do, and the endpoint instead of the catalogue's. None = not set."""


def session(cloud: str, user_agent: str, timeout_seconds: int) -> Found:
    """How to reach the server.

    :param cloud: its name in clouds.yaml; "" = what the environment says.
    :raises Problem: what they say is missing, incomplete or wrong.
    """
    try:
        found = OpenStackConfig().get_one(cloud=cloud or None)
        made = found.get_session()
    except (SDKException, exceptions.ClientException, ValueError, TypeError) as error:
        raise Problem(f"The credentials are incomplete or wrong: {error} Check clouds.yaml and the OS_* variables.") from error
    made.user_agent = user_agent
    made.timeout = timeout_seconds
    override = found.config.get("endpoint_override") or found.config.get("endpoint")
    return made, found.region_name or None, found.get_interface(), override
