"""States in etcd: a document under each key, a pointer under each index, and transactions that compare before they write.

An allocation is one request: compare the pool's revision and that value and slot are free, put the document, its pointers and
the event. No locks, no leases: nothing is ever freed by a clock that ran while nobody looked.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Self

from etcd3gw.exceptions import Etcd3Exception

from lbaas_scheduler.allocator import keys
from lbaas_scheduler.allocator.core.drivers import (
    Change,
    Changes,
    Clash,
    Collision,
    Query,
    Settings,
    StateDriver,
    Stored,
    refuse_too_large,
)
from lbaas_scheduler.allocator.core.states import Event, S, State, from_document, to_document
from lbaas_scheduler.allocator.drivers.etcd_client import TRIES, Access, EtcdClient, chunks, decode, encode, text_of
from lbaas_scheduler.allocator.drivers.etcd_watch import Watcher
from lbaas_scheduler.errors import StoreUnavailable

MAX_OPERATIONS = 128
"""etcd's ``--max-txn-ops``, unless its operator raised it: compares, and puts and deletes, of one transaction."""

BRIEF_SECONDS = 2.0
"""How long somebody in a hurry waits for a member's answer."""

PAGE = 1_000
"""Keys that are read at once."""


class Compare(NamedTuple):
    """One assumption of a transaction, and what it means if it is wrong."""

    clash: Clash
    key: str
    end: str | None
    rev: int


