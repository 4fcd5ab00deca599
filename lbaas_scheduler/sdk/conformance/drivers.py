"""The contract of :class:`~lbaas_scheduler.sdk.drivers.AgentDriver` as tests, without traffic."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from lbaas_scheduler.domain import traits
from lbaas_scheduler.domain.deployments import MemberHealth, Version, VipStats
from lbaas_scheduler.domain.devices import Device
from lbaas_scheduler.domain.loadbalancers import MonitorType, Persistence, Protocol, Vip
from lbaas_scheduler.errors import LBaaSError
from lbaas_scheduler.sdk.conformance import documents
from lbaas_scheduler.sdk.conformance.documents import deployment, member, monitor, vip, with_pool
from lbaas_scheduler.sdk.drivers import AgentDriver, DriverAbility
from lbaas_scheduler.sdk.handlers import DeviceHandler

DriverMaker = Callable[[], AgentDriver]


class DriverConformance:
    """Needs the fixtures ``make_driver``, ``handler`` and ``device``."""

    @pytest.fixture
    def address(self) -> str:
        """An address that VIPs may take on ``device``; the suite picks free ports on it."""
        return documents.LOOPBACK

    @pytest.fixture
    def other_device(self, device: Device) -> Device:
        """A second device, reached by the same driver. Default: the first one under another id."""
        return replace(device, id=documents.new_id(), name="other")

    @pytest.fixture
    def bad_vip(self) -> Vip | None:
        """A VIP that the device must refuse (an address that it cannot take, say). Default: none is known."""
        return None

    @pytest.fixture
    def break_device(self) -> Callable[[Device], None] | None:
        """Makes the device stop serving as if it had crashed. Default: cannot be done."""
        return None

    @pytest.fixture
    def leftovers(self) -> Callable[[Device], object]:
        """What is left of ours on a device: something empty when nothing is. Default: cannot tell."""
        return lambda _: ()

    @pytest.fixture
    def driver(self, make_driver: DriverMaker, device: Device, other_device: Device) -> Iterator[AgentDriver]:
        """The driver under test. Afterwards the devices are emptied."""
        driver = make_driver()
        yield driver
        for used in (device, other_device):
            driver.remove(used, list(driver.list_deployed(used)))
        driver.stop()

    def test_the_driver_drives_the_type_that_its_handler_knows(
        self, driver: AgentDriver, handler: DeviceHandler, device: Device
    ) -> None:
        assert driver.device_type == handler.device_type == device.device_type

    def test_an_empty_device_has_nothing_deployed(self, driver: AgentDriver, device: Device) -> None:
        assert dict(driver.list_deployed(device)) == {}
        assert dict(driver.read_stats(device)) == {}

    def test_apply_gives_one_result_per_vip_with_its_version(self, driver: AgentDriver, device: Device, address: str) -> None:
        wanted = [deployment(vip(address, members=(member(),)), epoch, epoch * 10) for epoch in (1, 2, 3)]
        results = driver.apply(device, wanted)
        assert [(item.vip_id, item.version, item.error, item.removed) for item in results] == [
            (item.vip.id, item.version, None, False) for item in wanted
        ]

    def test_what_was_applied_is_listed_with_its_version(self, driver: AgentDriver, device: Device, address: str) -> None:
        wanted = [deployment(vip(address), 3, 7), deployment(vip(address), 1, 2)]
        driver.apply(device, wanted)
        assert dict(driver.list_deployed(device)) == {item.vip.id: item.version for item in wanted}

    def test_applying_nothing_changes_nothing(self, driver: AgentDriver, device: Device, address: str) -> None:
        document = vip(address)
        driver.apply(device, [deployment(document)])
        assert list(driver.apply(device, [])) == []
        assert dict(driver.list_deployed(device)) == {document.id: Version(1, 1)}

    def test_applying_twice_is_applying_once(self, driver: AgentDriver, device: Device, address: str) -> None:
        wanted = [deployment(vip(address, members=(member(),), monitors=(monitor(),)))]
        first, second = driver.apply(device, wanted), driver.apply(device, wanted)
        assert list(first) == list(second)
        assert dict(driver.list_deployed(device)) == {wanted[0].vip.id: wanted[0].version}

    def test_a_change_leaves_vips_that_are_not_named_as_they_are(self, driver: AgentDriver, device: Device, address: str) -> None:
        one, two = vip(address), vip(address)
        driver.apply(device, [deployment(one), deployment(two)])
        results = driver.apply(device, [deployment(with_pool(one, members=(member(),)), 1, 2)])
        assert [(item.vip_id, item.ok) for item in results] == [(one.id, True)]
        assert dict(driver.list_deployed(device)) == {one.id: Version(1, 2), two.id: Version(1, 1)}

    def test_a_new_epoch_is_listed_even_if_nothing_else_changed(self, driver: AgentDriver, device: Device, address: str) -> None:
        document = vip(address, members=(member(),))
        for version in (Version(1, 5), Version(1, 6), Version(2, 1)):
            driver.apply(device, [deployment(document, *version)])
            assert dict(driver.list_deployed(device)) == {document.id: version}

    def test_remove_takes_the_named_vips_and_leaves_the_others(self, driver: AgentDriver, device: Device, address: str) -> None:
        one, two = vip(address), vip(address)
        driver.apply(device, [deployment(one, 1, 4), deployment(two)])
        results = driver.remove(device, [one.id])
        assert [(item.vip_id, item.version, item.ok, item.removed) for item in results] == [(one.id, Version(1, 4), True, True)]
        assert dict(driver.list_deployed(device)) == {two.id: Version(1, 1)}

    def test_removing_what_is_absent_succeeds(self, driver: AgentDriver, device: Device) -> None:
        absent = documents.new_id()
        for _ in range(2):
            results = driver.remove(device, [absent])
            assert [(item.vip_id, item.version, item.ok, item.removed) for item in results] == [
                (absent, Version(0, 0), True, True)
            ]

    def test_removing_everything_leaves_nothing_behind(
        self, driver: AgentDriver, device: Device, address: str, leftovers: Callable[[Device], object]
    ) -> None:
        known = [vip(address, members=(member(),), monitors=(monitor(),)) for _ in range(3)]
        driver.apply(device, [deployment(document) for document in known])
        assert all(item.removed for item in driver.remove(device, [document.id for document in known]))
        assert dict(driver.list_deployed(device)) == {}
        assert dict(driver.read_stats(device)) == {}
        assert not leftovers(device)

    def test_no_temporary_folder_is_needed(
        self, driver: AgentDriver, device: Device, address: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """An agent that runs as a hardened service may be able to write below its state path only."""
        monkeypatch.setattr(tempfile, "tempdir", "/nonexistent")
        document = vip(address, members=(member(),))
        assert [item.error for item in driver.apply(device, [deployment(document)])] == [None]
        assert driver.remove(device, [document.id])[0].removed

    def test_a_removed_vip_can_come_back(self, driver: AgentDriver, device: Device, address: str) -> None:
        document = vip(address)
        for epoch in (1, 2, 3):
            assert driver.apply(device, [deployment(document, epoch)])[0].ok
            assert driver.remove(device, [document.id])[0].removed

    def test_vips_that_differ_only_in_id_and_port_do_not_collide(self, driver: AgentDriver, device: Device, address: str) -> None:
        one = vip(address, members=(member(),))
        two = replace(one, id=documents.new_id(), protocol_port=documents.free_port(address))
        two = with_pool(two, id=documents.new_id())
        assert all(item.ok for item in driver.apply(device, [deployment(one), deployment(two)]))
        driver.remove(device, [one.id])
        assert dict(driver.list_deployed(device)) == {two.id: Version(1, 1)}

    def test_a_bad_vip_fails_alone(self, driver: AgentDriver, device: Device, address: str, bad_vip: Vip | None) -> None:
        if bad_vip is None:
            pytest.skip("the vendor knows no VIP that its device refuses")
        good = [vip(address), vip(address)]
        results = driver.apply(device, [deployment(item) for item in (good[0], bad_vip, good[1])])
        assert [(item.vip_id, item.ok) for item in results] == [
            (good[0].id, True),
            (bad_vip.id, False),
            (good[1].id, True),
        ]
        assert results[1].error
        assert set(driver.list_deployed(device)) == {good[0].id, good[1].id}
        assert driver.remove(device, [bad_vip.id])[0].removed

    def test_everything_that_can_be_switched_off_can_be_applied_so(
        self, driver: AgentDriver, device: Device, address: str
    ) -> None:
        busy = vip(address, members=(member(), member(port=10)), monitors=(monitor(),))
        offs = [
            vip(address, members=()),
            vip(address, admin_state_up=False),
            with_pool(vip(address, members=(member(),)), admin_state_up=False),
            vip(address, members=(member(admin_state_up=False),), monitors=(monitor(admin_state_up=False),)),
            vip(address, members=tuple(member(port=port, weight=weight) for port, weight in ((9, 0), (10, 256)))),
            vip(address, members=(member(weight=0),)),
            with_pool(replace(busy, admin_state_up=False), admin_state_up=False),
        ]
        results = driver.apply(device, [deployment(document) for document in offs])
        assert [item.error for item in results] == [None] * len(offs)
        assert set(driver.list_deployed(device)) == {document.id for document in offs}

    def test_every_declared_combination_can_be_applied(
        self, driver: AgentDriver, handler: DeviceHandler, device: Device, address: str
    ) -> None:
        shapes = list(documents.shapes(handler.traits))
        wanted = {}
        for protocol, method, sticky, kind in shapes:
            monitors = (monitor(kind),) if kind else ()
            document = vip(address, 0, protocol, method, (member(),), monitors)
            document = replace(document, session_persistence=documents.persistence(sticky))
            wanted[document.id] = (document, (protocol, method, sticky, kind))
        results = driver.apply(device, [deployment(document) for document, _ in wanted.values()])
        assert {wanted[item.vip_id][1]: item.error for item in results if not item.ok} == {}
        assert set(driver.list_deployed(device)) == set(wanted)

    def test_what_is_not_declared_is_refused_and_not_silently_left_out(
        self, driver: AgentDriver, handler: DeviceHandler, device: Device, address: str
    ) -> None:
        """A tenant may ask for it once the VIP is on the device."""
        silent: list[str] = []
        for kind in [kind for kind in Persistence if f"PERSISTENCE_{kind}" not in handler.traits]:
            document = vip(address, protocol=Protocol.HTTP, members=(member(),), session_persistence=documents.persistence(kind))
            (result,) = driver.apply(device, [deployment(document)])
            silent += [kind.value] if result.ok and not result.object_errors else []
        for monitored in [kind for kind in MonitorType if f"MONITOR_{kind}" not in handler.traits]:
            document = vip(address, protocol=Protocol.HTTP, members=(member(),), monitors=(monitor(monitored),))
            (result,) = driver.apply(device, [deployment(document)])
            silent += [monitored.value] if result.ok and not result.object_errors else []
        assert silent == []

    def test_several_monitors_can_be_applied_if_declared(
        self, driver: AgentDriver, handler: DeviceHandler, device: Device, address: str
    ) -> None:
        if traits.MONITOR_SEVERAL not in handler.traits:
            pytest.skip("the handler does not declare MONITOR_SEVERAL")
        kinds = [kind for kind in MonitorType if f"MONITOR_{kind}" in handler.traits]
        document = vip(address, members=(member(),), monitors=tuple(monitor(kind) for kind in kinds))
        assert driver.apply(device, [deployment(document)])[0].error is None

    def test_connection_limits_can_be_applied_if_declared(
        self, driver: AgentDriver, handler: DeviceHandler, device: Device, address: str
    ) -> None:
        if traits.CONNECTION_LIMIT not in handler.traits:
            pytest.skip("the handler does not declare CONNECTION_LIMIT")
        wanted = [deployment(vip(address, connection_limit=limit)) for limit in (-1, 0, 1, 2**31 - 1)]
        assert [item.error for item in driver.apply(device, wanted)] == [None] * 4

    def test_every_attribute_can_be_changed(
        self, driver: AgentDriver, handler: DeviceHandler, device: Device, address: str
    ) -> None:
        first = vip(address, members=(member(),), monitors=(monitor(),))
        changes = [
            first,
            with_pool(first, members=(*first.pool.members, member(port=10, weight=7))),
            with_pool(first, members=(replace(first.pool.members[0], weight=0),)),
            with_pool(first, members=(replace(first.pool.members[0], admin_state_up=False),)),
            with_pool(first, health_monitors=(replace(first.pool.health_monitors[0], delay=9, timeout=3),)),
            with_pool(first, health_monitors=()),
            with_pool(first, admin_state_up=False),
            replace(first, admin_state_up=False),
            replace(first, session_persistence=documents.persistence(Persistence.SOURCE_IP)),
            with_pool(first, id=documents.new_id()),
            first,
        ]
        for revision, document in enumerate(changes, 1):
            result = driver.apply(device, [deployment(document, 1, revision)])[0]
            assert (revision, result.error) == (revision, None)
            assert dict(driver.list_deployed(device)) == {first.id: Version(1, revision)}

    def test_the_longest_and_the_oddest_that_tenants_may_write_is_applied_as_a_whole(
        self, driver: AgentDriver, handler: DeviceHandler, device: Device, address: str
    ) -> None:
        legal = {document.id: document for document in documents.legal_vips(address, handler.traits)}
        results = driver.apply(device, [deployment(document) for document in legal.values()])
        refused = [(legal[item.vip_id], item.error, dict(item.object_errors)) for item in results]
        assert [it for it in refused if it[1] or it[2]] == []
        assert set(driver.list_deployed(device)) == set(legal)

    def test_hostile_texts_break_no_neighbour(
        self, driver: AgentDriver, handler: DeviceHandler, device: Device, address: str
    ) -> None:
        good = [vip(address, members=(member(),)) for _ in range(2)]
        hostile = documents.hostile_vips(address, handler.traits)
        results = driver.apply(device, [deployment(item) for item in (good[0], *hostile, good[1])])
        outcome = {item.vip_id: item for item in results}
        assert set(outcome) == {item.id for item in (*good, *hostile)}
        assert [outcome[item.id].error for item in good] == [None, None]
        accepted = {item.id for item in hostile if outcome[item.id].ok}
        assert set(driver.list_deployed(device)) == {item.id for item in good} | accepted
        assert driver.apply(device, [deployment(with_pool(good[0], members=()), 1, 2)])[0].ok
        assert all(item.removed for item in driver.remove(device, [item.id for item in hostile]))
        assert set(driver.list_deployed(device)) == {item.id for item in good}

    def test_cookies_on_a_protocol_without_cookies_break_no_neighbour(
        self, driver: AgentDriver, device: Device, address: str
    ) -> None:
        sticky = documents.persistence(Persistence.HTTP_COOKIE)
        odd = vip(address, protocol=Protocol.TCP, members=(member(),), session_persistence=sticky)
        good = vip(address)
        results = {item.vip_id: item for item in driver.apply(device, [deployment(odd), deployment(good)])}
        assert results[good.id].ok
        assert good.id in driver.list_deployed(device)

    def test_stats_cover_every_vip_in_integers_and_change_nothing(
        self, driver: AgentDriver, device: Device, address: str
    ) -> None:
        wanted = [
            vip(address, members=(member(), member(port=10)), monitors=(monitor(),)),
            vip(address, admin_state_up=False),
        ]
        driver.apply(device, [deployment(document) for document in wanted])
        before = dict(driver.list_deployed(device))
        stats = driver.read_stats(device)
        assert set(stats) == {document.id for document in wanted}
        for document in wanted:
            check_stats(stats[document.id], document)
        assert dict(driver.list_deployed(device)) == before

    def test_a_restarted_agent_finds_everything_and_can_remove_it(
        self, driver: AgentDriver, make_driver: DriverMaker, device: Device, address: str
    ) -> None:
        document = vip(address, members=(member(),))
        driver.apply(device, [deployment(document, 2, 9), deployment(vip(address))])
        before = dict(driver.list_deployed(device))
        driver.stop()
        restarted = make_driver()
        try:
            assert dict(restarted.list_deployed(device)) == before
            assert restarted.apply(device, [deployment(document, 2, 10)])[0].ok
            assert all(item.removed for item in restarted.remove(device, list(before)))
            assert dict(restarted.list_deployed(device)) == {}
        finally:
            restarted.stop()

    def test_forgetting_a_device_leaves_it_alone(self, driver: AgentDriver, device: Device, address: str) -> None:
        document = vip(address)
        driver.apply(device, [deployment(document)])
        driver.forget(device)
        assert dict(driver.list_deployed(device)) == {document.id: Version(1, 1)}

    def test_devices_can_be_driven_at_once(self, driver: AgentDriver, device: Device, other_device: Device, address: str) -> None:
        known = {used.id: [vip(address) for _ in range(3)] for used in (device, other_device)}

        def drive(used: Device) -> set[str]:
            for revision in (1, 2, 3):
                results = driver.apply(used, [deployment(item, 1, revision) for item in known[used.id]])
                assert [item.error for item in results] == [None] * 3
            return set(driver.list_deployed(used))

        with ThreadPoolExecutor(2) as pool:
            listed = list(pool.map(drive, (device, other_device)))
        assert listed == [{item.id for item in known[used.id]} for used in (device, other_device)]

    def test_a_broken_device_is_not_glossed_over_and_applying_again_heals_it(
        self, driver: AgentDriver, device: Device, address: str, break_device: Callable[[Device], None] | None
    ) -> None:
        if break_device is None:
            pytest.skip("the vendor cannot break its device")
        document = vip(address, members=(member(),))
        driver.apply(device, [deployment(document)])
        break_device(device)
        with pytest.raises(LBaaSError):
            driver.read_stats(device)
        assert driver.apply(device, [deployment(document)])[0].ok
        assert dict(driver.list_deployed(device)) == {document.id: Version(1, 1)}
        assert set(driver.read_stats(device)) == {document.id}

    def test_a_local_driver_knows_and_purges_its_devices(
        self, driver: AgentDriver, device: Device, other_device: Device, address: str
    ) -> None:
        if DriverAbility.LOCAL not in driver.abilities:
            pytest.skip("the driver's devices are not local")
        kept, document = vip(address), vip(address)
        driver.apply(device, [deployment(document)])
        driver.apply(other_device, [deployment(kept)])
        assert {device.id, other_device.id} <= set(driver.local_devices())
        for _ in range(2):
            driver.purge(device.id)
        assert device.id not in driver.local_devices()
        assert dict(driver.list_deployed(device)) == {}
        assert dict(driver.list_deployed(other_device)) == {kept.id: Version(1, 1)}
        assert driver.apply(device, [deployment(document, 2)])[0].ok

    def test_abilities_are_those_that_are_implemented(self, driver: AgentDriver) -> None:
        kind = type(driver)
        local = kind.local_devices is not AgentDriver.local_devices and kind.purge is not AgentDriver.purge
        assert (DriverAbility.LOCAL in driver.abilities) == local


def check_stats(stats: VipStats, document: Vip) -> None:
    """Counters are integers that are not negative; members are those of the VIP."""
    for counter in (stats.bytes_in, stats.bytes_out, stats.active_connections, stats.total_connections):
        assert type(counter) is int
        assert counter >= 0
    assert set(stats.members) <= {item.id for item in document.pool.members}
    for health in stats.members.values():
        assert isinstance(health, MemberHealth)
        assert health.up in (True, False, None)
