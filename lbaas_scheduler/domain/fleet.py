"""The fleet as the scheduler reads it: classes of devices, and pages of candidates off an index."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from lbaas_scheduler.domain.devices import Candidate
from lbaas_scheduler.domain.requests import ScheduleRequest
from lbaas_scheduler.domain.statuses import Form
from lbaas_scheduler.domain.trail import Rejection


class Source(StrEnum):
    """An order in which the database can read candidates off an index, a page at a time."""

    BY_LOAD = "by_load"
    """Emptiest first."""
    BY_FILL = "by_fill"
    """Fullest first."""
    BY_AGE = "by_age"
    """In the order of registration."""
    RANDOM = "random"
    """From a random place on, in the order of registration, round to that place again."""
    HOSTING_TENANT = "hosting_tenant"
    """Those that hold something of the request's tenant, emptiest first."""
    HOSTING_NETWORK = "hosting_network"
    """Those that are wired to at least one of the request's networks, emptiest first."""
    WIRED = "wired"
    """Those that are wired to all of the request's networks, emptiest first."""
    FIRST_OF_TENANT = "first_of_tenant"
    """As BY_LOAD, but empty as soon as any device holds something of the request's tenant."""
    FIRST_OF_NETWORK = "first_of_network"
    """As BY_LOAD, but empty as soon as any device is wired to one of the request's networks."""


@dataclass(frozen=True, slots=True)
class DeviceClass:
    """What devices are filtered by. ``tenant_id`` "" = the operator's."""

    id: int
    service: str
    device_type: str
    zone: str
    form: Form
    tenant_id: str
    shared: bool
    traits: frozenset[str]


@dataclass(frozen=True, slots=True)
class Resolution:
    """Which classes may take a request.

    ``tiers``: sets of class ids, to be tried one after the other. ``dropped``: class id → code and sentence.
    ``version`` is that of the classes which were looked at: the highest id among all.
    """

    tiers: tuple[frozenset[int], ...]
    dropped: Mapping[int, tuple[str, str]] = field(default_factory=dict)
    version: int = 0


@dataclass(frozen=True, slots=True)
class PageQuery:
    """``pivot`` in [0, 1) is where a RANDOM page starts. ``seen``: ids of devices not to be read again. ``reported``: whether to
    read what the devices said of their connections."""

    request: ScheduleRequest
    class_ids: frozenset[int]
    source: Source
    size: int
    seen: frozenset[str] = frozenset()
    pivot: float = 0.0
    reported: bool = False


@dataclass(frozen=True, slots=True)
class Page:
    """``rejections``: devices that were read and cannot be used after all. ``last``: the source holds no more than this.

    ``version``: of the classes when the page was read; None = unknown, as nothing was read.
    """

    candidates: tuple[Candidate, ...]
    rejections: tuple[Rejection, ...] = ()
    last: bool = True
    version: int | None = None


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Why devices did not even become candidates: counts by code over the whole fleet, and some devices by name."""

    counts: Mapping[str, int]
    rejections: tuple[Rejection, ...]
    version: int
