"""The allocator as documents: what REST, the bus and the command line say, without a word of theirs.

Documents are dictionaries of JSON's types. A selector is ``{"kind", "name", "scope"}``; an owner ``{"type", "id"}``.
"""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from oslo_config import cfg

from lbaas_scheduler.allocator import keys
from lbaas_scheduler.allocator.core.drivers import Settings, StateDriver
from lbaas_scheduler.allocator.core.requests import CLUSTER, Grant, Owner, Request, Selector
from lbaas_scheduler.allocator.core.resource import Resource
from lbaas_scheduler.allocator.core.states import Event, Pool
from lbaas_scheduler.allocator.kinds import inet
from lbaas_scheduler.allocator.manager import ResourceAllocator
from lbaas_scheduler.allocator.texts import check_owner
from lbaas_scheduler.conf import allocator as options
from lbaas_scheduler.db.session import Database
from lbaas_scheduler.errors import Conflict, InvalidRequest, NotFound

REQUEST_WORDS = {field.name for field in dataclasses.fields(Request)}
MAX_DEPTH, MAX_REQUESTS = 16, 1_000


def build(
    conf: cfg.ConfigOpts, driver: type[StateDriver], kinds: Mapping[str, Resource], database: Database | None
) -> ResourceAllocator:
    """What ``[allocator]`` says.

    :param driver, kinds: as ``extensions.load_state_driver`` and ``extensions.load_resources`` found them.
    """
    options.register_opts(conf)
    return ResourceAllocator(driver.open(Settings(database, dict(conf.allocator.items()))), kinds)


