"""A broker whose queues were made with other settings, and the way from one type of queues to the other."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from lbaas_scheduler.rpc import topics
from tests.rig.daemon import Daemon
from tests.rig.rabbitmq import RabbitMQ
from tests.rig.waiting import wait_for

CONFIGURATION = """
[DEFAULT]
host = agent-1
transport_url = {url}
[agent]
drivers = fake
state_path = {folder}
[fake]
state_path = {folder}
[oslo_messaging_rabbit]
rabbit_quorum_queue = {quorum}
kombu_reconnect_delay = 0.1
"""
QUEUE = f"{topics.AGENTS}.agent-1"


class Site:
    def __init__(self, broker: RabbitMQ, url: str, folder: Path, spawn: Callable[..., Daemon]) -> None:
        self._broker, self._url, self._folder, self._spawn = broker, url, folder, spawn
        self._vhost = url.rsplit("/", 1)[1]

    def agent(self, quorum: bool) -> Daemon:
        config = self._folder / "agent.conf"
        config.write_text(CONFIGURATION.format(url=self._url, folder=self._folder, quorum=quorum))
        return self._spawn(f"agent-{quorum}", [sys.executable, "-m", "lbaas_scheduler.cmd.agent", "--config-file", str(config)])

    def wait_for_queue(self, kind: str) -> None:
        queues = self._broker.queues
        wait_for(lambda: [it["type"] for it in queues(self._url) if it["name"] == QUEUE] == [kind], 40, f"a {kind} queue")

    def refusals(self) -> int:
        """How often the broker has refused a declaration in our virtual host."""
        lines = self._broker.daemon.log.read_text(errors="replace").splitlines()
        return sum("inequivalent arg" in line and self._vhost in line for line in lines)

    def make_anew(self) -> None:
        """What the guide says."""
        self._broker.delete_vhost(self._url)
        self._broker.call("PUT", f"/api/vhosts/{self._vhost}")
        everything = {"configure": ".*", "write": ".*", "read": ".*"}
        self._broker.call("PUT", f"/api/permissions/{self._vhost}/rig", everything)


@pytest.mark.parametrize(("before", "after"), [("classic", "quorum"), ("quorum", "classic")])
def test_queues_of_another_type_are_named_once_and_the_guide_leads_from_one_to_the_other(
    before: str, after: str, rabbitmq_server: RabbitMQ, rabbitmq_url: str, tmp_path: Path, spawn: Callable[..., Daemon]
) -> None:
    site = Site(rabbitmq_server, rabbitmq_url, tmp_path, spawn)
    first = site.agent(before == "quorum")
    site.wait_for_queue(before)
    first.stop()
    second = site.agent(after == "quorum")
    wait_for(lambda: second.must_run() or site.refusals() >= 6, 60, "the broker to refuse again and again")
    said = [line for line in second.tail(400).splitlines() if "other settings than this process asks for" in line]
    names = [line.split("'")[1] for line in said]
    assert names
    assert len(names) == len(set(names)), said
    assert sum("PRECONDITION" in line for line in second.tail(400).splitlines()) <= 3, "the cause, beside what is said of it"
    assert "Traceback" not in second.tail(400)
    assert "unreachable" not in second.tail(400)

    second.kill()
    site.make_anew()
    site.agent(after == "quorum")
    site.wait_for_queue(after)
