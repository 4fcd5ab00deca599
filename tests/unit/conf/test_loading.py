"""Reading scheduler.conf: what is wrong is told with its place."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from oslo_config import cfg

from lbaas_scheduler.conf import loading
from lbaas_scheduler.errors import ConfigurationError

Write = Callable[[str], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write(text: str) -> Path:
        path = tmp_path / "scheduler.conf"
        path.write_text(text)
        return path

    return write


def read(path: Path) -> cfg.ConfigOpts:
    conf = cfg.ConfigOpts()
    loading.read(conf, ["--config-file", str(path)], "prog")
    return conf


def test_values_of_the_file_are_read(write: Write) -> None:
    conf = read(write("[scheduler]\npage_size = 7\n[LoadBalancer]\ndevice_handlers = haproxy, acme.Handler\n"))
    assert conf.scheduler.page_size == 7
    assert conf.LoadBalancer.device_handlers == ["haproxy", "acme.Handler"]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[scheduler]\npage_size = many\n", "{path}: [scheduler] page_size: .*'many'.*; expected Integer"),
        ("[agent]\nreport_interval_seconds = 0\n", "{path}: [agent] report_interval_seconds: .*greater than or equal to 1"),
        ("graceful_shutdown_seconds = soon\n", "at {path}:1, Section must be started before assignment"),
        ("[DEFAULT]\ngraceful_shutdown_seconds = soon\n", "{path}: [DEFAULT] graceful_shutdown_seconds: .*'soon'"),
        ("[database]\nmax_pool_size = x\n", "{path}: [database] max_pool_size: .*'x'"),
        ("[scheduler\n", "Failed to parse {path}.*Invalid section"),
    ],
)
def test_a_wrong_value_is_told_with_file_group_and_option(write: Write, text: str, complaint: str) -> None:
    path = write(text)
    pattern = complaint.replace("[", r"\[").replace("{path}", str(path))
    with pytest.raises(ConfigurationError, match=pattern) as caught:
        read(path)
    assert "\n" not in caught.value.message


def test_the_last_of_several_files_is_blamed(tmp_path: Path) -> None:
    good, bad = tmp_path / "a.conf", tmp_path / "b.conf"
    good.write_text("[scheduler]\npage_size = 7\n")
    bad.write_text("[scheduler]\npage_size = x\n")
    with pytest.raises(ConfigurationError, match=rf"{bad}: \[scheduler\]"):
        loading.read(cfg.ConfigOpts(), ["--config-file", str(good), "--config-file", str(bad)], "prog")


def test_load_prints_one_line_and_exits_with_2(write: Write, capsys: pytest.CaptureFixture[str]) -> None:
    path = write("[scheduler]\npage_size = many\n")
    with pytest.raises(SystemExit) as caught:
        loading.load(cfg.ConfigOpts(), ["--config-file", str(path)], "prog")
    assert caught.value.code == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith(f"prog: The configuration is wrong: {path}: [scheduler] page_size: ")
    assert captured.err.count("\n") == 1


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=f"{tmp_path}/absent.conf"):
        read(tmp_path / "absent.conf")


def test_a_misspelt_option_is_pointed_out_with_the_likely_one(write: Write) -> None:
    path = write("[scheduler]\npagesize = 7\nmax-rounds = 3\n[agent]\nwholly_other = 1\n[of_somebody_else]\nx = 1\n")
    assert loading.misspelt(read(path)) == [
        f"{path}: [scheduler] has no option 'pagesize'; did you mean 'page_size'?",
        f"{path}: [agent] has no option 'wholly_other'",
    ]


def test_secrets_are_not_shown(write: Write) -> None:
    conf = read(write("[security]\nencryption_keys = k1,k2\n"))
    shown: list[str] = []
    logger = type("Logger", (), {"log": lambda _self, _level, text, *args: shown.append(text % args)})()
    conf.log_opt_values(logger, 10)
    assert any("encryption_keys" in line for line in shown)
    assert not any("k1" in line for line in shown)
