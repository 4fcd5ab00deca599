"""etcd of the test run."""

from __future__ import annotations

import shutil
import subprocess
import uuid
from importlib import util
from pathlib import Path

import requests

from tests.rig.daemon import Daemon, Server
from tests.rig.run import Run
from tests.rig.waiting import wait_for


class Etcd(Server):
    """One member.

    :param arguments: of a test that wants its own, such as one with TLS; in place of the usual ones of the same names.
    :param certificates: files of the CA's certificate, of a client's, and of its key.
    """

    name = "etcd"
    ports_needed = 2

    def __init__(
        self, run: Run, folder: Path, ports: tuple[int, ...], arguments: tuple[str, ...] = (), certificates: tuple[str, ...] = ()
    ) -> None:
        self.folder = folder
        self.ports = ports
        self._certificates = certificates
        self.url = f"http://127.0.0.1:{ports[0]}"
        peer = f"http://127.0.0.1:{ports[1]}"
        words = {
            "--name": "rig",
            "--data-dir": str(folder / "data"),
            "--listen-client-urls": self.url,
            "--advertise-client-urls": self.url,
            "--listen-peer-urls": peer,
            "--initial-advertise-peer-urls": peer,
            "--initial-cluster": f"rig={peer}",
            "--log-level": "warn",
            # A machine that is busy with tests is slow; nobody else is there to be elected.
            "--heartbeat-interval": "200",
            "--election-timeout": "2000",
        }
        words |= dict(zip(arguments[::2], arguments[1::2], strict=True))
        self.url = words["--listen-client-urls"]
        command = [shutil.which("etcd") or "etcd", *(f"{name}={value}" for name, value in words.items())]
        self.daemon = Daemon(run, self.name, command, log=folder / "etcd.log")

    @staticmethod
    def missing() -> str:
        if not shutil.which("etcd"):
            return "etcd is not installed"
        if util.find_spec("etcd3gw") is None:
            return "the Python package etcd3gw is not installed"
        return ""

    def start(self) -> None:
        """Returns when it answers. On the same port and data after :meth:`stop` or :meth:`kill`."""
        self.daemon.start()
        wait_for(self._answers, 60, f"etcd on port {self.ports[0]}", ignore=(requests.RequestException,))

    def new_namespace(self) -> str:
        """A prefix of keys that only one test uses."""
        return f"/t_{uuid.uuid4().hex}"

    def run(self, *words: str) -> str:
        """``etcdctl``'s output."""
        names = ("--cacert", "--cert", "--key")
        files = [word for pair in zip(names, self._certificates, strict=False) for word in pair]
        command = [shutil.which("etcdctl") or "etcdctl", "--endpoints", self.url, *files, *words]
        return subprocess.run(command, check=True, capture_output=True, text=True, env={"ETCDCTL_API": "3"}).stdout

    def _answers(self) -> bool:
        self.daemon.must_run()
        secure = {}
        if self._certificates:
            authority, *own = self._certificates
            secure = {"verify": authority, "cert": tuple(own)}
        return bool(requests.get(f"{self.url}/health", timeout=2, **secure).json()["health"] == "true")
