"""Whatever passes the renderer, HAProxy reads as it was meant."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from lbaas_scheduler.domain.loadbalancers import MonitorType, Persistence, SessionPersistence, Vip
from lbaas_scheduler.errors import DriverError
from lbaas_scheduler.sdk.conformance import documents
from lbaas_scheduler.sdk.conformance.documents import deployment, monitor, with_pool
from lbaas_scheduler.vendors.haproxy.render import render_vip
from tests.functional.haproxy.lab import Lab

ALPHABET = [chr(code) for code in range(128)] + ["\x85", "\u2028", "ä", "漢", "２"]
PRINTABLE = [chr(code) for code in range(33, 127)]


def texts(seed: int, prefix: str = "") -> list[str]:
    """Every character once, and random words: of anything, and of what is printable."""
    source = random.Random(seed)
    words_of = [source.choice((ALPHABET, PRINTABLE, PRINTABLE)) for _ in range(200)]
    return [prefix + one for one in ALPHABET] + [
        prefix + "".join(source.choices(letters, k=source.randint(1, 20))) for letters in words_of
    ]


def documents_with(vip: Vip, place: str) -> list[Vip]:
    if place == "cookie_name":
        persistences = [SessionPersistence(Persistence.APP_COOKIE, text) for text in texts(1)]
        return [replace(vip, id=documents.new_id(), session_persistence=one) for one in persistences]
    values = texts(2, "/" if place == "url_path" else "")
    vips = [replace(vip, id=documents.new_id()) for _ in values]
    return [
        with_pool(one, health_monitors=(monitor(MonitorType.HTTP, **{place: text}),))
        for one, text in zip(vips, values, strict=True)
    ]


@pytest.mark.parametrize("place", ["url_path", "http_method", "expected_codes", "cookie_name"])
def test_what_the_renderer_lets_through_haproxy_accepts(lab: Lab, web: Vip, place: str) -> None:
    lab.serve(web)
    node = lab.driver._nodes[lab.device.id][1]
    accepted = {}
    for vip in documents_with(web, place):
        try:
            rendered = render_vip(deployment(vip))
        except DriverError:
            continue
        if not rendered.errors:
            assert len(rendered.text.splitlines()) == rendered.text.count("\n")
            accepted[vip.id] = rendered.text
    assert len(accepted) >= {"url_path": 100, "http_method": 0, "expected_codes": 0, "cookie_name": 70}[place]
    with node.files.staged(node.files.base() or "", accepted) as stage:
        assert node.process.check(stage) is None
