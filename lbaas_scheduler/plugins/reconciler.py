"""Repairs what did not arrive: the one background job of a server.

Any number of servers run it at once on one database. No leader is needed: each piece of work is a row that is claimed by a
compare-and-swap.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa
from oslo_config import cfg

from lbaas_scheduler.db import agents, deployments, device_agents
from lbaas_scheduler.db.deployments import DeploymentRow
from lbaas_scheduler.db.session import Database
from lbaas_scheduler.devices.assignments import Assignments
from lbaas_scheduler.devices.breaker import CircuitBreaker
from lbaas_scheduler.devices.periodic import Periodic
from lbaas_scheduler.domain import clock
from lbaas_scheduler.domain.deployments import Result
from lbaas_scheduler.errors import Unavailable
from lbaas_scheduler.plugins.callbacks import Outcome, Reports
from lbaas_scheduler.plugins.casts import Casts
from lbaas_scheduler.plugins.foreign_agents import incompatible_version

LOG = logging.getLogger(__name__)

JITTER = 0.2
"""Each pause differs by up to this share, so that servers started together drift apart."""


class Reconciler:
    """Makes what is true on devices what is wanted in the database.

    :param conf: its group ``scheduler`` is read anew in every cycle, so that changed options count at once.
    :param breaker: stops what nobody has asked for while too much of the fleet is missing.
    :param more: further steps, taken after the reconciler's own and isolated like them.
    :param monotonic: the clock by which it tells how long it has been at work; for tests.
    """

    def __init__(
        self,
        database: Database,
        caster: Casts,
        assignments: Assignments,
        reports: Reports,
        conf: cfg.ConfigOpts,
        monotonic: Callable[[], float] = time.monotonic,
        breaker: CircuitBreaker | None = None,
        more: Sequence[Callable[[], None]] = (),
        database_clock: clock.DatabaseClock = clock.DATABASE_CLOCK,
    ) -> None:
        self._database = database
        self._caster = caster
        self._assignments = assignments
        self._reports = reports
        self._conf = conf
        self._breaker = breaker
        self._more = more
        self._clock = database_clock
        self._clock_trouble = ""
        self._monotonic = monotonic
        self._choose = random.Random()  # noqa: S311 - spreads load, hides nothing
        self._steady_since = monotonic()
        self._thread = Periodic("reconciler", self.run_once, self._pause)
        self._failing: set[str] = set()

    def start(self) -> None:
        """Run in a thread of its own until :meth:`stop`."""
        self._thread.start()

    def stop(self) -> None:
        """End, and return once the cycle that is under way has ended. May be called without :meth:`start`, and twice."""
        self._thread.stop()

    def run_once(self) -> None:
        """One cycle. A step that fails is logged, and taken again in the next cycle; the others are taken all the same."""
        judging = (self._take_over, self._refresh, self._time_out) if self._may_judge() else ()
        for step in (self._assign, *judging, self._cast_again, *self._more):
            self._isolated(step)

    def _pause(self) -> float:
        return float(self._options.reconcile_interval_seconds * self._choose.uniform(1 - JITTER, 1 + JITTER))

    @property
    def _options(self) -> Any:
        return self._conf.scheduler

    def _isolated(self, step: Callable[[], None]) -> None:
        name = step.__name__.strip("_")
        try:
            step()
        except Exception as error:
            if isinstance(error, Unavailable):
                # An agent that could not report during an outage is not dead: wait until all had the time to report again.
                self._steady_since = self._monotonic()
            if name in self._failing:
                LOG.debug("Still failing: %s: %s", name, error)
            elif isinstance(error, Unavailable):
                LOG.warning("%s: %s It is tried again in every cycle.", name, error.message)
            else:
                LOG.exception("%s failed; it is tried again in every cycle", name)
            self._failing.add(name)
        else:
            if name in self._failing:
                LOG.info("%s works again", name)
            self._failing.discard(name)

    def _may_judge(self) -> bool:
        """Whether the time tells this server who is dead and what is overdue. Says so when that changes."""
        trouble = self._clock.trouble(self._options.max_clock_difference_seconds, self._options.agent_down_seconds)
        if trouble and not self._clock_trouble:
            LOG.error(
                "%s Until that is over it declares nobody dead and nothing overdue, and leaves that to other servers", trouble
            )
        elif self._clock_trouble and not trouble:
            LOG.info("The time is right again")
        self._clock_trouble = trouble
        return not trouble

    def _assign(self) -> None:
        self._caster.announce(self._assignments.assign_waiting())

    def _take_over(self) -> None:
        """Move devices off dead agents, but not right after a start or an outage, when even living ones look dead."""
        heard_since = self._assignments.heard_since()
        if not any(agent.alive(heard_since) for agent in self._database.read(agents.list_all)):
            # All at once is no death of agents, but of the way to them: the first to be heard again must not get everything.
            self._steady_since = self._monotonic()
        frozen = self._breaker is not None and self._breaker.update()
        if not frozen and self._monotonic() - self._steady_since >= self._options.agent_down_seconds:
            self._caster.announce(self._assignments.take_over())

    def _refresh(self) -> None:
        changed = self._assignments.refresh_all()
        if changed:
            LOG.info("%d device(s) were opened or closed because their agents came back or died", changed)

    def _time_out(self) -> None:
        """Turn what has been pending for too long into ERROR, with the cause. It goes on being cast, and may still succeed."""
        before = clock.utcnow() - timedelta(seconds=self._options.pending_timeout_seconds)
        for row in self._database.read(lambda conn: deployments.overdue(conn, before, self._options.reconcile_batch_size)):
            try:
                outcome = self._database.write(lambda conn, late=row: self._give_up(conn, late))  # type: ignore[misc]
                if outcome.moved:
                    self._caster.cast(outcome.moved)
            except Unavailable:
                raise
            except Exception:
                LOG.exception("The overdue state of %s on device %s cannot be recorded", row.resource_id, row.device_id)

    def _give_up(self, conn: sa.Connection, row: DeploymentRow) -> Outcome:
        if not deployments.give_up_waiting(conn, row):
            return Outcome()
        cause = self._cause(conn, row)
        LOG.warning("%s on device %s is overdue: %s", row.resource_id, row.device_id, cause)
        return self._reports.apply_reports(conn, [(row.device_id, Result(row.resource_id, row.version, cause))])

    def _cause(self, conn: sa.Connection, row: DeploymentRow) -> str:
        binding = device_agents.by_devices(conn, [row.device_id]).get(row.device_id)
        what = "the removal" if row.removing else "the change"
        if binding is None:
            cause = "No agent drives the device."
        elif version := incompatible_version(agents.get(conn, binding.agent_id)):
            cause = f"The agent on host {binding.host} speaks version {version} of the messages, which this server does not."
        else:
            cause = f"The agent on host {binding.host} has not confirmed {what} within {self._options.pending_timeout_seconds} s."
        return f"{cause} Last error: {row.error}" if row.error else cause

    def _cast_again(self) -> None:
        """Cast what is due: in random order, in batches, as long as there is any."""
        while not self._thread.stopping:
            rows = self._claim()
            unsent = self._caster.send([row.resource_id for row in rows])
            if unsent:
                self._hand_back([row for row in rows if row.resource_id in unsent])
            if unsent or len(rows) < self._options.reconcile_batch_size:
                return

    def _claim(self) -> Sequence[DeploymentRow]:
        now = clock.utcnow()
        limit = self._options.reconcile_batch_size
        return self._database.write(lambda conn: deployments.claim_due(conn, now, limit, self._later, self._choose))

    def _hand_back(self, rows: Sequence[DeploymentRow]) -> None:
        soon = clock.utcnow() + timedelta(seconds=self._options.reconcile_interval_seconds)
        self._database.write(lambda conn: deployments.hand_back(conn, rows, soon))

    def _later(self, attempts: int) -> datetime:
        """The pause doubles from the deadline of a first cast up to the longest."""
        longest = self._options.max_backoff_seconds
        # The exponent is bounded so that the product stays finite.
        seconds = min(
            self._options.cast_deadline_seconds * 2.0 ** min(attempts, 32), max(longest, self._options.cast_deadline_seconds)
        )
        return clock.utcnow() + timedelta(seconds=seconds * self._choose.uniform(1 - JITTER, 1 + JITTER))
