"""The engine agrees with a reference that looks at every device by itself, for random fleets and requests."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lbaas_scheduler.db.models import device_agents, device_capacities, device_load, device_networks, devices, placements
from lbaas_scheduler.db.session import Database
from lbaas_scheduler.domain.clock import utcnow
from lbaas_scheduler.domain.devices import Device
from lbaas_scheduler.domain.requests import ScheduleRequest, Tenancy, Verdict
from lbaas_scheduler.domain.statuses import AdminState, DeviceStatus, Form
from lbaas_scheduler.errors import NoValidDevice
from lbaas_scheduler.extensions import load_algorithms
from tests.database import configured
from tests.factories import add_agent, add_devices, new_device, new_request
from tests.fakes import ScriptedHandler
from tests.functional.placement.conftest import AGENT_DOWN_SECONDS, new_placer

ALGORITHMS, _ = load_algorithms(configured("sqlite://"), "LoadBalancer")
TRAITS = ("PROTOCOL_HTTP", "PROTOCOL_HTTPS", "CUSTOM_SSD")
AGENTS = ("agent-1", "dead", "resting", None)

some_traits = st.frozensets(st.sampled_from(TRAITS))


@dataclass(frozen=True)
class Registered:
    device: Device
    agent: str | None


@st.composite
def registered(draw: st.DrawFn) -> Registered:
    tenant_id, shared = draw(st.sampled_from([(None, True), ("tenant", False), ("other", False), ("other", True)]))
    device = new_device(
        "",
        id="to-be-numbered",
        device_type=draw(st.sampled_from(["fake", "fake", "alien"])),
        zone=draw(st.sampled_from(["", "a"])),
        form=draw(st.sampled_from(list(Form))),
        tenant_id=tenant_id,
        shared=shared,
        traits=draw(some_traits),
        admin_state=draw(st.sampled_from([AdminState.ENABLED, AdminState.ENABLED, AdminState.ENABLED, AdminState.DRAINING])),
        status=draw(st.sampled_from([DeviceStatus.ONLINE, DeviceStatus.ONLINE, DeviceStatus.ONLINE, DeviceStatus.OFFLINE])),
        vips=draw(st.sampled_from([0, 1, 5, -1])),
        capacities=draw(st.sampled_from([{}, {"CONNECTIONS": 10}, {"CUSTOM_TPS": 10}])),
        extra={"refuse": draw(st.sampled_from([False, False, False, True]))},
    )
    return Registered(device, draw(st.sampled_from([*["agent-1"] * 5, *AGENTS])))


requests = st.builds(
    new_request,
    required=some_traits.filter(lambda traits: len(traits) < 2),
    forbidden=st.sampled_from([frozenset(), frozenset({"CUSTOM_SSD"})]),
    tenancy=st.sampled_from([Tenancy.PRIVATE_FIRST, Tenancy.PRIVATE_ONLY, Tenancy.SHARED_ONLY]),
    form=st.sampled_from([None, None, Form.PHYSICAL]),
    zone=st.sampled_from([None, None, "a"]),
    demand=st.sampled_from(
        [{"VIPS": 1}, {"VIPS": 1, "CONNECTIONS": 11}, {"VIPS": 1, "CUSTOM_TPS": 11}, {"VIPS": 1, "CUSTOM_TPS": 3}]
    ),
    device_types=st.sampled_from([frozenset(), frozenset({"fake"})]),
    networks=st.sampled_from([(), ("net",)]),
)


def reasons(it: Registered, request: ScheduleRequest) -> list[str]:
    """Everything that speaks against one device, in the order in which it is said. Written without a look at the engine."""
    device, found = it.device, []
    own = device.tenant_id == request.tenant_id
    allowed = {Tenancy.PRIVATE_ONLY: own, Tenancy.SHARED_ONLY: device.shared, Tenancy.PRIVATE_FIRST: own or device.shared}
    checks = [
        ("device_type", bool(request.device_types) and device.device_type not in request.device_types),
        ("tenancy", not allowed[request.tenancy]),
        ("zone", request.zone is not None and device.zone != request.zone),
        ("form", request.form is not None and device.form is not request.form),
        *((f"trait.{trait}", trait not in device.traits) for trait in sorted(request.required)),
        *((f"trait.{trait}", trait in device.traits) for trait in sorted(request.forbidden)),
        ("device.draining", device.admin_state is AdminState.DRAINING),
        ("device.offline", device.status is DeviceStatus.OFFLINE),
        ("agent.none", it.agent is None),
        ("agent.disabled", it.agent == "resting"),
        ("agent.down", it.agent == "dead"),
        *((f"capacity.{name}", not fits(device, name, amount)) for name, amount in sorted(request.demand.items())),
        (f"handler.{device.device_type}", device.device_type == "alien" or device.extra["refuse"]),
    ]
    found += [code for code, applies in checks if applies]
    return found


def fits(device: Device, name: str, amount: int) -> bool:
    if name not in device.capacities:
        return not name.startswith("CUSTOM_")
    return device.capacities[name].limit == -1 or amount <= device.capacities[name].limit


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize("algorithm", sorted(ALGORITHMS))
@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(fleet=st.lists(registered(), max_size=8), request_=requests)
def test_the_engine_agrees_with_a_reference(database: Database, algorithm: str, fleet: list[Registered], request_: Any) -> None:
    fleet = [replace(it, device=replace(it.device, id=f"d{number}", name=f"d{number}")) for number, it in enumerate(fleet)]
    install(database, fleet)
    expected = {it.device.id: reasons(it, request_) for it in fleet}
    handler = ScriptedHandler(is_good=lambda device, _: Verdict(not device.device.extra["refuse"], "refuses"))
    placer = new_placer(database, handler, algorithm, max_rounds=100)
    able = {device_id for device_id, why in expected.items() if not why}
    for turn in itertools.count():
        # Taking what was placed on out of the fleet shows who else may take the request.
        attempt = replace(request_, resource_id=f"vip-{turn}", exclude=request_.exclude)
        try:
            device_id = placer.place(attempt).device_id
        except NoValidDevice as error:
            said = {it["device_id"]: it["code"] for it in error.kwargs["trail"]["rejections"] if it["code"] != "excluded"}
            assert able == set()
            assert said == {device_id: why[0] for device_id, why in expected.items() if why}
            return
        assert device_id in able
        able.remove(device_id)
        request_ = replace(request_, exclude=request_.exclude | {device_id})


def install(database: Database, fleet: list[Registered]) -> None:
    def empty(conn: sa.Connection) -> None:
        for table in (placements, device_networks, device_capacities, device_agents, device_load, devices):
            conn.execute(sa.delete(table))

    database.write(empty)
    for it in fleet:
        add_devices(database, it.device, agent=it.agent)


@pytest.fixture(autouse=True)
def unusable_agents(database: Database) -> None:
    add_agent(database, "dead", heartbeat_at=utcnow() - timedelta(seconds=AGENT_DOWN_SECONDS + 60))
    add_agent(database, "resting", up=False)
