"""A watch that survives what etcd goes through.

The stream is read with a time limit and opened again from the last revision that was seen, so a connection that died silently
costs a second and no event. A revision that etcd has compacted away meanwhile cannot be watched from: then everything is read
and compared.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from typing import Any, Generic

from lbaas_scheduler.allocator.core.drivers import Change, Stored
from lbaas_scheduler.allocator.core.states import S
from lbaas_scheduler.allocator.drivers.etcd_client import EtcdClient, decode, encode
from lbaas_scheduler.errors import StoreUnavailable

IDLE_SECONDS = 1.0
RETRY_SECONDS = 0.5
PAGE = 1_000


class Compacted(Exception):
    """The revision to go on from is gone."""


class Watcher(Generic[S]):
    """One watch.

    :param to_key: a key of ours → as etcd takes it.
    :param bounds: first key, and the first one after the last.
    :param understand: etcd's entry → state.
    """

    def __init__(
        self,
        client: EtcdClient,
        cls: type[S],
        to_key: Callable[[str], str],
        bounds: tuple[str, str],
        understand: Callable[[type[S], dict[str, Any]], Stored[S]],
    ) -> None:
        self._client = client
        self._cls = cls
        self._range = {"key": to_key(bounds[0]), "range_end": to_key(bounds[1])}
        self._understand = understand
        self._known: dict[str, S] = {}
        self._revision = 0

    def run(self, stop: threading.Event, ready: threading.Event) -> Iterator[Change[S]]:
        synced = False
        while not stop.is_set():
            try:
                if not synced:
                    changes = self._sync()
                    if ready.is_set():
                        yield from changes
                    ready.set()
                    synced = True
                yield from self._follow(stop)
            except Compacted:
                synced = False
            except StoreUnavailable:
                stop.wait(RETRY_SECONDS * random.uniform(0.5, 1))  # noqa: S311  # spreads retries, guards nothing

    def _sync(self) -> list[Change[S]]:
        """Read everything; what is not as it was known is a change."""
        present: dict[str, S] = {}
        answer, _ = self._client.post("/kv/range", self._range | {"limit": PAGE})
        revision = int(answer["header"]["revision"])
        while True:
            page = answer.get("kvs", [])
            present |= {kv["key"]: self._understand(self._cls, kv).state for kv in page}
            if not answer.get("more"):
                break
            after = {"key": _next(page[-1]["key"]), "range_end": self._range["range_end"], "limit": PAGE}
            answer, _ = self._client.post("/kv/range", after)
        changes = [
            Change(present.get(key), self._known.get(key))
            for key in sorted(self._known.keys() | present.keys(), key=decode)
            if present.get(key) != self._known.get(key)
        ]
        # Later pages may be newer than the first one: what the watch tells again is not told twice.
        self._known, self._revision = present, revision
        return changes

    def _follow(self, stop: threading.Event) -> Iterator[Change[S]]:
        request = {"create_request": self._range | {"start_revision": self._revision + 1}}
        for answer in self._client.stream(request, IDLE_SECONDS):
            result = answer.get("result", {})
            if int(result.get("compact_revision", 0)):
                raise Compacted
            if result.get("canceled") or "error" in answer:
                raise StoreUnavailable(dependency="etcd", reason=str(result.get("cancel_reason") or answer.get("error")))
            for event in result.get("events", []):
                yield from self._change(event)
            if stop.is_set():
                return

    def _change(self, event: dict[str, Any]) -> Iterator[Change[S]]:
        kv = event["kv"]
        key = kv["key"]
        before = self._known.get(key)
        after = None if event.get("type") == "DELETE" else self._understand(self._cls, kv).state
        self._revision = max(self._revision, int(kv["mod_revision"]))
        if before == after:
            return
        if after is None:
            del self._known[key]
        else:
            self._known[key] = after
        yield Change(after, before)


def _next(key: str) -> str:
    """The smallest key after one."""
    return encode(decode(key) + "\0")
