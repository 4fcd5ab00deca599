"""What a file's first line tells."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lbaas_scheduler.domain.deployments import Version
from lbaas_scheduler.domain.loadbalancers import Persistence, SessionPersistence, Vip
from lbaas_scheduler.vendors.haproxy import marker
from lbaas_scheduler.vendors.haproxy.render import render_vip
from tests.unit.vendors.haproxy.documents import MEMBERS, MONITOR, deployment, vip

PLAIN = vip(pool={"health_monitors": (MONITOR,)}, session_persistence=SessionPersistence(Persistence.HTTP_COOKIE))


def members(**changes: object) -> Vip:
    return replace(PLAIN, pool=replace(PLAIN.pool, members=(replace(MEMBERS[0], **changes), MEMBERS[1])))


def mark(document: Vip, epoch: int = 1, revision: int = 1) -> marker.Marker:
    return render_vip(deployment(document, epoch, revision)).marker


def test_a_marker_is_read_back_as_it_was_written() -> None:
    rendered = render_vip(deployment(PLAIN, 3, 14))
    assert marker.split(rendered.text) == (rendered.marker, rendered.body)
    assert rendered.marker.version == Version(3, 14)
    assert rendered.marker.bind == "192.0.2.10:80"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "global\n",
        "# a comment\n",
        "# lbaas-scheduler\n",
        "# lbaas-scheduler {}\n",
        "# lbaas-scheduler []\n",
        "# lbaas-scheduler {\n",
    ],
)
def test_a_file_of_somebody_else_has_no_marker(text: str) -> None:
    assert marker.split(text) == (None, text)


def test_the_digest_knows_nothing_of_versions() -> None:
    assert mark(PLAIN, 1, 1).digest == mark(PLAIN, 2, 5).digest


@pytest.mark.parametrize(
    "document",
    [members(weight=77), members(admin_state_up=False), replace(PLAIN, pool=replace(PLAIN.pool, admin_state_up=False))],
)
def test_weights_and_maintenance_change_the_digest_but_not_the_structure(document: Vip) -> None:
    assert mark(document).digest != mark(PLAIN).digest
    assert mark(document).structure == mark(PLAIN).structure


@pytest.mark.parametrize(
    "document",
    [
        members(protocol_port=8081),
        members(id="m3"),
        replace(PLAIN, connection_limit=3),
        replace(PLAIN, session_persistence=None),
        replace(PLAIN, pool=replace(PLAIN.pool, health_monitors=())),
    ],
)
def test_everything_else_changes_the_structure(document: Vip) -> None:
    assert mark(document).structure != mark(PLAIN).structure
