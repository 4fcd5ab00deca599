"""The command line on a terminal: what moves there, how it ends, and that nothing of it gets into files."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from lbaas_scheduler.api.server import RestServer
from tests.functional.api.house import ADMIN, House
from tests.rig.ports import free_port
from tests.rig.waiting import wait_for

PROGRAM = str(Path(sys.executable).with_name("lbaas-scheduler"))
CONTROL = re.compile(r"\x1b(?:\[[0-9;?]*[A-Za-z]|\][^\x07]*\x07|[=>])")
LEAVES_SCREEN, SHOWS_CURSOR = "\x1b[?1049l", "\x1b[?25h"


class Terminal:
    """A program on a terminal of its own. ``seen``: all that it wrote there."""

    def __init__(self, words: tuple[str, ...], environment: Mapping[str, str], columns: int = 120) -> None:
        self.seen = ""
        self._own, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        # As its controlling terminal, which makes a signal of Ctrl-C; even where the tests run in the background of a shell,
        # whose children ignore that signal.
        command = ["setsid", "--ctty", "env", "--default-signal=INT", PROGRAM, *words]
        self._process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=dict(environment))
        os.close(theirs)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def shows(self, text: str) -> bool:
        return text in CONTROL.sub("", self.seen)

    def forget(self) -> None:
        self.seen = ""

    def press(self, keys: bytes) -> None:
        os.write(self._own, keys)

    def end(self) -> int:
        """:returns: its exit code, once all that it wrote was read."""
        code = self._process.wait(30)
        self._reader.join(10)
        return code

    def close(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait(10)
        self._reader.join(10)
        os.close(self._own)

    def _read(self) -> None:
        while True:
            try:
                data = os.read(self._own, 65536)
            except OSError:  # nobody has the other end open any more
                return
            if not data:
                return
            self.seen += data.decode("utf-8", "replace")


class Site:
    def __init__(self, house: House) -> None:
        self.house = house
        self._terminals: list[Terminal] = []
        # Not any: it comes back at the same one.
        house.conf.set_override("bind_port", free_port(), "api")
        self.serve()

    def serve(self) -> None:
        self._server = RestServer(self.house.conf, self.house.app)
        self._server.start()

    def fall_silent(self) -> None:
        self._server.stop()

    @property
    def environment(self) -> dict[str, str]:
        # COLUMNS, which a worker of pytest-xdist has, would count for more than the terminal's own width.
        strange = ("OS_", "LBAAS_", "NO_COLOR", "COLUMNS", "LINES")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(strange)}
        return {**kept, "LBAAS_ENDPOINT": self._server.url, "TERM": "xterm-256color", "LANG": "C.UTF-8"}

    def run(self, *words: str, columns: int = 120) -> Terminal:
        terminal = Terminal(words, self.environment, columns)
        self._terminals.append(terminal)
        return terminal

    def close(self) -> None:
        for terminal in self._terminals:
            terminal.close()
        self._server.stop()


@pytest.fixture
def site(sqlite_tables_url: str, tmp_path: Path) -> Iterator[Site]:
    house = House(sqlite_tables_url, tmp_path)
    house.furnish()
    made = Site(house)
    yield made
    made.close()
    house.close()


def test_a_watched_fleet_follows_what_happens_survives_an_outage_and_ends_with_ctrl_c(site: Site) -> None:
    house = site.house
    terminal = site.run("fleet", "--watch", "--interval", "0.1")
    wait_for(lambda: terminal.shows("box") and terminal.shows("open") and terminal.shows("0/∞"))
    house.vip()
    wait_for(lambda: terminal.shows("1/∞"))
    house.put(f"/v2.0/devices/{house.device['id']}", {"device": {"admin_state": "draining"}}, ADMIN)
    wait_for(lambda: terminal.shows("draining"))
    site.fall_silent()
    wait_for(lambda: terminal.shows("Is the server running?"))
    terminal.forget()
    site.serve()
    wait_for(lambda: terminal.shows("draining"))
    terminal.press(b"\x03")
    assert terminal.end() == 0
    # The screen is as it was before, with its cursor, and no trace of Python on it.
    assert LEAVES_SCREEN in terminal.seen
    assert terminal.seen.rindex(SHOWS_CURSOR) > terminal.seen.rindex("draining")
    assert "Traceback" not in terminal.seen


def test_whoever_waits_sees_a_bar_until_the_device_has_it_however_narrow_the_terminal(site: Site) -> None:
    house = site.house
    pool = house.create("/v2.0/lb/pools", "pool", _pool(house), ADMIN)
    house.agents.idle = True
    words = ("vip", "create", "door", "--pool", pool["id"], "--protocol-port", "80", "--wait", "-f", "value", "-c", "status")
    terminal = site.run(*words, columns=30)
    wait_for(lambda: terminal.shows("VIP"))
    (vip,) = house.get("/v2.0/lb/vips?name=door", ADMIN).json["vips"]
    house.agents.idle = False
    house.put(f"/v2.0/lb/vips/{vip['id']}", {"vip": {"description": "now"}}, ADMIN)
    assert terminal.end() == 0
    assert CONTROL.sub("", terminal.seen).rstrip().endswith("ACTIVE")
    assert terminal.seen.rindex(SHOWS_CURSOR) < terminal.seen.rindex("ACTIVE")


def test_ctrl_c_ends_the_waiting_and_not_the_vip(site: Site) -> None:
    house = site.house
    pool = house.create("/v2.0/lb/pools", "pool", _pool(house), ADMIN)
    house.agents.idle = True
    terminal = site.run("vip", "create", "door", "--pool", pool["id"], "--protocol-port", "80", "--wait")
    wait_for(lambda: terminal.shows("0/1"))
    terminal.press(b"\x03")
    assert terminal.end() == 130
    assert "Traceback" not in terminal.seen
    assert SHOWS_CURSOR in terminal.seen
    assert [it["name"] for it in house.get("/v2.0/lb/vips", ADMIN).json["vips"]] == ["door"]


def test_a_file_gets_text_and_nothing_that_moves(site: Site) -> None:
    house = site.house
    pool = house.create("/v2.0/lb/pools", "pool", _pool(house), ADMIN)
    for words in (("fleet",), ("vip", "create", "door", "--pool", pool["id"], "--protocol-port", "80", "--wait")):
        run = subprocess.run([PROGRAM, *words], env=site.environment, capture_output=True, text=True, check=False, timeout=60)
        assert run.returncode == 0, run.stderr
        assert "\x1b" not in run.stdout + run.stderr
        assert run.stderr == ""
    assert "ACTIVE" in run.stdout


def test_what_an_encoding_cannot_show_is_escaped_and_hides_no_list(site: Site) -> None:
    house = site.house
    for name in ("测试", "plain"):
        house.create("/v2.0/lb/pools", "pool", {**_pool(house), "name": name}, ADMIN)
    for form in ("table", "value", "csv", "json"):
        run = subprocess.run(
            [PROGRAM, "pool", "list", "-f", form],
            env={**site.environment, "PYTHONIOENCODING": "ascii"},
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert (run.returncode, run.stderr) == (0, ""), form
        assert "\\u6d4b\\u8bd5" in run.stdout
        assert "plain" in run.stdout


def test_nobody_is_told_that_a_pipe_was_closed(site: Site) -> None:
    for words in (("fleet",), ("device", "list")):
        read, write = os.pipe()
        os.close(read)
        run = subprocess.run(
            [PROGRAM, *words], env=site.environment, stdout=write, stderr=subprocess.PIPE, text=True, check=False, timeout=60
        )
        os.close(write)
        assert run.stderr == "", words
        assert run.returncode in (1, 141), words


def _pool(house: House) -> dict[str, Any]:
    return {"name": "web", "subnet_id": house.subnet["id"], "protocol": "HTTP", "lb_method": "ROUND_ROBIN"}
