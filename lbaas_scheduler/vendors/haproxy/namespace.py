"""One network namespace of this host, by iproute2. Everything is an argument of its own; no shell reads any of it.

Every change may be repeated, and does nothing where all is as it should be.
"""

from __future__ import annotations

import ctypes
import json
import logging
import os
import shutil
import subprocess
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from lbaas_scheduler.errors import DriverError
from lbaas_scheduler.sdk import processes

LOG = logging.getLogger(__name__)

T = TypeVar("T")

CLONE_NEWNET = 0x40000000
"""See setns(2), which Python has from 3.12 on."""

_libc = ctypes.CDLL(None, use_errno=True)

FOLDER = Path("/run/netns")
"""Where iproute2 keeps them."""

TIMEOUT_SECONDS = 10
_ENVIRONMENT = {**processes.ENVIRONMENT, "LC_ALL": "C"}

Link = dict[str, Any]


class Namespace:
    """:param name: of the namespace."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.path = FOLDER / name

    @property
    def exists(self) -> bool:
        return self.path.exists()

    @property
    def command(self) -> list[str]:
        """What goes before a command that is to run inside."""
        return [_program("ip"), "netns", "exec", self.name]

    def require_rights(self) -> None:
        """:raises DriverError: we may not make or change it."""
        if os.geteuid() != 0:
            text = "The device cannot be put into a network namespace: its agent is not privileged to."
            raise DriverError(text, operator_message=f"{text} Run lbaas-scheduler-agent as root, or set extra.netns to false.")

    def create(self) -> None:
        if not self.exists:
            ip("netns", "add", self.name)
        self.ip("link", "set", "dev", "lo", "up")
        self.run(_keep_secondaries)

    def mark(self, text: str) -> None:
        """Write down inside whose it is."""
        if not self.bears(text):
            self.ip("link", "set", "dev", "lo", "alias", text)

    def bears(self, text: str) -> bool:
        """Whether it is there, with this mark."""
        if not self.exists:
            return False
        try:
            shown = json.loads(self.ip("-json", "link", "show", "dev", "lo") or "[]")
        except DriverError:  # somebody has removed it just now, or has put a file of that name there
            return False
        return any(item.get("ifalias") == text for item in shown)

    def links(self, prefix: str) -> list[str]:
        """Names of the links inside that begin like this."""
        shown = json.loads(self.ip("-json", "link", "show") or "[]")
        return [item["ifname"] for item in shown if item["ifname"].startswith(prefix)]

    def delete(self) -> None:
        """With all links in it."""
        if self.exists:
            ip("netns", "delete", self.name)

    def holds(self, pid: int) -> bool:
        """Whether a process is inside."""
        try:
            return Path(f"/proc/{pid}/ns/net").stat().st_ino == self.path.stat().st_ino
        except OSError:
            return False

    def run(self, work: Callable[[], T]) -> T:
        """Do something inside, in a thread that enters and ends there.

        :raises DriverError: we may not.
        """

        def entered() -> T:
            handle = os.open(self.path, os.O_RDONLY)
            try:
                if _libc.setns(handle, CLONE_NEWNET):
                    raise DriverError(f"The device's network namespace cannot be entered: {os.strerror(ctypes.get_errno())}.")
            finally:
                os.close(handle)
            return work()

        with ThreadPoolExecutor(1) as thread:
            return thread.submit(entered).result()

    def ip(self, *words: str) -> str:
        """``ip`` inside."""
        return ip("-n", self.name, *words)

    def has(self, link: str) -> bool:
        """Whether there is a link of that name."""
        try:
            self.ip("link", "show", "dev", link)
        except DriverError:
            return False
        return True

    def addresses(self, link: str) -> set[str]:
        """Those of a link, as ADDRESS/LENGTH; without what the kernel gave it by itself."""
        shown = json.loads(self.ip("-json", "address", "show", "dev", link) or "[]")
        infos = [info for item in shown for info in item.get("addr_info", [])]
        return {f"{info['local']}/{info['prefixlen']}" for info in infos if info.get("scope") != "link"}


def _keep_secondaries() -> None:
    """Else the first IPv4 address of a link takes the others along when it goes."""
    try:
        Path("/proc/sys/net/ipv4/conf/all/promote_secondaries").write_text("1")
    except OSError as error:
        # They are put back then, after a moment without them.
        LOG.info("In a network namespace: %s", error)


def ip(*words: str) -> str:
    """:raises DriverError: with what it said, for the operator."""
    command = [_program("ip"), *words]
    try:
        done = subprocess.run(
            command,
            env=_ENVIRONMENT,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise _failed(command, f"took longer than {TIMEOUT_SECONDS} s") from error
    if done.returncode:
        raise _failed(command, done.stderr.strip() or f"exit code {done.returncode}")
    return done.stdout


def link(name: str) -> Link | None:
    """A link of the host; None = there is none."""
    if not Path(f"/sys/class/net/{name}").exists():
        return None
    found: list[Link] = json.loads(ip("-json", "link", "show", "dev", name))
    return found[0]


def names(prefix: str) -> list[str]:
    """Of the namespaces of this host that begin like this."""
    return sorted(path.name for path in FOLDER.glob(f"{prefix}*")) if FOLDER.is_dir() else []


def bridge_of(name: str) -> str:
    """The bridge that a link of the host is in; "" = none."""
    try:
        return Path(f"/sys/class/net/{name}/master").resolve(strict=True).name
    except FileNotFoundError:
        return ""


def ports(bridge: str) -> set[str]:
    """Names of the links that a bridge connects."""
    folder = Path(f"/sys/class/net/{bridge}/brif")
    return {entry.name for entry in folder.iterdir()} if folder.is_dir() else set()


def _program(name: str) -> str:
    found = shutil.which(name, path=_ENVIRONMENT["PATH"])
    if found is None:
        text = "The device cannot be put into a network namespace: its host has no iproute2."
        raise DriverError(text, operator_message=f"{text} Install it: no '{name}' in {_ENVIRONMENT['PATH']}.")
    return found


def _failed(command: Sequence[str], said: str) -> DriverError:
    return DriverError("The device could not be attached to the VIP's network.", operator_message=f"{' '.join(command)}: {said}")
