"""etc/scheduler.conf is what `make genconfig` writes."""

from __future__ import annotations

from oslo_config import cfg

from lbaas_scheduler.conf import opts
from tools import genconfig

# Sections, and the part of [DEFAULT], that hold options of ours alone. The others change with the libraries' releases.
OURS = tuple(name for name in genconfig.OURS if name not in {"DEFAULT", "database"})


def _from_us(default_section: str) -> str:
    return default_section.partition("# From oslo")[0].strip()


def test_the_sample_is_current():
    kept = genconfig.split(genconfig.SAMPLE.read_text())
    wanted = genconfig.split(genconfig.generate())
    assert set(genconfig.OURS) | {"oslo_messaging_rabbit"} <= kept.keys() & wanted.keys(), "run `make genconfig`"
    assert _from_us(kept["DEFAULT"]) == _from_us(wanted["DEFAULT"]), "run `make genconfig`"
    assert {name: kept[name] for name in OURS} == {name: wanted[name] for name in OURS}, "run `make genconfig`"


def test_every_group_of_ours_has_its_place_in_the_sample():
    assert {group for group, _ in opts.list_opts()} <= set(genconfig.OURS)


def test_the_sample_is_a_valid_configuration(tmp_path):
    conf = cfg.ConfigOpts()
    opts.register_all(conf)
    conf([], default_config_files=[str(genconfig.SAMPLE)], default_config_dirs=[str(tmp_path)])
    assert conf.service_plugins == ["LoadBalancer"]


def test_a_section_of_the_sample_is_read_once_its_comment_signs_are_gone(tmp_path):
    chosen = genconfig.split(genconfig.SAMPLE.read_text())["LoadBalancer"].replace(
        "#scheduling_algorithm = least_loaded", "CHANGED"
    )
    (tmp_path / "scheduler.conf").write_text(chosen.replace("CHANGED", "scheduling_algorithm = chance"))
    conf = cfg.ConfigOpts()
    opts.register_all(conf)
    conf([], default_config_files=[str(tmp_path / "scheduler.conf")], default_config_dirs=[str(tmp_path)])
    assert conf.LoadBalancer.scheduling_algorithm == "chance"
