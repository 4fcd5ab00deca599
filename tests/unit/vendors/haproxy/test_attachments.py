"""What is known of a device's networks, and when."""

from __future__ import annotations

from pathlib import Path

import pytest

from lbaas_scheduler.errors import DriverError
from lbaas_scheduler.vendors.haproxy.attachments import Attachments
from lbaas_scheduler.vendors.haproxy.namespace import Namespace


def test_a_device_is_known_to_be_in_a_namespace_before_there_is_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Namespace, "require_rights", lambda _: None)

    def killed(_: Namespace) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Namespace, "create", killed)
    with pytest.raises(KeyboardInterrupt):
        Attachments(tmp_path).enter()
    assert Attachments(tmp_path).namespace is not None


def test_an_agent_without_rights_leaves_the_device_where_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    with pytest.raises(DriverError, match="not privileged"):
        Attachments(tmp_path).enter()
    assert Attachments(tmp_path).namespace is None
