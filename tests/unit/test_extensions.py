"""Pieces that others bring: found by name or by path, and a clear error for whatever is wrong with one."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from oslo_config import cfg

from lbaas_scheduler import extensions
from lbaas_scheduler.errors import ConfigurationError
from lbaas_scheduler.scheduler.algorithms.least_loaded import LeastLoaded
from lbaas_scheduler.scheduler.services import LoadBalancerService
from lbaas_scheduler.sdk.handlers import DeviceHandler
from lbaas_scheduler.vendors.fake.driver import FakeDriver
from lbaas_scheduler.vendors.fake.handler import FakeHandler
from tests.database import configured

NAMESPACE = "lbaas_scheduler.device_handlers.LoadBalancer"
FAKE = "lbaas_scheduler.vendors.fake.handler"


@pytest.fixture
def conf() -> cfg.ConfigOpts:
    return configured("sqlite://")


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], str]:
    """Writes a module that can be imported during the test, and returns its name."""
    monkeypatch.syspath_prepend(tmp_path)

    def write(text: str) -> str:
        name = f"brought_{len(list(tmp_path.iterdir()))}"
        (tmp_path / f"{name}.py").write_text(dedent(text))
        monkeypatch.delitem(sys.modules, name, raising=False)
        return name

    return write


def handlers(conf: cfg.ConfigOpts, *names: str) -> Any:
    conf.set_override("device_handlers", list(names), "LoadBalancer")
    return extensions.load_handlers(conf, "LoadBalancer")


def test_a_handler_is_found_by_its_entry_point(conf):
    assert type(handlers(conf, "fake")["fake"]) is FakeHandler


@pytest.mark.parametrize("path", [f"{FAKE}.FakeHandler", f"{FAKE}:FakeHandler"])
def test_a_handler_is_found_by_the_path_of_its_class(conf, path):
    assert type(handlers(conf, path)["fake"]) is FakeHandler


def test_an_unknown_name_is_refused_with_those_that_are_installed(conf):
    with pytest.raises(ConfigurationError, match=rf"'f5' is not in {NAMESPACE}; installed: .*fake.*haproxy"):
        handlers(conf, "f5")


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("no.such.Handler", "cannot be imported: ModuleNotFoundError: No module named 'no'"),
        (f"{FAKE}:Missing", "cannot be imported: AttributeError"),
    ],
)
def test_a_path_that_leads_nowhere_is_refused(conf, path, words):
    with pytest.raises(ConfigurationError, match=f"'{path}' of {NAMESPACE} {words}"):
        handlers(conf, path)


def test_a_module_that_fails_while_it_is_imported_is_refused_with_its_own_error(conf, module):
    with pytest.raises(ConfigurationError, match="cannot be imported: ZeroDivisionError: division by zero"):
        handlers(conf, f"{module('1 / 0')}:Handler")


def test_a_class_of_another_kind_is_refused(conf):
    with pytest.raises(ConfigurationError, match=f"'collections.OrderedDict' in {NAMESPACE} is not a DeviceHandler"):
        handlers(conf, "collections.OrderedDict")


def test_what_is_no_class_is_refused(conf):
    with pytest.raises(ConfigurationError, match="is not a DeviceHandler"):
        handlers(conf, "os.path.join")


HANDLER = """
    from lbaas_scheduler.sdk.handlers import DeviceHandler
    class Handler(DeviceHandler):
        device_type = "{device_type}"
        def __init__(self, conf):
            {start}
        def validate_device(self, device):
            pass
"""


def written(module: Callable[[str], str], device_type: str, start: str = "pass") -> str:
    return f"{module(HANDLER.format(device_type=device_type, start=start))}:Handler"


def test_two_handlers_for_one_type_are_refused(conf, module):
    path = written(module, device_type="fake")
    with pytest.raises(ConfigurationError, match=rf"'fake' and '{path}' in {NAMESPACE} both claim device type 'fake'"):
        handlers(conf, "fake", path)


def test_a_handler_without_a_device_type_is_refused(conf, module):
    with pytest.raises(ConfigurationError, match="names no device_type"):
        handlers(conf, written(module, device_type=""))


def test_a_handler_that_cannot_be_built_is_refused_with_its_own_error(conf, module):
    path = written(module, device_type="acme", start="raise OSError('no licence')")
    with pytest.raises(ConfigurationError, match=f"'{path}' in {NAMESPACE} could not be built: OSError: no licence"):
        handlers(conf, path)


def test_a_handler_that_leaves_a_method_out_is_refused(conf, module):
    text = """
        from lbaas_scheduler.sdk.handlers import DeviceHandler
        class Handler(DeviceHandler):
            device_type = "acme"
    """
    with pytest.raises(ConfigurationError, match="does not implement: validate_device"):
        handlers(conf, f"{module(text)}:Handler")


def test_drivers_are_loaded_by_their_names(conf):
    assert type(extensions.load_drivers(conf, ["fake"])["fake"]) is FakeDriver
    with pytest.raises(ConfigurationError, match=r"'f5' is not in lbaas_scheduler.agent_drivers; installed: "):
        extensions.load_drivers(conf, ["f5"])


def test_every_installed_algorithm_is_loaded_and_the_configured_one_named(conf):
    algorithms, default = extensions.load_algorithms(conf, "LoadBalancer")
    assert default == "least_loaded"
    assert {"chance", "first_available", "least_loaded"} <= algorithms.keys()


def test_the_configured_algorithm_may_be_a_path(conf):
    path = "lbaas_scheduler.scheduler.algorithms.least_loaded:LeastLoaded"
    conf.set_override("scheduling_algorithm", path, "LoadBalancer")
    algorithms, default = extensions.load_algorithms(conf, "LoadBalancer")
    assert default == path
    assert type(algorithms[path]) is LeastLoaded


def test_an_unknown_algorithm_is_refused_with_those_that_are_installed(conf):
    conf.set_override("scheduling_algorithm", "best", "LoadBalancer")
    with pytest.raises(ConfigurationError, match=r"'best' is not in lbaas_scheduler.algorithms.LoadBalancer; installed: chance"):
        extensions.load_algorithms(conf, "LoadBalancer")


def test_services_are_loaded_by_their_names():
    assert type(extensions.load_services()["LoadBalancer"]) is LoadBalancerService


def test_a_service_plugin_and_a_network_connector_are_refused_as_clearly(conf):
    with pytest.raises(ConfigurationError, match=r"'VPN' is not in lbaas_scheduler.service_plugins; installed: LoadBalancer"):
        extensions.load_service_plugin("VPN", object)
    conf.set_override("network_connector", "ovn")
    with pytest.raises(ConfigurationError, match=r"'ovn' is not in lbaas_scheduler.network_connectors; installed: local"):
        extensions.load_network_connector(conf, object)


def test_a_class_is_returned_as_it_is():
    assert extensions.load_class(NAMESPACE, "fake", DeviceHandler) is FakeHandler
