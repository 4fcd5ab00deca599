"""The head of each file of ours: whose it is and which state it describes.

``# lbaas-scheduler {"vip": …, "epoch": …, "revision": …, "digest": …, "structure": …, "bind": …}``

A file without it was not written by us: it is never changed, and never removed.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass

from lbaas_scheduler.domain.deployments import Version

PREFIX = "# lbaas-scheduler "
_LIVE = re.compile(r"^(\s+server \S+ \S+ weight )\d+(.*?)( disabled)?$", re.MULTILINE)
"""What the runtime API can change without a reload: a server's weight and whether it is disabled."""


@dataclass(frozen=True, slots=True)
class Marker:
    """``digest``: of all that follows the marker; ``structure``: the same without what the runtime API can change.

    ``bind``: address and port that the file listens on, "" when it does not listen.
    """

    vip_id: str
    version: Version
    digest: str
    structure: str
    bind: str = ""

    @classmethod
    def of(cls, vip_id: str, version: Version, body: str, bind: str) -> Marker:
        return cls(vip_id, version, digest(body), structure(body), bind)

    def line(self) -> str:
        fields = {
            "vip": self.vip_id,
            "epoch": self.version.epoch,
            "revision": self.version.revision,
            "digest": self.digest,
            "structure": self.structure,
            "bind": self.bind,
        }
        return f"{PREFIX}{json.dumps(fields)}\n"


def digest(body: str) -> str:
    return hashlib.sha256(body.encode()).hexdigest()[:32]


def structure(body: str) -> str:
    """A digest of all that only a reload can change."""
    return digest(_LIVE.sub(r"\1*\2", body))


def split(text: str) -> tuple[Marker | None, str]:
    """A file's marker and the rest of it; None for a file that is not ours."""
    head, _, body = text.partition("\n")
    if not head.startswith(PREFIX):
        return None, text
    try:
        fields = json.loads(head[len(PREFIX) :])
        version = Version(int(fields["epoch"]), int(fields["revision"]))
        return Marker(fields["vip"], version, fields["digest"], fields["structure"], fields["bind"]), body
    except (ValueError, KeyError, TypeError):
        return None, text
