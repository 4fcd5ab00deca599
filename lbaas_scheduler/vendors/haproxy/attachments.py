"""Which VIPs of a device are on which networks, kept in the device's folder: so that a restart of the host, of the agent or of
HAProxy brings all of it back, and whoever removes a device knows what to remove."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass
from ipaddress import ip_address, ip_network
from pathlib import Path

from lbaas_scheduler.domain.deployments import Deployment
from lbaas_scheduler.errors import DriverError
from lbaas_scheduler.sdk.files import write_atomically
from lbaas_scheduler.vendors.haproxy.files import NETWORKS
from lbaas_scheduler.vendors.haproxy.namespace import Namespace, names
from lbaas_scheduler.vendors.haproxy.networks import Network, detach_all

LOG = logging.getLogger(__name__)

PREFIX = "lbaas-"
"""Of the names of devices' namespaces."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a VIP is: ``address`` is ADDRESS/LENGTH."""

    network: Network
    address: str

    @classmethod
    def of(cls, deployment: Deployment) -> Place:
        """:raises DriverError: the deployment does not say it."""
        vip = deployment.vip
        try:
            length = ip_network(vip.subnet_cidr).prefixlen
            address = f"{ip_address(vip.address)}/{length}"
        except ValueError:
            raise DriverError("The VIP's address or subnet is not usable.") from None
        return cls(Network.of(deployment.wiring), address)


class Attachments:
    """Of one device; in a namespace as long as the file is there."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / NETWORKS
        self._namespace = Namespace(f"{PREFIX}{folder.name}")
        self._mark = _mark(folder.parent)
        self._unannounced: dict[Network, set[str]] = {}

    @property
    def namespace(self) -> Namespace | None:
        """None = the device is in the host's own."""
        return self._namespace if self._file.exists() else None

    @property
    def left_behind(self) -> bool:
        """Whether there is a namespace of the device of which its folder knows nothing any more."""
        return not self._file.exists() and self._namespace.bears(self._mark)

    def enter(self) -> None:
        """The device is to be in a namespace of its own from now on."""
        self._namespace.require_rights()
        if not self._file.exists():
            # Before there is a namespace: one that nobody knows of would stay for ever.
            self._write({})
        self._namespace.create()
        self._namespace.mark(self._mark)

    def leave(self) -> None:
        """The device is to be in the host's. Removes the namespace and all that leads there, written down or not."""
        if self.namespace is None and not self.left_behind:
            return
        for network in _networks(self._read()):
            network.detach(self._namespace)
        if self._namespace.exists:
            detach_all(self._namespace)
        self._namespace.delete()
        self._file.unlink(missing_ok=True)

    def attach(self, deployments: Iterable[Deployment]) -> dict[str, DriverError]:
        """Let the device have the addresses of these VIPs, and of those that it had before.

        :returns: VIP id → why it cannot.
        """
        before = self._read()
        places, refused = dict(before), dict[str, DriverError]()
        for deployment in deployments:
            try:
                places[deployment.vip.id] = Place.of(deployment)
            except DriverError as error:
                refused[deployment.vip.id] = error
        self._detach(before, places)
        # Written down first: what is only half there must be known to be removed.
        self._write(places)
        failed = self._agree(places)
        return refused | {vip_id: failed[place.network] for vip_id, place in places.items() if place.network in failed}

    def announce(self) -> None:
        """Tell neighbours of the addresses that are new here. Not before they are listened on: others may serve them yet."""
        for network, addresses in self._unannounced.items():
            network.announce(self._namespace, sorted(addresses & network.addresses(self._namespace)))
        self._unannounced.clear()

    def keep_only(self, vip_ids: Collection[str]) -> None:
        """The others are not on the device any more: take their addresses away, and the networks that have none left."""
        if self.namespace is None:
            return
        before = self._read()
        places = {vip_id: place for vip_id, place in before.items() if vip_id in vip_ids}
        if places.keys() == before.keys():
            return
        self._detach(before, places)
        self._agree(places)
        self._write(places)

    def withdraw(self) -> None:
        """Take all addresses away, for as long as nothing is attached anew: others may have them now."""
        for rank, network in enumerate(_networks(self._read()) if self.namespace is not None else ()):
            if network.addresses(self._namespace):
                network.set_addresses(self._namespace, set(), rank)

    def missing(self) -> frozenset[str]:
        """Ids of VIPs whose network or address is not there: somebody took away a link, an address, or all of the namespace."""
        if self.namespace is None:
            return frozenset()
        places = self._read()
        there = {network: network.addresses(self._namespace) for network in _networks(places)}
        return frozenset(vip_id for vip_id, place in places.items() if place.address not in there[place.network])

    def _detach(self, before: Mapping[str, Place], after: Mapping[str, Place]) -> None:
        for network in set(_networks(before)) - set(_networks(after)):
            network.detach(self._namespace)

    def _agree(self, places: Mapping[str, Place]) -> dict[Network, DriverError]:
        """Each network by itself: one that cannot be had must not cost the others."""
        failed = {}
        for rank, network in enumerate(_networks(places)):
            wanted = {place.address for place in places.values() if place.network == network}
            try:
                network.attach(self._namespace)
                self._unannounced.setdefault(network, set()).update(wanted - network.addresses(self._namespace))
                network.set_addresses(self._namespace, wanted, rank)
            except DriverError as error:
                LOG.warning("%s: network %s: %s", self._namespace.name, network.network_id, error.operator_message)
                failed[network] = error
        return failed

    def _read(self) -> dict[str, Place]:
        try:
            document = json.loads(self._file.read_text())
            return {key: Place(Network(**it["network"]), it["address"]) for key, it in document.items()}
        except FileNotFoundError:
            return {}
        except (ValueError, TypeError, KeyError, AttributeError):
            LOG.warning("%s cannot be read; what it said of the device's networks is found out anew", self._file)
            return {}

    def _write(self, places: Mapping[str, Place]) -> None:
        write_atomically(self._file, json.dumps({vip_id: asdict(place) for vip_id, place in sorted(places.items())}))


def left_behind(state_path: Path) -> set[str]:
    """Ids of devices that have a namespace here which was made for this ``state_path``, and no folder in it."""
    ids = (name[len(PREFIX) :] for name in names(PREFIX))
    return {device_id for device_id in ids if Attachments(state_path / device_id).left_behind}


def _mark(state_path: Path) -> str:
    """What a namespace bears inside: another agent's device may have the same name."""
    return f"lbaas-scheduler {hashlib.sha256(bytes(state_path)).hexdigest()[:32]}"


def _networks(places: Mapping[str, Place]) -> list[Network]:
    """Each once, in an order that stays."""
    return sorted({place.network for place in places.values()}, key=lambda it: (it.network_id, it.kind, it.number))
