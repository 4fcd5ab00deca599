"""Evening out the load of devices by as few moves as possible. Pure: a snapshot in, a plan out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from lbaas_scheduler.domain.moves import BalancePlan, Transfer


@dataclass(frozen=True, slots=True)
class Bin:
    """A device. ``resources``: ids of what it has; ``limit``: how many it takes, None = any number.

    ``open``: whether it takes new ones.
    """

    device_id: str
    resources: tuple[str, ...]
    limit: int | None
    open: bool = True


EPSILON = 1e-9
"""Shares are fractions: equal ones may differ by the last bit."""

Allowed = Callable[[str, str], bool]
"""Resource id, device id → whether the device may take the resource."""


def plan(bins: Sequence[Bin], allowed: Allowed, bound: float, max_moves: int) -> BalancePlan:
    """Moves after which no device is fuller than another by more than ``bound``, as far as the resources may go there.

    Each move goes from the fullest to the emptiest device that can exchange something: with one resource like the other, no
    plan of fewer moves reaches the bound. Fill is the share of the limit; among devices without a limit it is the share of
    what the fullest of all has at the start.

    :param bound: largest difference of fill, 0 to 1, that is left alone.
    :param max_moves: the plan is cut there.
    """
    scale = max((len(it.resources) for it in bins), default=0) or 1
    room = {it.device_id: it.limit if it.limit is not None else scale for it in bins if it.limit != 0}
    held = {it.device_id: list(it.resources) for it in bins if it.device_id in room}
    limits = {it.device_id: it.limit for it in bins}
    takes = {it.device_id for it in bins if it.open}
    first_home = {resource_id: it.device_id for it in bins for resource_id in it.resources}
    before = {device_id: len(resources) for device_id, resources in held.items()}
    moved: dict[str, str] = {}
    while len(moved) < max_moves and (step := _next(held, room, limits, takes, moved, allowed, bound)):
        held[step.source_id].remove(step.resource_id)
        held[step.target_id].append(step.resource_id)
        moved[step.resource_id] = step.target_id
    transfers = tuple(Transfer(resource_id, first_home[resource_id], target) for resource_id, target in moved.items())
    after = {device_id: len(resources) for device_id, resources in held.items()}
    return BalancePlan(transfers, _spread(before, room), _spread(after, room), before, after)


def _next(
    held: Mapping[str, Sequence[str]],
    room: Mapping[str, int],
    limits: Mapping[str, int | None],
    takes: set[str],
    moved: Mapping[str, str],
    allowed: Allowed,
    bound: float,
) -> Transfer | None:
    fill = {device_id: len(resources) / room[device_id] for device_id, resources in held.items()}
    # Ids break ties, so that the plan that was shown is the plan that is made again.
    fullest = sorted(fill, key=lambda it: (-fill[it], it))
    emptiest = sorted(takes & fill.keys(), key=lambda it: (fill[it], it))
    for source in fullest:
        for target in emptiest:
            if fill[source] - fill[target] <= bound + EPSILON:
                break
            limit = limits[target]
            if not _closer(fill, room, source, target) or (limit is not None and len(held[target]) >= limit):
                continue
            for resource_id in sorted(held[source]):
                if resource_id not in moved and allowed(resource_id, target):
                    return Transfer(resource_id, source, target)
    return None


def _closer(fill: Mapping[str, float], room: Mapping[str, int], source: str, target: str) -> bool:
    """Whether both end up between where they were: a small device's one resource may be a large share of it."""
    return fill[target] + 1 / room[target] < fill[source] - EPSILON and fill[source] - 1 / room[source] > fill[target] + EPSILON


def _spread(counts: Mapping[str, int], room: Mapping[str, int]) -> float:
    fills = [count / room[device_id] for device_id, count in counts.items()]
    return max(fills) - min(fills) if fills else 0.0
