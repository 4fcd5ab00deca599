"""Two hosts beside this one: network namespaces, each with a link to here. For root on Linux."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

HOME = "10.78.0.1"
"""This host, as both of the others reach it."""

VIPS = "10.77.0.0/24"
"""Addresses that both hosts take for their own; which of them traffic reaches is said by :func:`lead_to`."""

_LINKS = {"a": ("10.78.0.1", "10.78.0.2"), "b": ("10.78.0.5", "10.78.0.6")}


def missing() -> str:
    """Why there can be no namespaces here; "" = there can."""
    if os.geteuid() != 0 or shutil.which("ip") is None:
        return "takes root and the command ip"
    tried = subprocess.run(["ip", "netns", "add", _namespace("try")], capture_output=True, text=True, check=False)
    if tried.returncode == 0:
        _ip("netns", "del", _namespace("try"))
    return tried.stderr.strip()


@contextmanager
def two_hosts() -> Iterator[None]:
    try:
        for number, (name, (here, there)) in enumerate(_LINKS.items()):
            link = f"lbs{number}-{os.getpid() % 10_000_000}"
            inside = ["netns", "exec", _namespace(name), "ip"]
            _ip("netns", "add", _namespace(name))
            _ip("link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", _namespace(name))
            _ip("address", "add", f"{here}/30", "dev", link)
            _ip("link", "set", link, "up")
            _ip(*inside, "link", "set", "lo", "up")
            _ip(*inside, "address", "add", f"{there}/30", "dev", "eth0")
            _ip(*inside, "link", "set", "eth0", "up")
            _ip(*inside, "route", "add", "default", "via", here)
            _ip(*inside, "route", "add", "local", VIPS, "dev", "lo")
        yield
    finally:
        for name in _LINKS:
            with suppress(subprocess.CalledProcessError):
                _ip("netns", "del", _namespace(name))  # its link goes with it, and with that the route


def on(name: str) -> list[str]:
    """What a command starts with to run on a host."""
    return ["ip", "netns", "exec", _namespace(name)]


def lead_to(name: str) -> None:
    """Traffic to the VIPs goes to this host from now on: what a gratuitous ARP does in a network that hosts share."""
    _ip("route", "replace", VIPS, "via", _LINKS[name][1])


def listens(pid: int, address: str, port: int) -> bool:
    """Whether anybody listens there, in the namespace of a process."""
    number = socket.inet_aton(address)[::-1].hex().upper()
    with open(f"/proc/{pid}/net/tcp") as file:
        return any(line.split()[1] == f"{number}:{port:04X}" and line.split()[3] == "0A" for line in list(file)[1:])


class Forwarder:
    """Makes a port of the loopback reachable at :data:`HOME`."""

    def __init__(self, port: int) -> None:
        self._target = ("127.0.0.1", port)
        self._listener = socket.create_server((HOME, 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, name="forwarder", daemon=True).start()

    def close(self) -> None:
        # Closing alone would not wake up who waits in accept.
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                far = socket.create_connection(self._target)
                for source, sink in ((near, far), (far, near)):
                    threading.Thread(target=_pump, args=(source, sink), name="forwarder", daemon=True).start()


def _pump(source: socket.socket, sink: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65536):
            sink.sendall(data)
    for end in (source, sink):
        with suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)


def _namespace(name: str) -> str:
    return f"lbs-{os.getpid()}-{name}"


def _ip(*words: str) -> None:
    command = ["ip", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise subprocess.CalledProcessError(done.returncode, command, done.stdout, done.stderr)
