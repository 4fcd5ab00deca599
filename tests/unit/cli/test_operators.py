"""What operators' commands send, and what they make of the answers."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from lbaas_scheduler.cli.shell import Shell
from tests.command_line import Cli
from tests.unit.cli.conftest import DEVICE_ID, RULE_ID, VIP_ID, Answer, TableServer

DEVICE = f"/v2.0/devices/{DEVICE_ID}"
VIP = f"/v2.0/lb/vips/{VIP_ID}"
RULE = f"/v2.0/placement-rules/{RULE_ID}"
ROOT = Path(__file__).parents[3]

EVACUATION = {"evacuation": {"device_id": DEVICE_ID, "state": "running", "left": 3}}
BREAKER = {"breaker": {"frozen": True, "kinds": [{"kind": "devices", "lost": 5}]}}


@pytest.mark.parametrize(
    ("words", "asked", "answer", "shown"),
    [
        ("breaker show", ("GET", "/v2.0/breaker", None), BREAKER, BREAKER["breaker"]),
        ("breaker reset", ("POST", "/v2.0/breaker/reset", None), BREAKER, BREAKER["breaker"]),
        ("device evacuation show box", ("GET", f"{DEVICE}/evacuation", None), EVACUATION, EVACUATION["evacuation"]),
        ("device evacuation cancel box", ("DELETE", f"{DEVICE}/evacuation", None), EVACUATION, EVACUATION["evacuation"]),
        ("device evacuate box", ("POST", f"{DEVICE}/evacuate", None), EVACUATION, EVACUATION["evacuation"]),
        ("device health box", ("GET", f"{DEVICE}/health", None), {"health": {"failures": 2}}, {"failures": 2}),
        ("move show web", ("GET", f"/v2.0/moves/{VIP_ID}", None), {"move": {"state": "failed"}}, {"state": "failed"}),
        (
            "vip explain web",
            ("GET", f"{VIP}/explain", None),
            {"explanation": {"why": "It was empty.", "stages": [{"stage": "rank", "said": "box first."}]}},
            {"why": "It was empty.", "stage.rank": "box first."},
        ),
        (
            "vip reset-status web",
            ("POST", f"{VIP}/reset-status", None),
            {"vip": {"id": VIP_ID, "status": "PENDING_UPDATE"}},
            None,
        ),
        ("placement-rule show first", ("GET", RULE, None), {"placement_rule": {"name": "first"}}, {"name": "first"}),
        (
            "placement-rule create first --match tenant_id=anne --match protocol_port=8000-8999 --wish zone=a "
            '--wish required=["PROTOCOL_HTTP"] --position 3 --disable',
            (
                "POST",
                "/v2.0/placement-rules",
                {
                    "placement_rule": {
                        "name": "first",
                        "match": {"tenant_id": "anne", "protocol_port": "8000-8999"},
                        "wishes": {"zone": "a", "required": ["PROTOCOL_HTTP"]},
                        "position": 3,
                        "enabled": False,
                    }
                },
            ),
            {"placement_rule": {"name": "first"}},
            None,
        ),
        (
            "placement-rule set first --match-everything --enable",
            ("PUT", RULE, {"placement_rule": {"match": None, "enabled": True}}),
            {"placement_rule": {"name": "first"}},
            None,
        ),
    ],
)
def test_a_command_asks_for_what_it_says_and_shows_the_answer(
    cli: Cli, server: TableServer, words: str, asked: tuple[str, str, Any], answer: Any, shown: Any
) -> None:
    server.answers[asked[:2]] = answer
    found = cli.json(*words.split())
    assert server.told() == [asked]
    if shown is not None:
        assert found == shown


def test_moves_are_listed_page_by_page_and_narrowed(cli: Cli, server: TableServer) -> None:
    moves = [{"resource_id": f"v{number}", "state": "done", "error": ""} for number in range(3)]
    following = [{"rel": "next", "href": "http://elsewhere/v2.0/moves?limit=2&marker=v1"}]
    server.answers["GET", "/v2.0/moves"] = [{"moves": moves[:2], "moves_links": following}, {"moves": moves[2:]}]
    found = cli.json("move", "list", "--device", "box", "--state", "done")
    assert [it["resource_id"] for it in found] == ["v0", "v1", "v2"]
    (first, second) = [params for _, path, _, params in server.asked if path == "/v2.0/moves"]
    assert (first["device_id"], first["state"]) == ([DEVICE_ID], ["done"])
    assert second["marker"] == "v1"


def test_a_rule_needs_a_wish_and_what_it_lacks_is_named(cli: Cli, server: TableServer) -> None:
    code, _, err = cli.call("placement-rule", "create", "first")
    assert (code, server.asked) == (2, [])
    assert "the following arguments are required: --wish" in err
    code, _, err = cli.call("placement-rule", "create", "first", "--wish", "zone")
    assert code == 2
    assert "not of the form KEY=VALUE" in err


def test_a_reset_is_waited_for_whatever_comes_of_it(cli: Cli, server: TableServer) -> None:
    server.answers["POST", f"{VIP}/reset-status"] = {"vip": {"id": VIP_ID, "status": "PENDING_UPDATE"}}
    server.answers["GET", VIP] = {"vip": {"id": VIP_ID, "status": "ACTIVE"}}
    assert cli.json("vip", "reset-status", "web", "--wait")["status"] == "ACTIVE"
    server.answers["GET", VIP] = {"vip": {"id": VIP_ID, "status": "ERROR", "status_description": "Bees."}}
    code, _, err = cli.call("vip", "reset-status", "web", "--wait")
    assert code == 1
    assert "Bees." in err
    server.answers["POST", f"{VIP}/reset-status"] = {"vip": {"id": VIP_ID, "status": "PENDING_DELETE"}}
    server.answers["GET", VIP] = Answer(404, {"NeutronError": {"type": "VipNotFound", "message": "gone", "detail": ""}})
    assert cli.json("vip", "reset-status", "web", "--wait")["status"] == "PENDING_DELETE"


@pytest.mark.parametrize(
    ("agent", "shown"),
    [({"id": "a", "host": "h1", "alive": True}, "h1"), ({"alive": True}, "alive"), ({"alive": False}, "down"), (None, None)],
)
def test_a_device_shows_its_agent_to_whoever_may_know_it(cli: Cli, server: TableServer, agent: Any, shown: Any) -> None:
    server.answers["GET", DEVICE] = {"device": {"id": DEVICE_ID, "agent": agent}}
    assert cli.json("device", "show", "box")["agent"] == shown


def test_the_page_of_the_command_line_names_every_command() -> None:
    page = (ROOT / "doc" / "source" / "cli.rst").read_text()
    usual = ("create", "list", "show", "set", "delete")
    for name, _ in Shell().command_manager:
        noun, _, verb = name.rpartition(" ")
        explained = re.search(rf"``{re.escape(name)}\b|``{re.escape(noun)} [^`]*``.*``{re.escape(verb)}\b", page)
        assert explained or (verb in usual and f"``{noun}``" in page) or name == "help", name
