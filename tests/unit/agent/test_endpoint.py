from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from lbaas_scheduler.agent.changes import Change
from lbaas_scheduler.agent.endpoint import AgentEndpoint
from lbaas_scheduler.domain.deployments import Version
from lbaas_scheduler.rpc.agent_api import AgentAPI, VipChange
from lbaas_scheduler.rpc.codec import encode_device
from lbaas_scheduler.rpc.server_api import Operation, SealedDevice
from tests.agent_side import HOST, deployment, device


class Workers:
    def __init__(self) -> None:
        self.offered: list[tuple[str, str, Operation]] = []
        self.calls = 0

    def offer(self, sealed: SealedDevice, changes: Iterable[Change], trusted: bool) -> None:
        self.calls += 1
        self.offered += [(sealed.device.id, change.vip_id, change.operation) for change in changes]


class DirectAgentAPI(AgentAPI):
    """Without a bus between client and endpoint."""

    def __init__(self, endpoint: AgentEndpoint) -> None:
        self._endpoint = endpoint

    def _cast(self, _host: str, method: str, **arguments: Any) -> None:
        getattr(self._endpoint, method)(None, **arguments)


def test_changes_of_several_vips_come_in_one_message_and_one_bad_part_costs_no_other(caplog: pytest.LogCaptureFixture) -> None:
    workers = Workers()
    api = DirectAgentAPI(AgentEndpoint(workers, None, lambda: True))  # type: ignore[arg-type]
    one, other = (encode_device(device(name), "") for name in ("d1", "d2"))
    changes = [
        VipChange("create_vip", {"device": one, "deployment": deployment("v1")}),
        VipChange("resync", {}),
        VipChange("update_vip", {"device": one}),
        VipChange("update_vip", {"device": one, "deployment": "nonsense"}),
        VipChange("delete_vip", {"device": other, "vip_id": "v2", "version": Version(1, 2)}),
    ]
    api.change_vips(HOST, changes)
    assert [(vip_id, operation) for _, vip_id, operation in workers.offered] == [
        ("v1", Operation.APPLY),
        ("v2", Operation.REMOVE),
    ]
    assert len({device_id for device_id, *_ in workers.offered}) == 2
    assert caplog.text.count("cannot be read") == 3


@pytest.mark.parametrize(
    "scrap", [None, 5, "text", [1], ["ab"], {"verb": []}, {"verb": "create_vip", "device": 1, "deployment": 2}]
)
def test_a_part_that_is_no_change_at_all_costs_no_other(scrap: Any) -> None:
    workers = Workers()
    endpoint = AgentEndpoint(workers, None, lambda: True)  # type: ignore[arg-type]
    good = {"verb": "delete_vip", "device": encode_device(device("d1"), ""), "vip_id": "v2", "version": [1, 2]}
    endpoint.change_vips(None, [scrap, good])  # type: ignore[arg-type]
    assert [vip_id for _, vip_id, _ in workers.offered] == ["v2"]


def test_what_a_message_has_for_one_device_is_handed_on_together() -> None:
    workers = Workers()
    api = DirectAgentAPI(AgentEndpoint(workers, None, lambda: True))  # type: ignore[arg-type]
    documents = [encode_device(device(name), "") for name in ("d1", "d2", "d1", "d1")]
    changes = [VipChange("create_vip", {"device": it, "deployment": deployment(f"v{n}")}) for n, it in enumerate(documents)]
    api.change_vips(HOST, changes)
    assert [(device_id, vip_id) for device_id, vip_id, _ in workers.offered] == [
        ("d1", "v0"),
        ("d1", "v2"),
        ("d1", "v3"),
        ("d2", "v1"),
    ]
    assert workers.calls == 2


def test_what_a_newer_server_says_beside_a_change_is_left_out() -> None:
    workers = Workers()
    endpoint = AgentEndpoint(workers, None, lambda: True)  # type: ignore[arg-type]
    change = {"verb": "delete_vip", "device": encode_device(device("d1"), ""), "vip_id": "v2", "version": [1, 2]}
    endpoint.change_vips(None, [{**change, "colour": "red"}])  # type: ignore[arg-type]
    assert [vip_id for _, vip_id, _ in workers.offered] == ["v2"]
