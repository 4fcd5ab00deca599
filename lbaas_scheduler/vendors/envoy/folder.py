"""A device's folder: what its Envoy reads, and what we know of it.

::

    <state_path>/<device id>/
        bootstrap.json   marks the folder as ours, and the process whose command line names it
        cds.json         the clusters that Envoy watches
        lds.json         the listeners that Envoy watches
        vips/<id>.json   one record per VIP that Envoy has confirmed: version, resources, members
        admin.sock       Envoy's administration interface, for our user only
        envoy.log        its log since its last start; envoy.log.1 the one before

A record is written after Envoy has taken a change over: what is listed is what is served. The other files can always be
made again from the records.
"""

from __future__ import annotations

import hashlib
import json
import logging
import shutil
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO

from lbaas_scheduler.domain.deployments import Version
from lbaas_scheduler.errors import DriverError
from lbaas_scheduler.sdk.files import write_atomically
from lbaas_scheduler.sdk.listening import Endpoint
from lbaas_scheduler.vendors.envoy.resources import Json, Resources, open_address

LOG = logging.getLogger(__name__)

OWNER = "lbaas-scheduler"
BOOTSTRAP = "bootstrap.json"
_CANDIDATE = ".candidate-"


@dataclass(frozen=True, slots=True)
class Record:
    """One VIP as it is served. ``members`` = address and port → id; ``checked`` = a monitor looks after them."""

    version: Version
    resources: Resources
    members: Mapping[str, str] = field(default_factory=dict)
    checked: bool = False


def digest(resources: Iterable[Json]) -> str:
    """A version of this content, the same in every process."""
    return hashlib.sha256(json.dumps(list(resources), sort_keys=True).encode()).hexdigest()[:16]


def sweep(state_path: Path) -> None:
    """Remove what checks of configurations left that were killed in the middle."""
    for left in state_path.glob(f"{_CANDIDATE}*"):
        left.unlink(missing_ok=True)


def folder_of(state_path: Path, device_id: str) -> Folder:
    """:raises DriverError: the id would lead out of ``state_path``."""
    if device_id in ("", ".", "..") or "/" in device_id or "\0" in device_id:
        raise DriverError("The device's id cannot be a file name.", operator_message=repr(device_id))
    return Folder(state_path / device_id)


@dataclass(frozen=True, slots=True)
class Folder:
    """One device's folder. The agent never calls twice at once for one device, so it needs no lock."""

    path: Path

    @property
    def bootstrap(self) -> Path:
        return self.path / BOOTSTRAP

    @property
    def log(self) -> Path:
        return self.path / "envoy.log"

    def ours(self) -> bool:
        return self.bootstrap.is_file()

    def create(self, bootstrap: Json) -> None:
        self._vips.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.path.chmod(0o700)
        write_atomically(self.bootstrap, json.dumps(bootstrap, indent=1))

    def destroy(self) -> None:
        """Remove the folder. The marker goes last, so that a removal that was interrupted is taken up again."""
        for entry in self.path.iterdir() if self.path.is_dir() else ():
            if entry.is_dir():
                shutil.rmtree(entry)
            elif entry != self.bootstrap:
                entry.unlink(missing_ok=True)
        self.bootstrap.unlink(missing_ok=True)
        if self.path.is_dir():
            self.path.rmdir()

    def records(self) -> dict[str, Record]:
        """By id of the VIP. A file that is not a record of ours does not count; its VIP will be applied anew."""
        names = sorted(path.stem for path in self._vips.glob("*.json")) if self._vips.is_dir() else ()
        return {name: record for name in names if (record := self.record(name)) is not None}

    def record(self, vip_id: str) -> Record | None:
        """One of :meth:`records`."""
        path = self._vips / f"{vip_id}.json"
        try:
            return _record(json.loads(path.read_bytes()))
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError):
            LOG.exception("%s is not a record of a VIP and is left out", path)
            return None

    def write_record(self, vip_id: str, record: Record) -> None:
        write_atomically(self._vips / f"{vip_id}.json", json.dumps({"owner": OWNER, "vip": vip_id, **asdict(record)}))

    def drop_record(self, vip_id: str) -> None:
        (self._vips / f"{vip_id}.json").unlink(missing_ok=True)

    def write_watched(self, name: str, resources: Iterable[Json]) -> None:
        """Replace ``cds`` or ``lds``. Envoy sees the renaming."""
        listed = list(resources)
        document = {"version_info": digest(listed), "resources": listed}
        write_atomically(self.watched(name), json.dumps(document, sort_keys=True))

    def read_watched(self, name: str) -> dict[str, Json]:
        """The resources of ``cds`` or ``lds`` by their names; none where somebody spoiled the file."""
        try:
            stored = json.loads(self.watched(name).read_bytes())
            return {item["name"]: item for item in stored["resources"]}
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            return {}

    def moves(self, vip_id: str, endpoint: Endpoint) -> bool:
        """Whether another device of this agent listens there for the same VIP: it moves from or to it."""
        others = (path.parent.parent for path in self.path.parent.glob(f"*/vips/{vip_id}.json"))
        records = (Folder(path).record(vip_id) for path in others if path != self.path)
        return any(record is not None and open_address(record.resources) == endpoint for record in records)

    def candidate(self) -> IO[str]:
        """A file for a configuration that is to be checked, gone when it is closed.

        Beside the folder, which may not be there yet; a hardened service may be able to write nowhere else.
        """
        self.path.parent.mkdir(parents=True, exist_ok=True)
        # Envoy tells by the suffix what is in it.
        return tempfile.NamedTemporaryFile("w", prefix=_CANDIDATE, suffix=".json", dir=self.path.parent)

    def watched(self, name: str) -> Path:
        return self.path / f"{name}.json"

    @property
    def _vips(self) -> Path:
        return self.path / "vips"


def _record(stored: Json) -> Record:
    if stored["owner"] != OWNER:
        raise ValueError("another owner")
    return Record(Version(*stored["version"]), Resources(**stored["resources"]), stored["members"], bool(stored["checked"]))
