"""Options as a whole: each one explains itself, and its group has the default that the documents promise."""

from __future__ import annotations

import pytest
from oslo_config import cfg

from lbaas_scheduler.conf import opts, service

OURS = [(group, option) for group, options in opts.list_opts() if group != "database" for option in options]


@pytest.fixture
def conf() -> cfg.ConfigOpts:
    conf = cfg.ConfigOpts()
    opts.register_all(conf)
    conf([], default_config_files=[], default_config_dirs=[])
    return conf


def test_registering_twice_is_harmless(conf: cfg.ConfigOpts) -> None:
    opts.register_all(conf)


def test_all_registered_options_are_listed(conf: cfg.ConfigOpts) -> None:
    listed = {group: {option.dest for option in options} for group, options in opts.list_opts()}
    for group in ("LoadBalancer", "scheduler", "agent", "security", "database"):
        assert set(conf[group]) == listed[group]


@pytest.mark.parametrize(("group", "option"), OURS, ids=lambda it: getattr(it, "name", it))
class TestEveryOption:
    def test_says_in_sentences_when_to_change_it(self, group: str, option: cfg.Opt) -> None:
        assert len(option.help.split()) >= 15, group
        assert option.help.endswith(".")

    def test_has_its_unit_in_its_name(self, group: str, option: cfg.Opt) -> None:
        # Of others' names there may be any number.
        said = " ".join(word for word in option.help.split() if "_seconds" not in word)
        if "second" in said and isinstance(option, cfg.IntOpt | cfg.FloatOpt):
            assert option.name.endswith("_seconds"), group

    def test_is_bounded_below_if_it_is_a_number(self, group: str, option: cfg.Opt) -> None:
        if isinstance(option, cfg.IntOpt | cfg.FloatOpt) and option.name != "random_seed":
            assert option.type.min is not None, group


@pytest.mark.parametrize(
    ("group", "name", "value"),
    [
        ("LoadBalancer", "device_handlers", ["haproxy", "envoy"]),
        ("LoadBalancer", "scheduling_algorithm", "least_loaded"),
        ("scheduler", "handler_timeout_seconds", 1.0),
        ("scheduler", "page_size", 32),
        ("scheduler", "pending_timeout_seconds", 300),
        ("agent", "drivers", ["haproxy"]),
        ("security", "encryption_keys", []),
        ("database", "connection", "sqlite:////var/lib/lbaas-scheduler/lbaas-scheduler.sqlite"),
    ],
)
def test_defaults(conf: cfg.ConfigOpts, group: str, name: str, value: object) -> None:
    assert conf[group][name] == value


def test_an_agent_that_reports_is_not_taken_for_dead(conf: cfg.ConfigOpts) -> None:
    assert conf.scheduler.agent_down_seconds >= 2 * conf.agent.report_interval_seconds


def test_another_service_registers_a_group_of_its_own(conf: cfg.ConfigOpts) -> None:
    service.register_service_opts(conf, "Firewall", scheduling_algorithm="strictest")
    service.register_service_opts(conf, "Firewall")
    assert conf.Firewall.device_handlers == []
    assert conf.Firewall.scheduling_algorithm == "strictest"
