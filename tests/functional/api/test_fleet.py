"""The fleet at a glance: the document and, in a real browser, the page."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest
import sqlalchemy as sa
from cheroot.wsgi import Server
from oslo_utils import uuidutils

from lbaas_scheduler.db import models
from lbaas_scheduler.domain.statuses import DeviceStatus
from tests.database import counted
from tests.functional.api.house import ADMIN, ANNE, READER, House
from tests.rig import browser as rig_browser
from tests.rig.browser import Browser
from tests.rig.fixtures import require

OVERVIEW = "/v2.0/fleet-overview"
TILES = "[...document.querySelectorAll('.tile')]"


pytestmark = pytest.mark.xdist_group("fleet-page")  # one browser


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    require("chromium", rig_browser.missing())
    with Browser(tmp_path_factory.mktemp("profile")) as found:
        yield found


@pytest.fixture
def url(house: House) -> Iterator[str]:
    """Where the house's application is served."""
    server = Server(("127.0.0.1", 0), house.app, numthreads=4, timeout=2, shutdown_timeout=1)
    server.prepare()
    thread = threading.Thread(target=server.serve, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.bind_addr[1]}"
    server.stop()
    thread.join(10)


def _device(house: House, name: str, **attributes: Any) -> dict[str, Any]:
    return house.create("/v2.0/devices", "device", {"name": name, "device_type": "fake", **attributes}, ADMIN)


def _five_states(house: House) -> None:
    """Beside the house's ``box``, which is open: one that is full, one that drains, one disabled, one offline."""
    _device(house, "brim", zone="rack1", capacity={"VIPS": 0})
    _device(house, "ebb", zone="rack1", admin_state="draining")
    _device(house, "rest", zone="rack2", admin_state="disabled")
    lost = _device(house, "lost", zone="rack2")
    house.plant.parts.registry.set_status(lost["id"], DeviceStatus.OFFLINE, "no route to host")


def _multiply(house: House, count: int) -> None:
    """So many devices like the house's, in four zones: by SQL, since registering them takes longer than all else here."""
    tables = (models.devices, models.device_load, models.device_agents)
    with house.database.engine.begin() as conn:
        device, load, driver = (dict(conn.execute(sa.select(table)).mappings().one()) for table in tables)
        del load["seq"]
        ids = [uuidutils.generate_uuid() for _ in range(count)]
        conn.execute(
            sa.insert(models.devices),
            [{**device, "id": id_, "name": f"lb-{n:03}", "zone": f"rack{n % 4}"} for n, id_ in enumerate(ids)],
        )
        for table, row in ((models.device_load, load), (models.device_agents, driver)):
            conn.execute(sa.insert(table), [{**row, "device_id": id_} for id_ in ids])


def _fleet(house: House) -> dict[str, Any]:
    answer = house.get(OVERVIEW, ADMIN)
    assert answer.status_code == 200, answer.text
    return answer.json["fleet"]


def _open(browser: Browser, url: str) -> None:
    # The page before has lost its server, and may say so until it is gone.
    browser.open("about:blank", "location.href === 'about:blank'")
    browser.complaints.clear()
    browser.open(f"{url}/fleet", f"location.href.startsWith('{url}') && document.documentElement?.dataset.ready === 'yes'")


def test_the_document_says_of_each_device_how_full_it_is_and_what_keeps_it_from_taking_more(house: House) -> None:
    _five_states(house)
    vip = house.vip()
    fleet = _fleet(house)
    assert {it["name"]: it["state"] for it in fleet["devices"]} == {
        "box": "open",
        "brim": "full",
        "ebb": "draining",
        "rest": "disabled",
        "lost": "offline",
    }
    box = next(it for it in fleet["devices"] if it["name"] == "box")
    assert (box["vips"]["used"], box["agent"]) == (1, "agent-1")
    assert [(it["host"], it["state"], it["devices"]) for it in fleet["agents"]] == [("agent-1", "alive", 5)]
    (placement,) = fleet["placements"]
    assert (placement["resource_id"], placement["device_name"]) == (vip["id"], "box")
    assert "least_loaded took box" in placement["why"]
    assert fleet["unapplied"] == {"count": 0, "oldest": []}
    assert fleet["vips"] == {"ACTIVE": 1}


def test_what_no_agent_has_confirmed_is_listed_with_its_error(house: House) -> None:
    house.agents.error = "the disk is full"
    vip = house.vip(name="stuck")
    unapplied = _fleet(house)["unapplied"]
    assert unapplied["count"] == 1
    (row,) = unapplied["oldest"]
    assert (row["name"], row["resource_id"], row["device_name"], row["operation"]) == ("stuck", vip["id"], "box", "apply")
    assert row["error"] == "the disk is full"


def test_a_decision_of_a_newer_server_is_shown_as_far_as_it_is_understood(house: House) -> None:
    vip = house.vip()
    there = models.placements.c.resource_id == vip["id"]

    def work(conn: sa.Connection) -> None:
        trail = conn.execute(sa.select(models.placements.c.trail).where(there)).scalar_one()
        considered = [{**it, "colour": "red"} for it in trail["considered"]]
        refused = [{"device_id": "d", "device_name": "d", "code": "zone", "reason": "r", "colour": "red"}]
        new = {**trail, "considered": considered, "rejections": refused, "colour": "red"}
        conn.execute(sa.update(models.placements).where(there).values(trail=new))

    house.database.write(work)
    (placement,) = _fleet(house)["placements"]
    assert "least_loaded took box" in placement["why"]