class EtcdDriver(StateDriver):
    """One etcd cluster, version 3.4 or newer.

    :param namespace: goes before every key: several installations may share a cluster.
    :param max_operations: what the cluster's ``--max-txn-ops`` says.
    """

    name: ClassVar[str] = "etcd"
    max_operations: int

    def __init__(self, access: Access, namespace: str = "", max_operations: int = MAX_OPERATIONS, tries: int = TRIES) -> None:
        self.max_operations = max_operations
        self._access = access
        self._client = EtcdClient(access, tries)
        self._namespace = namespace

    @classmethod
    def open(cls, settings: Settings) -> Self:
        words = settings.options
        access = Access(
            endpoints=tuple(words["etcd_endpoints"]),
            ca_cert=words["etcd_ca_cert"],
            cert=words["etcd_cert"],
            key=words["etcd_key"],
            user=words["etcd_user"],
            password=words["etcd_password"],
            timeout_seconds=words["etcd_timeout_seconds"],
        )
        return cls(access, words["etcd_namespace"], words["etcd_max_operations"])

    def read(self, query: Query[S]) -> list[Stored[S]]:
        found = self._follow(query) if query.index else (self._stored(query.cls, kv) for kv in self._range(query))
        if not query.where:
            return list(found)
        return [stored for stored in found if query.matches(stored.state)][: query.limit]

    def keys(self, query: Query[Any]) -> list[tuple[Any, ...]]:
        branch = len(keys.bounds(Query(query.cls))[0])
        return [keys.parts(query.cls, self._own(kv)[branch:]) for kv in self._range(query, keys_only=True)]

    def count(self, query: Query[Any]) -> int:
        answer, _ = self._client.post("/kv/range", self._bounds(query) | {"count_only": True})
        return int(answer.get("count", 0))

    def apply(self, changes: Changes) -> None:
        compares = list(self._compares(changes))
        operations = list(self._operations(changes))
        refuse_too_large(self, max(len(compares), len(operations)))
        answer, repeated = self._transact({"compare": [self._compare(item) for item in compares], "success": operations})
        if answer.get("succeeded"):
            return
        if repeated and changes.events and self.get(Event, changes.events[0].stamp):
            return
        raise Collision(list(self._clashes(compares)))

    def watch(self, query: Query[S], stop: threading.Event, ready: threading.Event) -> Iterator[Change[S]]:
        return Watcher(self._client, query.cls, self._key, keys.bounds(query), self._stored).run(stop, ready)

    def briefly(self) -> EtcdDriver:
        return self._brief

    @cached_property
    def _brief(self) -> EtcdDriver:
        access = replace(self._access, timeout_seconds=min(self._access.timeout_seconds, BRIEF_SECONDS))
        return EtcdDriver(access, self._namespace, self.max_operations, tries=len(access.endpoints))

    def close(self) -> None:
        self._client.close()
        if "_brief" in self.__dict__:
            self._brief.close()

    # --- reading ------------------------------------------------------------------------------------------------------------

    def _range(self, query: Query[Any], keys_only: bool = False) -> list[dict[str, Any]]:
        """Keys with values of a query, page by page, all of one revision."""
        if query.among or query.runs:
            return list(self._ranges(query, keys_only))
        first, last = keys.bounds(query)
        wanted = None if query.where else query.limit
        found: list[dict[str, Any]] = []
        revision: dict[str, Any] = {}
        while True:
            limit = PAGE if wanted is None else min(PAGE, wanted - len(found))
            order = {"sort_order": "DESCEND", "sort_target": "KEY"} if query.reverse else {}
            payload = {
                "key": self._key(first),
                "range_end": self._key(last),
                "limit": limit,
                "keys_only": keys_only,
                **revision,
                **order,
            }
            try:
                answer, _ = self._client.post("/kv/range", payload)
            except Etcd3Exception as error:
                if revision and "compacted" in text_of(error):
                    return self._range(query, keys_only)
                raise _unavailable(error) from error
            page = answer.get("kvs", [])
            found += page
            if not answer.get("more") or (wanted is not None and len(found) >= wanted):
                return found
            revision = {"revision": answer["header"]["revision"]}
            if query.reverse:
                last = self._own(page[-1])
            else:
                first = self._own(page[-1]) + "\0"

    def _ranges(self, query: Query[Any], keys_only: bool) -> Iterator[dict[str, Any]]:
        """Of a query with ``among`` or ``runs``: as many small ranges in one request as a transaction may hold."""
        for batch in chunks(list(query.one_by_one()), self.max_operations):
            looks = [{"request_range": self._bounds(one) | {"keys_only": keys_only}} for one in batch]
            for response in self._transact({"success": looks})[0]["responses"]:
                yield from response["response_range"].get("kvs", [])

    def _follow(self, query: Query[S]) -> Iterator[Stored[S]]:
        """States under an index: the pointers, then what they point to, unless that has moved on meanwhile."""
        index = query.cls.keyspace.named(query.index)
        pointers = [(self._own(kv), decode(kv["value"])) for kv in self._range(query)]
        for batch in chunks(pointers, self.max_operations):
            reads = [{"request_range": {"key": self._key(primary)}} for _, primary in batch]
            answer, _ = self._transact({"success": reads})
            for (pointer, _), response in zip(batch, answer["responses"], strict=True):
                for kv in response["response_range"].get("kvs", []):
                    stored = self._stored(query.cls, kv)
                    if keys.pointer(stored.state, index) == pointer:
                        yield stored

    def _stored(self, cls: type[S], kv: dict[str, Any]) -> Stored[S]:
        return Stored(from_document(cls, json.loads(decode(kv["value"]))), int(kv["mod_revision"]))

    # --- writing ------------------------------------------------------------------------------------------------------------

    def _compares(self, changes: Changes) -> Iterator[Compare]:
        fences = [*changes.requires, *changes.deletes, *(stored for stored, _ in changes.replaces)]
        for stored in fences:
            if not isinstance(stored.state, Event):
                yield Compare(Clash(stored.state, "changed"), keys.primary(stored.state), None, stored.rev)
        # What this very transaction frees, it may take.
        leaving = (*changes.deletes, *(stored for stored, _ in changes.replaces))
        freed = {key for stored in leaving for _, key in keys.pointers(stored.state)}
        for _, state in changes.replaces:
            for index, key in keys.pointers(state):
                if index.unique and key not in freed:
                    yield Compare(Clash(state, index.name), key, None, 0)
        for state in changes.inserts:
            if state.keyspace.unique:
                yield Compare(Clash(state, ""), keys.primary(state), None, 0)
            for index, key in keys.pointers(state):
                if index.unique and key not in freed:
                    yield Compare(Clash(state, index.name), key, None, 0)
        for query in changes.absent:
            first, last = keys.bounds(query)
            yield Compare(Clash(None, "present"), first, last, 0)

    def _operations(self, changes: Changes) -> Iterator[dict[str, Any]]:
        """No key may appear twice in a transaction: what is put is not deleted."""
        puts: dict[str, str] = {}
        gone: dict[str, None] = {}
        for stored in changes.deletes:
            gone |= dict.fromkeys(_entries(stored.state))
        for stored, state in changes.replaces:
            gone |= dict.fromkeys(_entries(stored.state))
            kept = _entries(stored.state)
            puts |= {key: value for key, value in _entries(state).items() if kept.get(key) != value}
            for key in kept.keys() & _entries(state).keys():
                gone.pop(key, None)
        for state in (*changes.inserts, *changes.events):
            puts |= _entries(state)
        for key, value in puts.items():
            yield {"request_put": {"key": self._key(key), "value": encode(value)}}
        for key in gone:
            if key not in puts:
                yield {"request_delete_range": {"key": self._key(key)}}

    def _clashes(self, compares: Sequence[Compare]) -> Iterator[Clash]:
        """Which assumptions were wrong. Asked only now: most transactions succeed, and carry nothing for the other case.

        What was wrong and is right again by now is not named; trying again is all that there is to do about that.
        """
        looks = [{"request_range": self._place(item) | {"limit": 1, "keys_only": True}} for item in compares]
        responses = self._transact({"success": looks})[0]["responses"]
        for item, response in zip(compares, responses, strict=True):
            present = response["response_range"].get("kvs", [])
            if item.rev != (int(present[0]["mod_revision"]) if present else 0):
                yield item.clash

    def _transact(self, payload: dict[str, Any]) -> tuple[dict[str, Any], bool]:
        try:
            return self._client.post("/kv/txn", payload)
        except Etcd3Exception as error:
            raise _unavailable(error) from error

    def _compare(self, item: Compare) -> dict[str, Any]:
        if item.rev:
            return self._place(item) | {"target": "MOD", "result": "EQUAL", "mod_revision": item.rev}
        return self._place(item) | {"target": "CREATE", "result": "EQUAL", "create_revision": 0}

    def _place(self, item: Compare) -> dict[str, Any]:
        return {"key": self._key(item.key)} | ({"range_end": self._key(item.end)} if item.end else {})

    def _bounds(self, query: Query[Any]) -> dict[str, Any]:
        first, last = keys.bounds(query)
        return {"key": self._key(first), "range_end": self._key(last)}

    def _key(self, key: str) -> str:
        return encode(self._namespace + key)

    def _own(self, kv: dict[str, Any]) -> str:
        return decode(kv["key"])[len(self._namespace) :]


def _entries(state: State) -> dict[str, str]:
    """Key → value of a state: its document, and pointers to that."""
    primary = keys.primary(state)
    document = json.dumps(to_document(state), separators=(",", ":"))
    return {primary: document} | {key: primary for _, key in keys.pointers(state)}


def _unavailable(error: Etcd3Exception) -> Exception:
    return StoreUnavailable(dependency="etcd", reason=text_of(error))
