"""What an operator may set, and what he is told when it is wrong."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from oslo_config import cfg

from lbaas_scheduler.errors import ConfigurationError
from lbaas_scheduler.vendors.haproxy import render
from lbaas_scheduler.vendors.haproxy.driver import HaproxyDriver
from lbaas_scheduler.vendors.haproxy.extra import Extra
from lbaas_scheduler.vendors.haproxy.options import OPTS, Settings


def program(folder: Path, said: str) -> str:
    """An executable that prints a line."""
    path = folder / "haproxy"
    path.write_text(f"#!/bin/sh\necho '{said}'\n")
    path.chmod(0o755)
    return str(path)


@pytest.fixture
def conf(tmp_path: Path) -> cfg.ConfigOpts:
    conf = cfg.ConfigOpts()
    HaproxyDriver.register_opts(conf)
    conf([])
    conf.set_override("binary", program(tmp_path, "HAProxy version 2.6.12-1 2023/12/16 - https://haproxy.org/"), group="haproxy")
    conf.set_override("state_path", str(tmp_path / "state"), group="haproxy")
    return conf


@pytest.mark.parametrize(
    ("option", "value"),
    [("binary", "no-such-haproxy"), ("log_target", "/dev/log local0\n    user root"), ("state_path", "/proc/nowhere")],
)
def test_a_wrong_option_is_named(conf: cfg.ConfigOpts, option: str, value: str) -> None:
    conf.set_override(option, value, group="haproxy")
    with pytest.raises(ConfigurationError) as caught:
        HaproxyDriver(conf)
    assert f"[haproxy] {option}" in caught.value.message


@pytest.mark.parametrize(
    ("said", "named"),
    [
        ("HA-Proxy version 1.8.19 2019/02/11", "HAProxy 1.8"),
        ("HAProxy version 2.5.1", "HAProxy 2.5"),
        ("nginx/1.22.1", "not HAProxy"),
    ],
)
def test_a_program_that_will_not_do_is_named(conf: cfg.ConfigOpts, tmp_path: Path, said: str, named: str) -> None:
    program(tmp_path, said)
    with pytest.raises(ConfigurationError, match=rf"\[haproxy\] binary: .* is {named}; HAProxy 2.6 or newer is needed"):
        HaproxyDriver(conf)


@pytest.mark.parametrize("said", ["HAProxy version 2.6.12", "HAProxy version 2.10-dev1", "HAProxy version 3.0.5-8e879a5"])
def test_newer_versions_will_do(conf: cfg.ConfigOpts, tmp_path: Path, said: str) -> None:
    program(tmp_path, said)
    assert HaproxyDriver(conf).device_type == "haproxy"


@pytest.mark.parametrize("option", ["user", "group"])
def test_an_unknown_account_is_named(conf: cfg.ConfigOpts, option: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    conf.set_override(option, "nosuchaccount", group="haproxy")
    with pytest.raises(ConfigurationError, match=rf"\[haproxy\] {option}: .*nosuchaccount"):
        HaproxyDriver(conf)


def test_accounts_matter_only_to_root(conf: cfg.ConfigOpts, monkeypatch: pytest.MonkeyPatch) -> None:
    conf.set_override("user", "nosuchaccount", group="haproxy")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    base = render.render_base(Settings.from_conf(conf), Extra())
    assert "user" not in base
    assert "chroot" not in base


def test_nothing_is_logged_unless_asked_for(conf: cfg.ConfigOpts) -> None:
    assert "    log " not in render.render_base(Settings.from_conf(conf), Extra()).partition("global\n")[2]
    conf.set_override("log_target", "127.0.0.1:514", group="haproxy")
    base = render.render_base(Settings.from_conf(conf), Extra())
    assert "    log 127.0.0.1:514 local0 info\n" in base
    assert "    log global\n" in base


def test_a_device_says_how_much_it_takes(conf: cfg.ConfigOpts) -> None:
    settings = Settings.from_conf(conf)
    assert "maxconn" not in render.render_base(settings, Extra())
    base = render.render_base(settings, Extra(maxconn=5000, nbthread=4))
    assert "    maxconn 5000\n" in base
    assert "    nbthread 4\n" in base


def test_every_option_has_help_that_ends_in_a_sentence() -> None:
    assert all(option.help.endswith(".") for option in OPTS)
