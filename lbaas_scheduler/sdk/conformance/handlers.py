"""The contract of :class:`~lbaas_scheduler.sdk.handlers.DeviceHandler` as tests."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from lbaas_scheduler.domain import traits
from lbaas_scheduler.domain.devices import Candidate, Device
from lbaas_scheduler.domain.loadbalancers import Vip
from lbaas_scheduler.domain.requests import ScheduleRequest, Verdict
from lbaas_scheduler.errors import InvalidRequest
from lbaas_scheduler.sdk.conformance import documents
from lbaas_scheduler.sdk.handlers import Ability, DeviceHandler, HealthReport

SECRET = "s3cr3t-of-the-conformance-suite"  # noqa: S105 - it guards nothing
CALLS_PER_SECOND = 200
"""What the scheduler may need of one handler when it looks for a device in a fleet of thousands."""


class HandlerConformance:
    """Needs the fixtures ``handler`` and ``device``."""

    @pytest.fixture
    def bad_devices(self) -> Mapping[str, Device]:
        """Devices that the handler must refuse, each under a name that says what is wrong with it. Default: none."""
        return {}

    @pytest.fixture
    def request_for(self, device: Device) -> ScheduleRequest:
        """What the scheduler asks about."""
        return schedule_request(device, documents.vip(port=80, members=(documents.member(),)))

    def test_device_type_is_that_of_the_device(self, handler: DeviceHandler, device: Device) -> None:
        assert handler.device_type == device.device_type

    def test_every_declared_trait_is_a_known_one(self, handler: DeviceHandler) -> None:
        assert [name for name in handler.traits if not traits.is_trait(name)] == []

    def test_a_load_balancer_speaks_a_protocol_and_has_a_method(self, handler: DeviceHandler) -> None:
        assert any(name.startswith("PROTOCOL_") for name in handler.traits)
        assert any(name.startswith("METHOD_") for name in handler.traits)

    def test_a_good_device_is_accepted(self, handler: DeviceHandler, device: Device) -> None:
        handler.validate_device(device)

    def test_each_bad_device_is_refused_with_a_reason(self, handler: DeviceHandler, bad_devices: Mapping[str, Device]) -> None:
        for name, bad in bad_devices.items():
            with pytest.raises(InvalidRequest) as caught:
                handler.validate_device(bad)
            assert caught.value.message.strip(), name

    def test_a_refusal_repeats_no_secret(self, handler: DeviceHandler, bad_devices: Mapping[str, Device]) -> None:
        for name, bad in bad_devices.items():
            secrets = {**bad.management.secret, "password": SECRET}
            with pytest.raises(InvalidRequest) as caught:
                handler.validate_device(replace(bad, management=replace(bad.management, secret=secrets)))
            shown = f"{caught.value.message} {caught.value.kwargs}"
            assert [secret for secret in secrets.values() if secret and secret in shown] == [], name

    def test_is_good_answers_with_a_verdict_for_every_shape_of_vip(self, handler: DeviceHandler, device: Device) -> None:
        for protocol, method, sticky, kind in documents.shapes(handler.traits):
            monitors = (documents.monitor(kind),) if kind else ()
            document = documents.vip(
                port=80,
                protocol=protocol,
                method=method,
                monitors=monitors,
                session_persistence=documents.persistence(sticky),
            )
            verdict = handler.is_good(Candidate(device), schedule_request(device, document))
            assert isinstance(verdict, Verdict)
            assert verdict.ok or verdict.reason

    def test_weight_is_between_0_and_100(self, handler: DeviceHandler, device: Device, request_for: ScheduleRequest) -> None:
        for load in (0, 5000, 10000):
            assert 0 <= handler.weigh(Candidate(device, load=load), request_for) <= 100

    def test_the_same_question_has_the_same_answer(
        self, handler: DeviceHandler, device: Device, request_for: ScheduleRequest
    ) -> None:
        candidate = Candidate(device)
        assert handler.is_good(candidate, request_for) == handler.is_good(candidate, request_for)
        assert handler.weigh(candidate, request_for) == handler.weigh(candidate, request_for)

    def test_answers_come_fast_enough_for_a_large_fleet(
        self, handler: DeviceHandler, device: Device, request_for: ScheduleRequest
    ) -> None:
        candidate, begin = Candidate(device), time.monotonic()
        for _ in range(CALLS_PER_SECOND):
            handler.is_good(candidate, request_for)
            handler.weigh(candidate, request_for)
        assert time.monotonic() - begin < 1.0

    def test_abilities_are_those_that_are_implemented(self, handler: DeviceHandler) -> None:
        kind = type(handler)
        assert (Ability.SELECT in handler.abilities) == (kind.select is not DeviceHandler.select)
        assert (Ability.MONITOR in handler.abilities) == (kind.get_status is not DeviceHandler.get_status)

    def test_select_orders_what_it_was_offered_and_invents_nothing(
        self, handler: DeviceHandler, device: Device, request_for: ScheduleRequest
    ) -> None:
        if Ability.SELECT not in handler.abilities:
            pytest.skip("the handler does not select")
        offered = [Candidate(replace(device, id=documents.new_id()), load=load) for load in (9000, 0, 5000)]
        chosen: Sequence[Candidate] = handler.select(offered, request_for)
        assert {item.device.id for item in chosen} <= {item.device.id for item in offered}
        assert len({item.device.id for item in chosen}) == len(chosen)

    def test_status_is_a_report(self, handler: DeviceHandler, device: Device) -> None:
        if Ability.MONITOR not in handler.abilities:
            pytest.skip("the handler does not monitor")
        assert isinstance(handler.get_status(device), HealthReport)


def schedule_request(device: Device, document: Vip) -> ScheduleRequest:
    """The question whether ``device`` can take the VIP."""
    return ScheduleRequest(document.id, device.service, document.tenant_id, resource=document)
