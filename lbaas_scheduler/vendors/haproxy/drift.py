"""Whether the worker that runs is what the files say: somebody may have changed it through its socket, or started it with others.

Each VIP's file sets a variable of the process to a digest of the file's structure. What the variable says is therefore what the
worker was started with, whatever lies on the disk by now. The rest can be changed at run time, and is compared one by one.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import ip_address

from lbaas_scheduler.vendors.haproxy import marker
from lbaas_scheduler.vendors.haproxy.runtime import Runtime, ServerState

_STAMP = re.compile(r"^    set-var (proc\.\w+) str\((\w+)\)$", re.MULTILINE)
_FRONTEND = re.compile(r"^frontend (\S+)$", re.MULTILINE)
_MAXCONN = re.compile(r"^    maxconn (\d+)$", re.MULTILINE)
_BACKEND = re.compile(r"^backend (\S+)$", re.MULTILINE)
_SERVER = re.compile(r"^    server (?P<name>\S+) (?P<endpoint>\S+) weight (?P<weight>\d+)(?P<rest>.*)$", re.MULTILINE)
_SERVING = frozenset({"OPEN", "FULL"})
_FEW = 8
"""So many VIPs are asked for one by one; for more, all that the worker has is read."""


@dataclass(frozen=True, slots=True)
class Drift:
    """Ids of VIPs that are not as their files say. ``live``: in nothing but what the runtime API can put right."""

    live: frozenset[str] = frozenset()
    structural: frozenset[str] = frozenset()

    @property
    def all(self) -> frozenset[str]:
        return self.live | self.structural


def stamp(vip_id: str, body: str) -> str:
    """Lines that make a worker remember with which ``body`` it was started."""
    name = hashlib.sha256(vip_id.encode()).hexdigest()[:16]
    return f"\nglobal\n    set-var proc.lbaas_{name} str({marker.structure(body)})\n"


def find(runtime: Runtime, texts: Mapping[str, str]) -> Drift:
    """:param texts: VIP id → its file.

    :raises RuntimeUnavailable: HAProxy does not answer.
    """
    if not texts:
        return Drift()
    worker = _Worker.read(runtime, texts)
    structural = frozenset(vip_id for vip_id, text in texts.items() if _structural(text, worker))
    return Drift(frozenset(vip_id for vip_id, text in texts.items() if _live(text, worker)) - structural, structural)


def at_home(texts: Iterable[str], servers: Sequence[ServerState]) -> list[ServerState]:
    """Those servers that a worker has at the addresses that the files say."""
    lines = {
        (backend[1], line["name"]): line
        for text in texts
        if (backend := _BACKEND.search(text)) is not None
        for line in _SERVER.finditer(text)
    }
    found = ((lines.get((state.backend, state.name)), state) for state in servers)
    return [state for line, state in found if line is not None and not _elsewhere(line, state)]


@dataclass(frozen=True, slots=True)
class _Worker:
    """What the current worker says. ``stamps``: variable → value; ``frontends``: name → row of ``show stat``."""

    stamps: Mapping[str, str]
    frontends: Mapping[str, Mapping[str, str]]
    servers: Mapping[str, Mapping[str, ServerState]]

    @classmethod
    def read(cls, runtime: Runtime, texts: Mapping[str, str]) -> _Worker:
        names = [found[1] for text in texts.values() if (found := _STAMP.search(text))]
        few = len(texts) <= _FEW
        frontends = [row for name in (_names(_FRONTEND, texts) if few else ("",)) for row in runtime.frontends(name)]
        states = [state for name in (_names(_BACKEND, texts) if few else ("",)) for state in runtime.servers(name)]
        servers: dict[str, dict[str, ServerState]] = {}
        for state in states:
            servers.setdefault(state.backend, {})[state.name] = state
        return cls(runtime.variables(names), {row["pxname"]: row for row in frontends}, servers)


def _names(pattern: re.Pattern[str], texts: Mapping[str, str]) -> Collection[str]:
    return [found[1] for text in texts.values() if (found := pattern.search(text))]


def _structural(text: str, worker: _Worker) -> bool:
    found = _STAMP.search(text)
    if found and worker.stamps.get(found[1]) != found[2]:
        return True
    if (frontend := _FRONTEND.search(text)) and not _listens(text, worker.frontends.get(frontend[1])):
        return True
    present = _present(text, worker)
    wanted = {line["name"]: line for line in _SERVER.finditer(text)}
    return wanted.keys() != present.keys() or any(_moved(line, present[name]) for name, line in wanted.items())


def _listens(text: str, row: Mapping[str, str] | None) -> bool:
    limit = _MAXCONN.search(text)
    return row is not None and row["status"] in _SERVING and (limit is None or row["slim"] == limit[1])


def _moved(line: re.Match[str], state: ServerState) -> bool:
    """Whether a server's address was changed, or its checks were switched off."""
    unchecked = " check " in line["rest"] and not state.checked and not state.maintenance
    return unchecked or _elsewhere(line, state)


def _elsewhere(line: re.Match[str], state: ServerState) -> bool:
    host, _, port = line["endpoint"].rpartition(":")
    return state.port != port or _address(state.address) != _address(host.strip("[]"))


def _address(text: str) -> object:
    try:
        return ip_address(text)
    except ValueError:
        return text


def _live(text: str, worker: _Worker) -> bool:
    return any(_set(line, state) for line, state in _pairs(text, worker))


def _set(line: re.Match[str], state: ServerState) -> bool:
    """Whether a server's weight was changed, or it was set to another state."""
    up = not line["rest"].endswith(" disabled")
    return state.weight != int(line["weight"]) or state.maintenance == up or state.drained


def _pairs(text: str, worker: _Worker) -> Iterator[tuple[re.Match[str], ServerState]]:
    present = _present(text, worker)
    for line in _SERVER.finditer(text):
        if (state := present.get(line["name"])) is not None:
            yield line, state


def _present(text: str, worker: _Worker) -> Mapping[str, ServerState]:
    found = _BACKEND.search(text)
    return worker.servers.get(found[1], {}) if found else {}
