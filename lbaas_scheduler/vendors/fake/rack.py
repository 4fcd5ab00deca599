"""Where fake devices stand. Like a real device, one outlives the driver that speaks to it."""

from __future__ import annotations

import fcntl
import json
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from lbaas_scheduler.domain.deployments import Deployment, Version
from lbaas_scheduler.errors import DriverError
from lbaas_scheduler.sdk.files import write_atomically

MAX_CALLS = 1000
"""A device remembers its last calls only: a long run must not fill the memory."""


@dataclass(frozen=True, slots=True)
class Call:
    """One call of the driver: its name and the VIPs that it named."""

    name: str
    vip_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Deployed:
    """One VIP on a fake device. ``document`` is the VIP as it was told, as plain JSON values."""

    version: Version
    document: Mapping[str, Any]
    wiring: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Contents:
    """All that a fake device knows."""

    vips: Mapping[str, Deployed] = field(default_factory=dict)
    calls: tuple[Call, ...] = ()

    def called(self, call: Call) -> Contents:
        return replace(self, calls=(*self.calls, call)[-MAX_CALLS:])

    def with_vips(self, deployments: Sequence[Deployment]) -> Contents:
        told = {item.vip.id: Deployed(item.version, asdict(item.vip), dict(item.wiring)) for item in deployments}
        return replace(self, vips={**self.vips, **told})

    def without(self, vip_ids: Collection[str]) -> Contents:
        return replace(self, vips={key: value for key, value in self.vips.items() if key not in vip_ids})


class Rack(Protocol):
    """Reads and changes the contents of devices by their id. Threads may share it."""

    def read(self, device_id: str) -> Contents: ...

    def change(self, device_id: str, change: Callable[[Contents], Contents]) -> None: ...


class MemoryRack:
    """Devices of this process."""

    def __init__(self) -> None:
        self._contents: dict[str, Contents] = {}
        self._lock = threading.Lock()

    def read(self, device_id: str) -> Contents:
        with self._lock:
            return self._contents.get(device_id, Contents())

    def change(self, device_id: str, change: Callable[[Contents], Contents]) -> None:
        with self._lock:
            self._contents[device_id] = change(self._contents.get(device_id, Contents()))


class FolderRack:
    """One JSON file per device: ``{"vips": {id: {"version", "document", "wiring"}}, "calls": [[name, [vip id, …]], …]}``."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()

    def read(self, device_id: str) -> Contents:
        """:raises DriverError: the file is there, but is not ours."""
        try:
            stored = json.loads(self.path(device_id).read_bytes())
            return Contents(
                {key: _deployed(value) for key, value in stored["vips"].items()},
                tuple(Call(name, tuple(ids)) for name, ids in stored["calls"]),
            )
        except FileNotFoundError:
            return Contents()
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            text = "The state file of the fake device is broken; remove it."
            raise DriverError(text, operator_message=f"{self.path(device_id)}: {error!r}") from error

    def change(self, device_id: str, change: Callable[[Contents], Contents]) -> None:
        """Agents on several hosts may reach one device: each change is made to what the one before it left behind."""
        self._folder.mkdir(parents=True, exist_ok=True)
        with self._lock, self.path(device_id).with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            self._write(device_id, change(self.read(device_id)))

    def _write(self, device_id: str, contents: Contents) -> None:
        stored = {
            "vips": {key: asdict(value) for key, value in contents.vips.items()},
            "calls": [[call.name, call.vip_ids] for call in contents.calls],
        }
        write_atomically(self.path(device_id), json.dumps(stored, indent=1))

    def path(self, device_id: str) -> Path:
        """:raises DriverError: the id would lead out of the folder."""
        if device_id in ("", ".", "..") or "/" in device_id or "\0" in device_id:
            raise DriverError("The device's id cannot be a file name.", operator_message=repr(device_id))
        return self._folder / f"{device_id}.json"


def _deployed(value: Mapping[str, Any]) -> Deployed:
    return Deployed(Version(*value["version"]), value["document"], value["wiring"])


IN_MEMORY = MemoryRack()
"""The rack of all drivers of this process that have no ``state_path``."""
