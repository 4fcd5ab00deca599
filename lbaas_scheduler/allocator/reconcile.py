"""Finding what nobody wants any more, and giving it back.

Freeing a value that is in use breaks somebody's network; keeping one that is not costs a value. So: nothing is freed unless
asked for (``dry_run`` is the default), an owner must have been missing for a while (``grace_seconds``), and whoever cannot tell
frees nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Protocol

from lbaas_scheduler.allocator import checks, definitions, infra, releases
from lbaas_scheduler.allocator.context import Context, stamp
from lbaas_scheduler.allocator.core.drivers import Collision, Query, Stored
from lbaas_scheduler.allocator.core.requests import Owner, Selector, owner_of
from lbaas_scheduler.allocator.core.states import Allocation, Event, Note, Pool, RequestLog
from lbaas_scheduler.errors import LBaaSError

LOG = logging.getLogger(__name__)

ACTOR = "reconcile"
SUSPECTS = "suspect"
BATCH = 20


class Probe(Protocol):
    """Tells whether an owner lives. Brought by whoever knows the owners."""

    def __call__(self, owner: Owner) -> bool | None:
        """None = not mine, or I cannot tell. May raise, which means the same."""
        ...


@dataclass(slots=True)
class Report:
    """What was found, and done unless :attr:`dry_run`.

    :ivar kept: holds past their time whose owner lives: made final.
    :ivar suspects: owners that are missing, but not for long enough yet.
    :ivar unknown: owners about which the probe could not tell; their values are kept.
    """

    dry_run: bool
    expired: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)
    orphans: list[str] = field(default_factory=list)
    leaked: list[str] = field(default_factory=list)
    suspects: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    rested: int = 0
    undefined: list[str] = field(default_factory=list)
    forgotten: int = 0
    failed: list[str] = field(default_factory=list)


def reconcile(
    context: Context,
    probe: Probe | None = None,
    *,
    dry_run: bool = True,
    grace_seconds: float = 3600.0,
    history_days: float = 90.0,
    request_days: float = 7.0,
) -> Report:
    """One round. May run in any number of processes at once; each item is done by whoever is first.

    :param probe: without one, no owner is judged.
    :param grace_seconds: for how long an owner must have been found missing before its values are taken back.
    :param history_days: how long the audit trail is kept; 0 = for ever.
    :param request_days: for how long the answer to a request id is remembered.
    """
    report = Report(dry_run)
    found = [stored.state for stored in context.driver.read(Query(Allocation))]
    _expired(context, probe, found, report)
    _orphans(context, report)
    if probe is not None:
        _leaked(context, probe, found, report, timedelta(seconds=grace_seconds))
    _pools(context, report)
    if not dry_run:
        report.forgotten += _forget_requests(context, context.now() - timedelta(days=request_days))
        if history_days:
            report.forgotten += _forget_events(context, context.now() - timedelta(days=history_days))
    return report


def _expired(context: Context, probe: Probe | None, found: list[Allocation], report: Report) -> None:
    kept: set[str] = set()
    for state in sorted(found, key=lambda state: bool(state.parent_id)):
        if state.status != "held" or state.due_at is None or state.due_at >= context.now():
            continue
        if state.parent_id in kept:  # it went with its parent
            kept.add(state.id)
            continue
        try:
            alive = probe is not None and probe(owner_of(state))
        except Exception:
            LOG.exception("Whether %s %s lives could not be told; its hold is kept", state.owner_type, state.owner_id)
            report.unknown.append(f"{state.owner_type} {state.owner_id}")
            continue
        if alive:
            # Whoever held it went through with what he held it for, and could not say so any more.
            kept.add(state.id)
            report.kept.append(_label(context, state))
            _keep(context, state, report)
        else:
            report.expired.append(_label(context, state))
            _release(context, state, report)


def _orphans(context: Context, report: Report) -> None:
    """What lost its pool or its parent. Only what is still so when it is looked at once more is touched."""
    for finding in checks.run(context):
        if finding.rule in ("no_pool", "no_parent") and finding.repair:
            stored = context.driver.first(Allocation, "id", finding.allocation_id)
            if stored is None:
                continue
            report.orphans.append(finding.text)
            if not report.dry_run:
                _attempt(report, finding.text, lambda stored=stored: _drop(context, stored))  # type: ignore[misc]


def _drop(context: Context, stored: Stored[Allocation]) -> None:
    txn = context.driver.begin()
    txn.delete(stored)
    pool = Pool(stored.state.pool_id, stored.state.kind, "", "", stored.state.domain, {})
    txn.log(context.event("release", ACTOR, pool, stored.state, note="orphan"))
    txn.commit()


def _leaked(context: Context, probe: Probe, found: list[Allocation], report: Report, grace: timedelta) -> None:
    by_owner: dict[Owner, list[Allocation]] = {}
    for state in found:
        if state.status == "active" and state.owner_type != infra.INFRA:
            by_owner.setdefault(owner_of(state), []).append(state)
    known = {stored.state.name: stored for stored in context.driver.read(Query(Note, prefix=(SUSPECTS,)))}
    for owner, states in sorted(by_owner.items()):
        name = f"{owner.type}/{owner.id}"
        suspect = known.pop(name, None)
        alive = _ask(probe, owner)
        if alive is None:
            report.unknown.append(f"{owner.type} {owner.id}")
        elif alive and suspect is not None:
            _forget(context, suspect)
        elif not alive:
            _judge(context, owner, states, suspect, report, grace)
    for leftover in known.values():
        _forget(context, leftover)


def _ask(probe: Probe, owner: Owner) -> bool | None:
    try:
        return probe(owner)
    except Exception:
        LOG.exception("Whether %s %s lives could not be told; its values are kept", owner.type, owner.id)
        return None


def _judge(
    context: Context, owner: Owner, states: list[Allocation], suspect: Stored[Note] | None, report: Report, grace: timedelta
) -> None:
    """Missing: noted at first, and taken back when it has been missing for long enough."""
    now = context.now()
    name = f"{owner.type}/{owner.id}"
    if suspect is None:
        txn = context.driver.begin()
        txn.insert(Note(SUSPECTS, name, now.isoformat().encode()))
        _quietly(txn.commit)
    since = datetime.fromisoformat(suspect.state.data.decode()) if suspect else now
    if now - since < grace:
        report.suspects.append(f"{owner.type} {owner.id}")
        return
    for state in states:
        report.leaked.append(_label(context, state))
        _release(context, state, report)
    if suspect is not None and not report.dry_run:
        _forget(context, suspect)


def _pools(context: Context, report: Report) -> None:
    for stored in context.driver.read(Query(Pool)):
        pool = stored.state
        if pool.kind not in context.kinds:
            continue
        known = context.understand(stored)
        if known.definition.config["pick"] != "longest_free":
            due = Query(Allocation, "due", (pool.id, "quarantined"), hi=context.now())
            report.rested += context.driver.count(due)
            if not report.dry_run:
                _quietly(lambda known=known: releases.sweep(context, known, ACTOR))  # type: ignore[misc]
        if pool.state == "draining" and not releases.in_use(context, pool.id):
            report.undefined.append(f"{pool.kind} {pool.label}")
            if not report.dry_run:
                selector = Selector(pool.kind, pool.name, pool.scope)
                _attempt(report, pool.label, lambda s=selector: definitions.undefine(context, s, actor=ACTOR))  # type: ignore[misc]


def _release(context: Context, state: Allocation, report: Report) -> None:
    if report.dry_run:
        return

    def give_back() -> None:
        # With the generation that was judged: whoever committed or changed it meanwhile keeps it.
        releases.release(context, state.id, state.generation, missing_ok=True, actor=ACTOR)

    _attempt(report, _label(context, state), give_back)


def _keep(context: Context, state: Allocation, report: Report) -> None:
    if not report.dry_run:
        _attempt(report, _label(context, state), lambda: releases.commit(context, state.id, state.generation, actor=ACTOR))


def _attempt(report: Report, what: str, work: Callable[[], object]) -> None:
    """One that cannot be done must not keep the others from being done."""
    try:
        work()
    except (LBaaSError, Collision) as error:
        LOG.warning("Not reconciled: %s: %s", what, error)
        report.failed.append(f"{what}: {error}")


def _quietly(work: Callable[[], object]) -> None:
    try:
        work()
    except Collision:
        LOG.debug("Somebody else was faster")


def _forget(context: Context, stored: Stored[Note]) -> None:
    txn = context.driver.begin()
    txn.delete(stored)
    _quietly(txn.commit)


def _forget_requests(context: Context, before: datetime) -> int:
    old = [stored for stored in context.driver.read(Query(RequestLog)) if stored.state.at < before]
    return _delete(context, old)


def _forget_events(context: Context, before: datetime) -> int:
    return _delete(context, context.driver.read(Query(Event, hi=stamp(before))))


def _delete(context: Context, old: list[Stored[RequestLog]] | list[Stored[Event]]) -> int:
    for start in range(0, len(old), BATCH):
        txn = context.driver.begin()
        for stored in old[start : start + BATCH]:
            txn.delete(stored)
        _quietly(txn.commit)
    return len(old)


def _label(context: Context, state: Allocation) -> str:
    return f"{state.kind} {context.show(state)} of {state.owner_type} {state.owner_id}"
