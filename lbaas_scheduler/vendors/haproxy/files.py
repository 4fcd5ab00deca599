"""The folder of one device: ``<state_path>/<device id>/``.

==================  ====================================================================================================
``00-base.cfg``     what all VIPs share
``vip-<id>.cfg``    one VIP; its first line is our marker
``vip-<id>.held``   a VIP that kept HAProxy from starting, put aside: not loaded, and reported as not applied
``journal``         ids of the VIPs of a change that has begun and is not yet known to serve
``pid``             of the master process
``master.sock``     the master's command line interface
``worker.sock``     the current worker's
``state``           members that the old worker found down, for the new worker
``counters``        what workers of the past have counted
``networks``        where VIPs are, of a device in a network namespace; there only as long as it is in one
==================  ====================================================================================================

HAProxy loads every ``*.cfg`` of the folder. One without our marker is an operator's addition: it is loaded with ours, and never
changed or removed by us.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import tempfile
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lbaas_scheduler.sdk.files import write_atomically
from lbaas_scheduler.vendors.haproxy import marker

BASE = "00-base.cfg"
NETWORKS = "networks"
# When it only validates, HAProxy refuses a configuration that listens nowhere; when it runs, its master's socket is enough.
_LISTENER = "frontend listener\n    mode tcp\n    bind unix@never-opened.sock\n"
_OWN = frozenset({"journal", "pid", "master.sock", "worker.sock", "state", "counters", NETWORKS, BASE})


@dataclass(frozen=True, slots=True)
class StoredVip:
    """A VIP's file as it is. ``intact`` false: somebody changed what follows the marker."""

    marker: marker.Marker
    text: str
    intact: bool


class DeviceFiles:
    """Reads and writes one device's folder. Writes replace whole files, so that a reader never sees half of one."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def exists(self) -> bool:
        return self.folder.is_dir()

    @property
    def ours(self) -> bool:
        """Whether something of ours is in the folder."""
        own = any((self.folder / name).exists() for name in _OWN)
        return own or bool(self.vips() or self.held() or self._leftovers())

    def create(self) -> None:
        """Make the folder. In one that is there, remove what an agent that was killed left half written."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._sweep()

    def vips(self) -> dict[str, StoredVip]:
        """VIP id → file, of all files that HAProxy loads and that are ours."""
        names = sorted(path.name for path in self.folder.glob("vip-*.cfg"))
        return {vip.marker.vip_id: vip for name in names if (vip := self._vip(name)) is not None}

    def _vip(self, name: str) -> StoredVip | None:
        text = self._read(name) or ""
        mark, body = marker.split(text)
        if mark is None or name != vip_file(mark.vip_id):
            return None
        return StoredVip(mark, text, marker.digest(body) == mark.digest)

    def binds_elsewhere(self, vip_id: str) -> set[str]:
        """Where other devices of this agent listen for the VIP: it moves from or to one of them."""
        folders = [path.parent for path in self.folder.parent.glob(f"*/{vip_file(vip_id)}") if path.parent != self.folder]
        return {vip.marker.bind for folder in folders if (vip := DeviceFiles(folder)._vip(vip_file(vip_id))) is not None} - {""}

    def loaded(self) -> bool:
        """Whether there is a VIP's file that HAProxy loads."""
        return any(self.folder.glob("vip-*.cfg"))

    def occupied(self, vip_id: str) -> bool:
        return (self.folder / vip_file(vip_id)).exists()

    def foreign(self) -> list[str]:
        """Names of configuration files that are not ours."""
        ours = {BASE, *map(vip_file, self.vips())} if self.exists else set()
        return sorted(path.name for path in self.folder.glob("*.cfg") if path.name not in ours)

    def held(self) -> list[str]:
        """Ids of VIPs that were put aside."""
        return sorted(path.name[len("vip-") : -len(".held")] for path in self.folder.glob("vip-*.held"))

    def hold(self, vip_id: str) -> None:
        os.replace(self.folder / vip_file(vip_id), self.folder / _held_file(vip_id))

    def write_vips(self, texts: Mapping[str, str | None]) -> None:
        """VIP id → new text, None to remove. Durable when it returns."""
        for vip_id, text in texts.items():
            if text is None:
                (self.folder / vip_file(vip_id)).unlink(missing_ok=True)
            else:
                self._write(vip_file(vip_id), text)
            (self.folder / _held_file(vip_id)).unlink(missing_ok=True)
        self._sync()

    def base(self) -> str | None:
        return self._read(BASE)

    def write_base(self, text: str) -> None:
        self._write(BASE, text)
        self._sync()

    def journal(self) -> frozenset[str]:
        """Of a damaged one nobody knows what it said: then no VIP is sure."""
        try:
            return frozenset(json.loads(self._read("journal") or "[]"))
        except (ValueError, TypeError):
            return frozenset(self.vips())

    def write_journal(self, vip_ids: Collection[str]) -> None:
        """Noted before the first file of a change is touched, emptied once HAProxy is known to serve it."""
        if vip_ids:
            self._write("journal", json.dumps(sorted(vip_ids)))
        else:
            (self.folder / "journal").unlink(missing_ok=True)
        self._sync()

    @contextlib.contextmanager
    def staged(self, base: str, texts: Mapping[str, str]) -> Iterator[Path]:
        """A folder with the base and the given VIPs only, for HAProxy to validate."""
        files = {BASE: base, "99-listener.cfg": _LISTENER, **{vip_file(vip_id): text for vip_id, text in texts.items()}}
        with tempfile.TemporaryDirectory(prefix=".new-", dir=self.folder) as stage:
            for name, text in files.items():
                (Path(stage) / name).write_text(text)
            yield Path(stage)

    def read_json(self, name: str) -> Any:
        """None for an absent or damaged file: what it holds is worth having, not worth failing for."""
        try:
            return json.loads(self._read(name) or "null")
        except ValueError:
            return None

    def write(self, name: str, text: str) -> None:
        self._write(name, text)

    def remove(self) -> list[str]:
        """Remove what is ours, and the folder if nothing else is left. Returns the names that were left alone."""
        ours: Iterable[Path] = [
            *(self.folder / name for name in _OWN),
            *(self.folder / vip_file(vip_id) for vip_id in self.vips()),
            *(self.folder / _held_file(vip_id) for vip_id in self.held()),
        ]
        for path in ours:
            path.unlink(missing_ok=True)
        self._sweep()
        left = sorted(path.name for path in self.folder.iterdir())
        if not left:
            self.folder.rmdir()
        return left

    def _leftovers(self) -> list[Path]:
        """What a crash left of a validation, or of a file half written."""
        return [*self.folder.glob(".new-*"), *self.folder.glob(".*.tmp")]

    def _sweep(self) -> None:
        for path in self._leftovers():
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()

    def _read(self, name: str) -> str | None:
        try:
            # Somebody may have edited it in another encoding.
            return (self.folder / name).read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError:
            return None

    def _write(self, name: str, text: str) -> None:
        # Hidden while it is written: HAProxy skips hidden files when it loads a folder.
        write_atomically(self.folder / name, text)

    def _sync(self) -> None:
        handle = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def vip_file(vip_id: str) -> str:
    return f"vip-{vip_id}.cfg"


def _held_file(vip_id: str) -> str:
    return f"vip-{vip_id}.held"
