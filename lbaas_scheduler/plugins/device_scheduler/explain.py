"""Says where a resource is, and why there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sqlalchemy.engine import Connection

from lbaas_scheduler.db import deployments, device_agents, devices, placements
from lbaas_scheduler.db.session import Database
from lbaas_scheduler.domain.trail import Trail
from lbaas_scheduler.errors import NotFound


def placement_of(database: Database, resource_id: str) -> dict[str, Any]:
    """The placement of a resource as administrators see it.

    ``agent_host`` is the agent that drives the device now (None: nobody does); ``epoch`` and ``revision`` are what is wanted on
    the device, ``applied_revision`` what it confirmed.

    :raises NotFound: the resource has no placement.
    """
    return database.read(lambda conn: _placement(conn, resource_id))


def explanation_of(database: Database, resource_id: str) -> dict[str, Any]:
    """Why a resource is where it is, in sentences: ``why`` in one, ``stages`` one for each step of the decision in their order,
    ``refused`` one for each device that the trail names.

    :raises NotFound: the resource has no placement.
    """
    placement = placement_of(database, resource_id)
    refused = [f"{it['device_name']} {it['reason']} ({it['code']})." for it in placement["trail"].get("rejections", ())]
    return {
        **{name: placement[name] for name in ("resource_id", "device_id", "device_name", "why")},
        "stages": [{"stage": stage, "said": said} for stage, said in _stages(placement)],
        "refused": refused,
    }


def _stages(placement: dict[str, Any]) -> Iterator[tuple[str, str]]:
    trail = Trail.from_document(placement["trail"])
    wanted = f"Tenancy {trail.tenancy or 'any'}, amounts {placement['amounts']}."
    yield "request", f"{wanted} {f'Placement rule {trail.rule!r} applied.' if trail.rule else 'No placement rule applied.'}"
    refused = f"refused: {trail.summary()}" if trail.dropped else "none of them was refused."
    yield "filter", f"{trail.examined} device(s) examined in {trail.rounds} round(s); {refused}"
    best = ", ".join(it.described(trail.measure) for it in trail.considered)
    yield "rank", f"{trail.algorithm or 'Nobody'} preferred, best first: {best or 'nothing that was written down'}."
    yield "claim", f"{placement['device_name']} had room and was taken, with a score of {placement['score']:g}."


def _placement(conn: Connection, resource_id: str) -> dict[str, Any]:
    placement = placements.get(conn, resource_id)
    if placement is None:
        raise NotFound(resource="Placement", id=resource_id)
    device = devices.by_ids(conn, [placement.device_id])[placement.device_id]
    binding = device_agents.by_devices(conn, [device.id]).get(device.id)
    deployment = deployments.get(conn, resource_id, device.id)
    return {
        "resource_id": resource_id,
        "service": placement.service,
        "service_type_id": placement.service_type_id,
        "device_id": device.id,
        "device_name": device.name,
        "device_type": device.device_type,
        "agent_host": binding.host if binding else None,
        "epoch": deployment.version.epoch if deployment else None,
        "revision": deployment.version.revision if deployment else None,
        "applied_revision": deployment.applied_revision if deployment else None,
        "score": placement.score,
        "amounts": dict(placement.amounts),
        "networks": list(placement.networks),
        "trail": dict(placement.trail),
        "why": Trail.from_document(placement.trail).why(device.id),
    }
