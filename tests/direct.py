"""An outbox that sends at once, in the caller's thread: what a test did is sent when the call returns."""

from __future__ import annotations

from collections.abc import Collection

from lbaas_scheduler.plugins.outbox import Outbox


class DirectOutbox(Outbox):
    """As :class:`Outbox`, without its thread."""

    def cast(self, vip_ids: Collection[str]) -> set[str]:
        return self._caster.cast(vip_ids)

    def tell_of(self, device_id: str, *hosts: str | None) -> None:
        self._caster.tell_of(device_id, *hosts)

    def agent_updated(self, host: str, admin_state_up: bool) -> None:
        self._tell_agent(host, admin_state_up)

    send = cast
