"""The demo that stays: what it furnishes, how it refuses, how it ends."""

from __future__ import annotations

import re
import signal
import socket
import sys
from collections.abc import Callable
from pathlib import Path

import requests

from tests.rig.daemon import Daemon
from tests.rig.waiting import wait_for

COMMAND = [str(Path(sys.executable).with_name("lbaas-scheduler-demo")), "--serve"]
READY = "Ctrl-C ends it"


def _serve(spawn: Callable[..., Daemon], *words: str) -> Daemon:
    demo = spawn("demo", [*COMMAND, *words], stop_signal=signal.SIGINT)
    wait_for(lambda: READY in demo.tail() or demo.must_run(), 60, "the demo's welcome")
    return demo


def _places(demo: Daemon) -> tuple[str, Path]:
    """Its URL, and its log file, beside which is its folder."""
    url = re.search(r"REST API is on (\S+)", demo.tail())
    log = re.search(r"log to (\S+)", demo.tail())
    assert url
    assert log
    return url[1], Path(log[1])


def _is_alive_below(folder: Path) -> bool:
    """Whether any process has the folder in its command line, as every HAProxy and Envoy of the demo has."""
    for line in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if str(folder).encode() in line.read_bytes():
                return True
        except OSError:  # it has ended meanwhile
            continue
    return False


def test_it_is_furnished_with_exactly_what_a_vip_needs_and_ends_without_a_trace(spawn):
    demo = _serve(spawn, "--port", "0")
    url, log = _places(demo)
    folder = log.with_suffix("")

    def listed(path: str, collection: str) -> list[dict]:
        return requests.get(f"{url}/v2.0/{path}", timeout=10).json()[collection]

    assert len(listed("devices", "devices")) == 2
    assert {it["name"] for it in listed("service-types", "service_types")} == {"any", "fast"}
    assert [it["name"] for it in listed("networks", "networks")] == ["front"]
    (subnet,) = listed("subnets", "subnets")
    assert subnet["cidr"].startswith("127.")
    for noun in ("vips", "pools", "members", "health_monitors"):
        assert listed(f"lb/{noun}", noun) == []

    pool = {"subnet_id": subnet["id"], "protocol": "TCP", "lb_method": "ROUND_ROBIN"}
    pool_id = requests.post(f"{url}/v2.0/lb/pools", json={"pool": pool}, timeout=10).json()["pool"]["id"]
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    vip = {"subnet_id": subnet["id"], "protocol": "TCP", "protocol_port": port, "pool_id": pool_id}
    assert requests.post(f"{url}/v2.0/lb/vips", json={"vip": vip}, timeout=10).status_code == 201
    wait_for(lambda: [it["status"] for it in listed("lb/vips", "vips")] == ["ACTIVE"], 30, "the VIP to turn ACTIVE")
    assert _is_alive_below(folder)

    assert demo.stop() == 0
    assert not folder.exists()
    assert not log.exists()
    assert not _is_alive_below(folder)


def test_sigterm_ends_it_as_well(spawn):
    demo = _serve(spawn, "--port", "0")
    _, log = _places(demo)
    demo.signal(signal.SIGTERM)
    assert demo.wait(30) == 0
    assert not log.with_suffix("").exists()


def test_a_port_that_is_taken_is_named_and_nothing_is_left(spawn):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        demo = spawn("demo", [*COMMAND, "--port", str(port)])
        assert demo.wait(60) == 1
    assert f"bind_port {port}: cannot listen there" in demo.tail()
    assert demo.tail().count("\n") < 3