class Instance:
    """A place for the one allocator of a process, where there has to be one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._allocator: ResourceAllocator | None = None

    def put(self, allocator: ResourceAllocator) -> ResourceAllocator:
        """:raises Conflict: there is one already; :meth:`remove` it first."""
        with self._lock:
            if self._allocator is not None:
                raise Conflict(reason="an allocator is there already; remove it first")
            self._allocator = allocator
            return allocator

    def get(self) -> ResourceAllocator:
        """:raises NotFound: none was put."""
        if self._allocator is None:
            raise NotFound("No allocator has been made yet", resource="Allocator", id="")
        return self._allocator

    def remove(self) -> None:
        """Make place for another one. Nothing to do where there is none."""
        with self._lock:
            self._allocator = None


class AllocatorAPI:
    """Every operation of :class:`~lbaas_scheduler.allocator.manager.ResourceAllocator`, from and to documents.

    Errors are those of its methods, and one more:

    :raises InvalidRequest: a document is not what it should be; says in which word.
    """

    def __init__(self, allocator: ResourceAllocator) -> None:
        self._allocator = allocator

    def define(self, pool: Mapping[str, Any], config: Any, actor: str = "") -> dict[str, Any]:
        """Make a pool. The same configuration again is fine.

        :param config: what the pool's kind understands.
        :raises AlreadyDefined, InvalidConfig, Overlap: as they say.
        """
        return pool_document(self._allocator.define(selector(pool), config, actor))

    def resize(self, pool: Mapping[str, Any], config: Any, *, drain: bool = False, actor: str = "") -> dict[str, Any]:
        """Give a pool another configuration while it is in use.

        :param drain: keep values in use outside of the new range until they are released, in place of refusing.
        :raises InvalidConfig, NotDefined, Overlap, PoolBusy, ValueInUse: as they say.
        """
        return pool_document(self._allocator.redefine(selector(pool), config, drain=drain, actor=actor))

    def undefine(self, pool: Mapping[str, Any], *, drain: bool = False, force: bool = False, actor: str = "") -> dict[str, Any]:
        """``{"removed": false}``: it is draining, and goes with its last value."""
        return {"removed": self._allocator.undefine(selector(pool), drain=drain, force=force, actor=actor)}

    def pool(self, pool: Mapping[str, Any]) -> dict[str, Any]:
        """:raises NotDefined: there is none."""
        return pool_document(self._allocator.pool(selector(pool)))

    def pools(self, kind: str | None = None) -> list[dict[str, Any]]:
        """All of them, or all of one kind; ordered by kind, scope, name."""
        return [pool_document(pool) for pool in self._allocator.pools(kind)]

    def allocate(self, requests: Sequence[Any], *, request_id: str = "", actor: str = "") -> list[dict[str, Any]]:
        """All of them, with all that they bring, or none, in one transaction.

        Errors: see :meth:`~lbaas_scheduler.allocator.manager.ResourceAllocator.allocate_many`.

        :param requests: at most 1,000, with children nested up to 16 deep.
        :param request_id: whoever repeats it gets what he got before.
        :returns: one grant per request, in their order.
        """
        grants = self._allocator.allocate_many(_requests(requests), request_id=request_id, actor=actor)
        return [grant_document(grant) for grant in grants]

    def hold(self, requests: Sequence[Any], ttl_seconds: float, *, request_id: str = "", actor: str = "") -> list[dict[str, Any]]:
        """As :meth:`allocate`, for now: :meth:`commit` makes it final, and :meth:`reconcile` takes back what is past its time.

        :param ttl_seconds: above 0, at most seven days.
        """
        grants = self._allocator.hold(_requests(requests), ttl_seconds, request_id=request_id, actor=actor)
        return [grant_document(grant) for grant in grants]

    def commit(self, allocation_id: str, generation: int | None = None, *, actor: str = "") -> dict[str, Any]:
        """Make a hold final, with its children. One that is final already is fine.

        :param generation: from the grant; None = whatever it is by now.
        :raises NotAllocated, StaleGeneration: as they say.
        """
        return grant_document(self._allocator.commit(allocation_id, generation, actor=actor))

    def release(
        self, allocation_id: str, generation: int | None = None, *, force: bool = False, missing_ok: bool = False, actor: str = ""
    ) -> dict[str, Any]:
        """Give one value back, with its children. ``{"released": how many values came back}``.

        :param force: what depends on it, too: the addresses of a subnet.
        :param missing_ok: 0 values, in place of ``NotAllocated``.
        :raises DependencyInUse, NotAllocated, StaleGeneration: as they say.
        """
        done = self._allocator.release(allocation_id, generation, force=force, missing_ok=missing_ok, actor=actor)
        return {"released": done}

    def release_owner(self, owner: Mapping[str, Any], *, force: bool = False, actor: str = "") -> dict[str, Any]:
        """Give back whatever an owner has, from whichever pools. ``{"released": 0}``: it had nothing."""
        return {"released": self._allocator.release_owner(owner_(owner), force=force, actor=actor)}

    def release_value(self, pool: Mapping[str, Any], value: Any, owner: Mapping[str, Any], *, actor: str = "") -> dict[str, Any]:
        """Give back by value, for callers who kept nothing else.

        :raises NotAllocated, NotAuthorized, NotDefined, OutOfRange: nobody has it; somebody else has; no such pool; no such
            value.
        """
        return {"released": self._allocator.release_value(selector(pool), value, owner_(owner), actor=actor)}

    def allocation(self, allocation_id: str) -> dict[str, Any]:
        """With its children.

        :raises NotAllocated: it is not, or not any more.
        """
        return grant_document(self._allocator.get(allocation_id))

    def allocations(
        self, pool: Mapping[str, Any] | None = None, owner: Mapping[str, Any] | None = None, *, resting: bool = False
    ) -> list[dict[str, Any]]:
        """Of a pool, of an owner, or both; flat.

        :param resting: the quarantined ones, too.
        """
        found = self._allocator.list(*_place(pool, owner), resting=resting)
        return [grant_document(grant) for grant in found]

    def usage(self, pool: Mapping[str, Any]) -> dict[str, Any]:
        """The fields of a :class:`~lbaas_scheduler.allocator.core.requests.Usage`: how many values, which in use."""
        return dataclasses.asdict(self._allocator.usage(selector(pool)))

    def history(
        self,
        pool: Mapping[str, Any] | None = None,
        owner: Mapping[str, Any] | None = None,
        *,
        allocation_id: str | None = None,
        since: datetime | None = None,
        limit: int = 100,
    ) -> list[dict[str, Any]]:
        """What was done, last things first; it outlives its pools.

        :param since: a naive one counts as local time.
        """
        events = self._allocator.history(*_place(pool, owner), allocation_id=allocation_id, since=since, limit=limit)
        return [self._event_document(event) for event in events]

    def check(self) -> list[dict[str, Any]]:
        """Whatever is not as it should be: fields of :class:`~lbaas_scheduler.allocator.checks.Finding`. Changes nothing."""
        return [dataclasses.asdict(finding) for finding in self._allocator.check()]

    def reconcile(self, **terms: Any) -> dict[str, Any]:
        """Find what nobody wants any more; give it back only with ``dry_run=False``.

        :param terms: those of :func:`lbaas_scheduler.allocator.reconcile.reconcile`.
        :returns: the fields of a :class:`~lbaas_scheduler.allocator.reconcile.Report`.
        """
        return dataclasses.asdict(self._allocator.reconcile(**terms))

    @staticmethod
    def keys() -> str:
        """The key tree, one key a line."""
        return keys.tree()

    def _event_document(self, event: Event) -> dict[str, Any]:
        document = dataclasses.asdict(event) | {"at": event.at.isoformat()}
        if event.value and event.kind in self._allocator.kinds:
            document["value"] = self._allocator.kinds[event.kind].show(int(event.value, 16), event.prefix_len)
        return document


def _place(pool: Mapping[str, Any] | None, owner: Mapping[str, Any] | None) -> tuple[Selector | None, Owner | None]:
    """None is none; all else has to be right."""
    return None if pool is None else selector(pool), None if owner is None else owner_(owner)


def selector(document: Mapping[str, Any]) -> Selector:
    """:raises InvalidRequest: names what is missing."""
    if not isinstance(document, Mapping) or not {"kind", "name"} <= set(document) <= {"kind", "name", "scope"}:
        raise InvalidRequest(f"A pool is named by kind, name and scope; got {document!r:.120}")
    found = Selector(document["kind"], document["name"], document.get("scope", CLUSTER))
    for word, text in found._asdict().items():
        # What is no text for a database is no pool's name either.
        if not isinstance(text, str) or not text.isprintable():
            raise InvalidRequest(f"The {word} of a pool is {text!r:.80}; give a text that can be printed", what=word)
    return found


def owner_(document: Mapping[str, Any]) -> Owner:
    """:raises InvalidRequest: names what is missing."""
    if not isinstance(document, Mapping) or set(document) != {"type", "id"}:
        raise InvalidRequest(f"An owner is named by type and id; got {document!r:.120}")
    owner = Owner(document["type"], document["id"])
    check_owner(owner)
    return owner


def request(document: Any, depth: int = 0) -> Request:
    """:raises InvalidRequest: names what is wrong."""
    if not isinstance(document, Mapping) or "kind" not in document or "owner" not in document:
        raise InvalidRequest(f"A request needs kind and owner; got {document!r:.120}")
    unknown = sorted(set(document) - REQUEST_WORDS)
    if unknown:
        known = ", ".join(sorted(REQUEST_WORDS))
        raise InvalidRequest(f"{', '.join(map(repr, unknown))} is unknown in a request; known are {known}")
    if depth > MAX_DEPTH:
        raise InvalidRequest(f"Requests are nested deeper than {MAX_DEPTH}")
    words = dict(document) | {"owner": owner_(document["owner"])}
    if words.get("within") is not None:
        words["within"] = request(words["within"], depth + 1)
    children = () if words.get("children") is None else words["children"]
    if not isinstance(children, list | tuple):
        raise InvalidRequest(f"children is {children!r:.80}; give a list of requests")
    words["children"] = tuple(request(child, depth + 1) for child in children)
    return Request(**words)


def _requests(documents: Any) -> list[Request]:
    if not isinstance(documents, list | tuple) or len(documents) > MAX_REQUESTS:
        raise InvalidRequest(f"Give a list of at most {MAX_REQUESTS} requests")
    return [request(document) for document in documents]


def pool_document(pool: Pool) -> dict[str, Any]:
    """Its fields. Of a pool of addresses ``carved``, too: first and last of each stretch that other pools were carved out of."""
    words = ("id", "kind", "scope", "name", "domain", "config", "state", "generation", "parent_allocation_id")
    document = {word: getattr(pool, word) for word in words}
    if pool.kind == "address":
        document["carved"] = [[str(inet.to_address(number)) for number in span] for span in pool.carved]
    return document


def grant_document(grant: Grant) -> dict[str, Any]:
    """Its fields. ``due_at`` as ISO 8601; ``children`` and ``within`` as such documents themselves."""
    words = ("id", "kind", "value", "generation", "status", "pool_id", "slot", "part", "created", "last_owner")
    document = {word: getattr(grant, word) for word in words}
    document["owner"] = grant.owner._asdict()
    document["due_at"] = grant.due_at.isoformat() if grant.due_at else None
    document["children"] = [grant_document(child) for child in grant.children]
    document["within"] = grant_document(grant.within) if grant.within else None
    return document
