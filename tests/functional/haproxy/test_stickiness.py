"""Clients stay with their members over reloads, whatever their cookies are and however many they are."""

from __future__ import annotations

import hashlib
import logging
from dataclasses import replace
from pathlib import Path

import pytest

from lbaas_scheduler.domain.loadbalancers import Persistence, SessionPersistence, Vip
from lbaas_scheduler.vendors.haproxy import stickiness
from lbaas_scheduler.vendors.haproxy.runtime import Runtime, ServerState
from tests.functional.haproxy.backends import Backend
from tests.functional.haproxy.lab import Lab, request, spread

MANY = 25_000
ODD = [
    "a=b=c==",
    "%41%zz%",
    "a|b*c@d!e#f$g&h'i(j)k+l-m.n/o:p<q>r?s[t]u^v_w`x{y}z~",
    "x" * 127,
    "x" * 128,
    *("x" * 200 + end for end in "abcdef"),
    "eyJhbGciOiJIUzI1NiJ9." + "e" * 3000,
]
"""Values of cookies as RFC 6265 allows them; some differ only beyond what a table's key can hold."""


@pytest.fixture
def sticky(web: Vip) -> Vip:
    return replace(web, session_persistence=SessionPersistence(Persistence.APP_COOKIE, "SID"))


def cookie(value: str) -> dict[str, str]:
    return {"Cookie": f"first=1; SID={value}; last=2"}


def login(vip: Vip, backends: list[Backend], value: str) -> str:
    """A member gives this cookie to a new client. Returns which one."""
    for backend in backends:
        backend.headers = {"Set-Cookie": f"SID={value}; Path=/"}
    _, member, _ = request(vip)
    for backend in backends:
        backend.headers = {}
    return member


def keys(lab: Lab, vip: Vip) -> int:
    header = lab.runtime.ask(f"@1 show table {vip.id}.{vip.pool.id}").partition("\n")[0]
    return int(header.rpartition("used:")[2])


def test_each_legal_value_has_a_member_of_its_own_before_and_after_a_reload(
    lab: Lab, sticky: Vip, backends: list[Backend]
) -> None:
    lab.serve(sticky)
    members = {value: login(sticky, backends, value) for value in ODD}
    assert len(set(members.values())) == 2
    for limit in (0, 7, 8):
        if limit:
            lab.serve(replace(sticky, connection_limit=limit))
        assert {value: set(spread(sticky, 3, cookie(value))) for value in ODD} == {key: {it} for key, it in members.items()}


def test_tens_of_thousands_of_clients_keep_their_members(lab: Lab, sticky: Vip, caplog: pytest.LogCaptureFixture) -> None:
    lab.serve(sticky)
    ids = {member.id: number for number, member in enumerate(sticky.pool.members, 1)}
    table = f"{sticky.id}.{sticky.pool.id}"
    values = [f"client-{number}" for number in range(MANY)]
    hashes = [hashlib.sha256(value.encode()).hexdigest().upper() for value in values]
    filled = [f"set table {table} key {key} data.server_id {1 + number % 2}" for number, key in enumerate(hashes)]
    assert lab.runtime.fill(filled) == 0
    assert keys(lab, sticky) == MANY
    with caplog.at_level(logging.WARNING):
        lab.serve(replace(sticky, connection_limit=99))
    assert "lost" not in caplog.text
    assert keys(lab, sticky) == MANY
    for number in (0, 1, MANY // 2, MANY - 2, MANY - 1):
        (member,) = spread(replace(sticky, connection_limit=99), 2, cookie(values[number]))
        assert ids[member] == 1 + number % 2


def test_clients_that_are_lost_are_counted_in_the_log(
    lab: Lab, sticky: Vip, backends: list[Backend], caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab.serve(sticky)
    for number in range(5):
        login(sticky, backends, f"client-{number}")
    monkeypatch.setattr(stickiness, "MAX_CLIENTS", 2)
    with caplog.at_level(logging.WARNING):
        lab.serve(replace(sticky, connection_limit=99))
    assert "3 client(s) lost their member at the reload" in caplog.text


def test_values_that_an_older_version_kept_are_hashed_on_the_way() -> None:
    class Old(Runtime):
        def ask(self, command: str) -> str:
            assert command == "@1 show table b"
            return "# table: b, type: string, size:102400, used:3\n" + "".join(
                f"0x55: key={key} use=0 exp=1000 server_id=1 server_key=-\n" for key in ("deadbeef", "A" * 64, "x" * 127)
            )

    server = ServerState({"be_name": "b", "srv_id": "1", "srv_name": "m"})
    tables = stickiness.read(Old(Path("/nowhere"), 1), ["b"], [server])
    assert {client.key for client in tables.clients} == {hashlib.sha256(b"deadbeef").hexdigest().upper(), "A" * 64}
    assert tables.lost == 1
