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
    assert kept.keys() == wanted.keys(), "run `make genconfig`"
    assert _from_us(kept["DEFAULT"]) == _from_us(wanted["DEFAULT"]), "run `make genconfig`"
    assert {name: kept[name] for name in OURS} == {name: wanted[name] for name in OURS}, "run `make genconfig`"


def test_every_group_of_ours_has_its_place_in_the_sample():
    assert {group for group, _ in opts.list_opts()} <= set(genconfig.OURS)


def test_the_sample_is_a_valid_configuration(tmp_path):
    conf = cfg.ConfigOpts()
    opts.register_all(conf)
    conf([], default_config_files=[str(genconfig.SAMPLE)], default_config_dirs=[str(tmp_path)])
    assert conf.service_plugins == ["LoadBalancer"]


def test_the_sample_names_nothing_of_the_machine_that_it_was_made_on():
    text = genconfig.SAMPLE.read_text()
    assert "/root" not in text
    assert "/home/" not in text
