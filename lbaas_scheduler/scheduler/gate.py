"""The one gate that calls of vendors' handlers go through.

It bounds their time, turns whatever they raise into a logged verdict, and keeps one vendor's bug from stopping another
vendor's placement.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from lbaas_scheduler.domain.devices import Candidate
from lbaas_scheduler.domain.requests import ScheduleRequest, Verdict
from lbaas_scheduler.errors import DriverError, InvalidRequest
from lbaas_scheduler.scheduler.recorder import Recorder
from lbaas_scheduler.sdk.handlers import Ability, DeviceHandler

LOG = logging.getLogger(__name__)

T = TypeVar("T")

MAX_STUCK_CALLS = 8
"""So many calls of one handler that ran past their time and no further one is made until one of them returns."""

DEFAULT_WEIGHT = 50.0
"""What :meth:`DeviceHandler.weigh` says when a vendor does not override it."""


class HandlerBusy(DriverError):
    """The handler was not asked: too many of its earlier calls have not returned."""


@dataclass(frozen=True, slots=True)
class Judged:
    """A candidate that its handler let through. ``weight`` 0..100."""

    candidate: Candidate
    weight: float


class HandlerGate:
    """Calls handlers of one service, each vendor in threads of its own.

    :param handlers: device type → handler.
    :param timeout_seconds: what one call may take; for a page of candidates, what a vendor's whole share of it may take.
    :param max_stuck: so many calls of one handler may run past their time.
    """

    def __init__(self, handlers: Mapping[str, DeviceHandler], timeout_seconds: float, max_stuck: int = MAX_STUCK_CALLS) -> None:
        self.handlers = handlers
        self.timeout_seconds = timeout_seconds
        self._stuck = {device_type: _Stuck(max_stuck) for device_type in handlers}

    def judge(self, request: ScheduleRequest, candidates: Sequence[Candidate], recorder: Recorder) -> list[Judged]:
        """Ask each candidate's handler; the rejected ones go to ``recorder``. Keeps the order."""
        shares: dict[str, list[Candidate]] = defaultdict(list)
        for candidate in candidates:
            shares[candidate.device.device_type].append(candidate)
        trials = [self._start_trial(device_type, share, request) for device_type, share in shares.items()]
        deadline = time.monotonic() + self.timeout_seconds
        weights: dict[str, float] = {}
        for trial in trials:
            trial.wait(deadline)
            trial.collect(weights, recorder)
        return [
            Judged(_weighed(candidate, weights[candidate.device.id]), weights[candidate.device.id])
            for candidate in candidates
            if candidate.device.id in weights
        ]

    def select(self, request: ScheduleRequest, ranked: Sequence[Candidate], recorder: Recorder) -> list[Candidate]:
        """Let each handler that can (:attr:`~lbaas_scheduler.sdk.handlers.Ability.SELECT`) order its own devices.

        Device types come in the order of their best devices. What a handler leaves out is recorded as rejected; so are all of
        its devices when it fails, or names one that it was not offered.
        """
        shares: dict[str, list[Candidate]] = defaultdict(list)
        for candidate in ranked:
            shares[candidate.device.device_type].append(candidate)
        return [it for device_type, share in shares.items() for it in self._selected(device_type, share, request, recorder)]

    def _selected(
        self, device_type: str, share: Sequence[Candidate], request: ScheduleRequest, recorder: Recorder
    ) -> Sequence[Candidate]:
        if Ability.SELECT not in self.handlers[device_type].abilities:
            return share
        offered = {candidate.device.id: candidate for candidate in share}
        objection = f"was not selected by the handler of {device_type}"
        try:
            answer = self.call(device_type, lambda handler: list(handler.select(share, request)))
            chosen = list(dict.fromkeys(candidate.device.id for candidate in answer))
            selected = [offered.pop(device_id) for device_id in chosen]
        except (DriverError, InvalidRequest) as error:
            selected, objection = [], error.message
        except (AttributeError, KeyError):
            LOG.error("The handler of %s selected something that it was not offered", device_type)
            selected, objection = [], f"the handler of {device_type} selected something that it was not offered"
        for candidate in share:
            if candidate not in selected:
                recorder.reject(candidate, f"handler.{device_type}", objection)
        return selected

    def call(self, device_type: str, work: Callable[[DeviceHandler], T], timeout_seconds: float | None = None) -> T:
        """Make one call of a handler, bounded in time.

        :raises InvalidRequest: as the handler raised it.
        :raises HandlerBusy: it was not asked.
        :raises DriverError: the handler is missing, raised anything else, or took too long.
        """
        handler = self.handlers.get(device_type)
        if handler is None:
            raise DriverError(reason=f"no handler is loaded for device type '{device_type}'")
        bounded = timeout_seconds if timeout_seconds is not None else self.timeout_seconds
        call = _Call(device_type, self._stuck[device_type], lambda: work(handler))
        if not call.wait(time.monotonic() + bounded):
            fault = HandlerBusy if call.busy else DriverError
            raise fault(reason=f"the handler of {device_type} {call.fault(bounded)}")
        if isinstance(call.error, InvalidRequest):
            raise call.error
        if call.error is not None:
            raise DriverError(reason=f"the handler of {device_type} {call.fault(bounded)}") from call.error
        return call.value  # type: ignore[no-any-return]

    def _start_trial(self, device_type: str, share: list[Candidate], request: ScheduleRequest) -> _Trial:
        handler = self.handlers.get(device_type)
        trial = _Trial(device_type, share, request, self.timeout_seconds)
        if handler is None:
            return trial
        if _has_no_opinion(handler):
            trial.accept_all()
            return trial
        trial.call = _Call(device_type, self._stuck[device_type], lambda: trial.run(handler))
        return trial


