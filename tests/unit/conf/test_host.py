"""The name of a process on the bus."""

from __future__ import annotations

import pytest
from oslo_config import cfg

from lbaas_scheduler.conf import loading
from lbaas_scheduler.conf.default import MAX_HOST_BYTES
from lbaas_scheduler.errors import ConfigurationError
from lbaas_scheduler.rpc import topics

AMQP_NAME_BYTES = 255


def _host(tmp_path, name):
    file = tmp_path / "scheduler.conf"
    file.write_text(f"[DEFAULT]\nhost = {name}\n")
    conf = cfg.ConfigOpts()
    loading.read(conf, ["--config-file", str(file)], "tests")
    return conf.host


def test_the_longest_name_fits_into_the_name_of_every_queue():
    longest = max(topics.PLUGINS, topics.SERVERS, topics.AGENTS, key=len)
    assert len(f"{longest}.") + MAX_HOST_BYTES == AMQP_NAME_BYTES


@pytest.mark.parametrize("name", ["h" * 232, "主" * 77])
def test_a_name_that_the_bus_can_take_is_taken(tmp_path, name):
    assert _host(tmp_path, name) == name


@pytest.mark.parametrize("name", ["h" * 233, "h" * 255, "主" * 78, ""])
def test_a_name_that_the_bus_cannot_take_is_refused_at_start_with_the_limit(tmp_path, name):
    with pytest.raises(ConfigurationError, match=r"scheduler\.conf.* host.*232"):
        _host(tmp_path, name)
