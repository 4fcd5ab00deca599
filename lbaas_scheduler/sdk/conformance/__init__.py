"""Whether a vendor's handler and driver keep their contracts. Any vendor's package runs it with pytest.

A vendor's test module defines three fixtures and names the classes that apply::

    import pytest
    from lbaas_scheduler.sdk import conformance

    @pytest.fixture
    def make_driver(conf):             # a new driver each time: the second one is the agent after its restart
        return lambda: AcmeDriver(conf)

    @pytest.fixture
    def handler(conf):
        return AcmeHandler(conf)

    @pytest.fixture
    def device():                      # a device that the handler accepts and the driver reaches; it starts empty
        return Device(id="…", name="lab", service="LoadBalancer", device_type="acme", …)

    class TestHandler(conformance.HandlerConformance): ...
    class TestDriver(conformance.DriverConformance): ...
    class TestTraffic(conformance.TrafficConformance): ...    # only where the device carries real traffic
    class TestBehaviour(conformance.BehaviourConformance): ...    # as above: the same attribute means the same on every vendor

What a device does not declare in its traits is not asked of it. A class has more fixtures with defaults (addresses for VIPs,
a second device, how to break a device, how to send a request …); a subclass overrides those that do not fit. They are
described where they are defined.

Needs pytest, and is therefore not imported by anything else of this package.
"""

import pytest

# Before the import of the modules, else a failing assertion shows no values.
pytest.register_assert_rewrite(f"{__name__}.behaviour", f"{__name__}.drivers", f"{__name__}.handlers", f"{__name__}.traffic")

from lbaas_scheduler.sdk.conformance.behaviour import BehaviourConformance  # noqa: E402
from lbaas_scheduler.sdk.conformance.drivers import DriverConformance  # noqa: E402
from lbaas_scheduler.sdk.conformance.handlers import HandlerConformance  # noqa: E402
from lbaas_scheduler.sdk.conformance.traffic import Reply, TrafficConformance  # noqa: E402

__all__ = ["BehaviourConformance", "DriverConformance", "HandlerConformance", "Reply", "TrafficConformance"]