def _weighed(candidate: Candidate, weight: float) -> Candidate:
    return candidate if candidate.weight == weight else replace(candidate, weight=weight)


def _has_no_opinion(handler: DeviceHandler) -> bool:
    """A handler that overrides neither method accepts everything: no thread is needed to hear that."""
    cls = type(handler)
    return cls.is_good is DeviceHandler.is_good and cls.weigh is DeviceHandler.weigh


class _Stuck:
    """How many calls of one handler were given up and have not returned yet. Calls that are in time do not count, however many
    placements run at once."""

    def __init__(self, limit: int) -> None:
        self.lock = threading.Lock()
        self.limit = limit
        self.calls = 0


class _Call:
    """One call in a thread of its own, which is left behind if it does not end in time."""

    def __init__(self, device_type: str, stuck: _Stuck, work: Callable[[], Any]) -> None:
        self.device_type = device_type
        self.value: Any = None
        self.error: BaseException | None = None
        self._stuck = stuck
        self._work = work
        self._done = threading.Event()
        self._given_up = False
        self.busy = stuck.calls >= stuck.limit
        if not self.busy:
            threading.Thread(target=self._run, name=f"handler-{device_type}", daemon=True).start()

    def _run(self) -> None:
        try:
            self.value = self._work()
        except BaseException as error:  # a vendor's sys.exit() must not pass for an answer either
            self.error = error
            if not isinstance(error, InvalidRequest):
                LOG.exception("The handler of %s raised", self.device_type)
        finally:
            with self._stuck.lock:
                self._done.set()
                self._stuck.calls -= self._given_up

    def wait(self, deadline: float) -> bool:
        if self.busy:
            LOG.error("The handler of %s has %d calls that do not return; it is not asked", self.device_type, self._stuck.limit)
            return False
        if self._done.wait(max(0.0, deadline - time.monotonic())):
            return True
        with self._stuck.lock:
            if self._done.is_set():
                return True
            self._given_up = True
            self._stuck.calls += 1
        LOG.error("The handler of %s did not answer in time", self.device_type)
        return False

    def fault(self, timeout_seconds: float) -> str:
        if self.busy:
            return "is stuck in earlier calls"
        if self.error is not None:
            return f"raised {type(self.error).__name__}"
        return f"did not answer within {timeout_seconds:g} s"


class _Trial:
    """One vendor's share of a page. Answers are kept as they come, so that a slow last one does not cost the first."""

    def __init__(self, device_type: str, share: Sequence[Candidate], request: ScheduleRequest, timeout_seconds: float) -> None:
        self.call: _Call | None = None
        self._device_type = device_type
        self._share = share
        self._request = request
        self._timeout_seconds = timeout_seconds
        self._answers: list[tuple[Any, Any]] = []
        self._accepted = False

    def accept_all(self) -> None:
        self._accepted = True

    def run(self, handler: DeviceHandler) -> None:
        for candidate in self._share:
            self._answers.append(self._ask(handler, candidate))

    def _ask(self, handler: DeviceHandler, candidate: Candidate) -> tuple[Any, Any]:
        """A device that its handler stumbles over is rejected by itself: it must not cost the vendor's other devices."""
        try:
            verdict = handler.is_good(candidate, self._request)
            accepted = isinstance(verdict, Verdict) and verdict.ok
            return verdict, handler.weigh(candidate, self._request) if accepted else None
        except Exception as error:
            LOG.exception("The handler of %s raised for device %s", self._device_type, candidate.device.id)
            return Verdict.no(f"the handler of {self._device_type} raised {type(error).__name__}"), None

    def wait(self, deadline: float) -> None:
        if self.call is not None:
            self.call.wait(deadline)

    def collect(self, weights: dict[str, float], recorder: Recorder) -> None:
        if self._accepted:
            weights.update((candidate.device.id, DEFAULT_WEIGHT) for candidate in self._share)
            return
        answers = list(self._answers)  # a call that was given up may still be appending
        for candidate, answer in zip(self._share, answers, strict=False):
            objection = _objection(*answer)
            if objection is None:
                weights[candidate.device.id] = float(answer[1])
            else:
                recorder.reject(candidate, self._code, objection)
        for candidate in self._share[len(answers) :]:
            recorder.reject(candidate, self._code, f"the handler of {self._device_type} {self._fault()}")

    @property
    def _code(self) -> str:
        return f"handler.{self._device_type}"

    def _fault(self) -> str:
        return "is not loaded" if self.call is None else self.call.fault(self._timeout_seconds)


def _objection(verdict: Any, weight: Any) -> str | None:
    """Why an answer does not let the device through; None = it does."""
    if not isinstance(verdict, Verdict):
        return f"the handler returned {type(verdict).__name__} instead of a verdict"
    if not verdict.ok:
        return verdict.reason or "the handler gave no reason"
    if isinstance(weight, bool) or not isinstance(weight, int | float) or not math.isfinite(weight) or not 0 <= weight <= 100:
        return f"the handler returned the weight {str(weight)[:40]}; 0 to 100 is allowed"
    return None
