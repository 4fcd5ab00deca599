"""The agent's side of a vendor: how desired state gets onto a device."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from enum import StrEnum

from lbaas_scheduler.domain.deployments import Deployment, Result, Version, VipStats
from lbaas_scheduler.domain.devices import Device


class DriverAbility(StrEnum):
    """What a driver can do beyond the mandatory methods."""

    LOCAL = "local"
    """The device is made of processes and files on the agent's own host.

    Once the device belongs to another agent, what is here is a stale copy, which :meth:`AgentDriver.purge` removes. Without
    this ability the device is one remote thing whoever drives it, and an agent that loses it must not touch it.
    """

    FENCE = "fence"
    """The driver has :meth:`AgentDriver.fence`. Only with :attr:`LOCAL`."""


class AgentDriver(ABC):
    """Drives all devices of one type. Registered under ``lbaas_scheduler.agent_drivers``; built as ``Driver(conf)``.

    The agent calls one driver for several devices at once from as many threads, but never twice at once for one device.
    Every method may block (the agent bounds the wait). Every method may be repeated: after a crash, a lost report or a
    resync the same call comes again, and must then change nothing and succeed.

    Whatever is put on a device must carry a marker of ours, so that :meth:`list_deployed` and the clean-up of orphans
    never touch what somebody else configured there. Names on the device derive from ids, never from tenants' names.

    An exception (:class:`~lbaas_scheduler.errors.DriverError` for a text that the tenant may read, anything else for a
    bug) fails all VIPs of the call; prefer a :class:`Result` per VIP, so that one bad VIP never fails its neighbours.
    """

    device_type: str
    abilities: frozenset[DriverAbility] = frozenset()

    @classmethod
    def register_opts(cls, conf: object) -> None:
        """Register the driver's own options on ``conf`` (an ``oslo_config.cfg.ConfigOpts``). Called before ``__init__``."""

    @abstractmethod
    def apply(self, device: Device, deployments: Sequence[Deployment]) -> Sequence[Result]:
        """Make each VIP on ``device`` exactly as described, in as few changes of the device as possible.

        Returns once the new state serves traffic. Connections through VIPs that are not in ``deployments``, and through
        unchanged members of those that are, must survive. VIPs that are not named stay as they are.

        :returns: one result per deployment, with the deployment's version.
        """

    @abstractmethod
    def remove(self, device: Device, vip_ids: Collection[str]) -> Sequence[Result]:
        """Remove the VIPs with all that belongs to them. An absent one is a success.

        :returns: one result per id, ``removed`` true on success; the version is that which was found, or (0, 0).
        """

    @abstractmethod
    def list_deployed(self, device: Device) -> Mapping[str, Version]:
        """What of ours is on the device, read from the device itself: VIP id → version last applied.

        A VIP that is there and does not serve as it was applied is listed with version (0, 0): it is applied again, and counted.
        """

    @abstractmethod
    def read_stats(self, device: Device) -> Mapping[str, VipStats]:
        """Counters and member health of every VIP of ours on the device. Never changes anything."""

    def local_devices(self) -> Collection[str]:
        """Ids of all devices of which something of ours is here, running or not. Only with :attr:`DriverAbility.LOCAL`."""
        raise NotImplementedError

    def purge(self, device_id: str) -> None:
        """Remove a device from this host, processes and files. Absent = success. Only with :attr:`DriverAbility.LOCAL`."""
        raise NotImplementedError

    def fence(self, device_id: str) -> None:
        """Let the device no longer answer at its VIPs' addresses, for others may serve them; keep what it takes to serve again.

        From then on :meth:`list_deployed` or the next :meth:`apply` brings it back, which are called when it is known to be this
        agent's still. Absent = success. Only with :attr:`DriverAbility.FENCE`.
        """
        raise NotImplementedError

    def forget(self, device: Device) -> None:
        """The device is no longer this agent's. Release what was kept in memory; leave the device alone."""

    def stop(self) -> None:
        """The agent stops. Devices go on serving traffic; end threads and close connections."""