def test_only_administrators_see_it(house: House) -> None:
    for path in ("/fleet", OVERVIEW):
        assert house.get(path, ADMIN).status_code == 200, path
        for who in (ANNE, READER):
            assert house.get(path, who).status_code == 403, path


def test_the_page_needs_nothing_from_elsewhere(house: House) -> None:
    page = house.get("/fleet", ADMIN)
    assert page.headers["content-type"].startswith("text/html")
    for word in ("http://", "https://", "@import", "<script src", '<link rel="stylesheet"'):
        assert word not in page.text


def test_the_number_of_statements_does_not_depend_on_the_size_of_the_fleet(house: House) -> None:
    def statements() -> int:
        with counted(house.database) as seen:
            _fleet(house)
        return len(seen)

    house.vip()
    few = statements()
    _multiply(house, 500)
    house.vip()
    assert len(_fleet(house)["devices"]) == 501
    assert statements() == few <= 10


def test_the_page_shows_each_device_in_its_zone_with_its_state(house: House, url: str, browser: Browser) -> None:
    _five_states(house)
    house.vip(name="front door")
    house.agents.error = "the disk is full"
    house.vip(name="stuck")
    _open(browser, url)
    labels = browser.evaluate(f"{TILES}.map((it) => it.getAttribute('aria-label'))")
    assert [label.split(", ")[:2] for label in labels] == [
        ["box", "open"],
        ["brim", "full"],
        ["ebb", "draining"],
        ["lost", "offline"],
        ["rest", "disabled"],
    ]
    headings = browser.evaluate("[...document.querySelectorAll('#zones h3')].map((it) => it.textContent)")
    assert headings == ["no zone · fake · 1", "rack1 · fake · 2", "rack2 · fake · 2"]
    text = browser.evaluate("document.body.innerText")
    for expected in ("agent-1", "the disk is full", "front door → box", "least_loaded took box"):
        assert expected in text
    assert browser.complaints == []


def test_the_filter_narrows_everything_and_escape_widens_it_again(house: House, url: str, browser: Browser) -> None:
    _five_states(house)
    _open(browser, url)
    browser.press("/")
    assert browser.evaluate("document.activeElement.id") == "filter"
    browser.type("rack2 offline")
    assert browser.evaluate(f"{TILES}.map((it) => it.title)") == ["lost"]
    assert browser.evaluate("document.getElementById('devices-title').textContent") == "Devices (1 of 5)"
    browser.press("Escape")
    assert browser.evaluate(f"{TILES}.length") == 5
    browser.evaluate("document.querySelector('[data-state=draining]').click()")
    assert browser.evaluate(f"{TILES}.map((it) => it.title)") == ["ebb"]
    assert browser.complaints == []


def test_all_of_it_can_be_reached_by_keyboard(house: House, url: str, browser: Browser) -> None:
    _five_states(house)
    _open(browser, url)
    browser.evaluate("document.getElementById('pause').focus()")
    browser.press("Tab")
    assert browser.evaluate("document.activeElement.title") == "box"
    browser.press("ArrowDown")
    assert browser.evaluate("document.activeElement.title") == "brim"
    browser.press("ArrowRight")
    assert browser.evaluate("document.activeElement.title") == "ebb"
    browser.press("End")
    assert browser.evaluate("document.activeElement.title") == "rest"
    browser.press("ArrowUp")
    browser.press("Home")
    browser.press("Enter")
    browser.wait_for("document.getElementById('details').open")
    assert "box" in browser.evaluate("document.getElementById('details').innerText")
    browser.press("Escape")
    browser.wait_for("!document.getElementById('details').open")
    assert browser.evaluate("document.activeElement.title") == "box"
    assert browser.complaints == []


def test_the_page_refreshes_itself_and_says_when_there_is_no_news(house: House, url: str, browser: Browser) -> None:
    _open(browser, url)
    _device(house, "newcomer")
    browser.wait_for(f"{TILES}.some((it) => it.title === 'newcomer')", 20)
    assert browser.complaints == []
    browser.evaluate("window.fetch = () => Promise.reject(new Error('the wire is cut'))")
    browser.wait_for("!document.getElementById('problem').hidden", 20)
    assert "the wire is cut" in browser.evaluate("document.getElementById('problem').innerText")
    assert browser.evaluate(f"{TILES}.length") == 2


def test_names_are_shown_as_text_whatever_they_are(house: House, url: str, browser: Browser) -> None:
    name = "<img src=x onerror=\"document.title='owned'\">"
    _device(house, name)
    house.vip(name=name)
    _open(browser, url)
    assert name in browser.evaluate("document.body.innerText")
    assert browser.evaluate("document.title") == "Fleet"
    assert browser.complaints == []


def test_a_fleet_of_500_fits_on_few_screens(house: House, url: str, browser: Browser) -> None:
    _multiply(house, 500)
    _open(browser, url)
    assert browser.evaluate(f"{TILES}.length") == 501
    assert browser.evaluate("document.getElementById('devices').classList.contains('many')")
    assert browser.evaluate("document.getElementById('zones').getBoundingClientRect().height / innerHeight") < 4
    assert browser.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert browser.complaints == []
