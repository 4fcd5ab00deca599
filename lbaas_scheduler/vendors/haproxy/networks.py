"""How a device in a network namespace reaches the networks of its VIPs.

For each network a pair of virtual links: one end inside, with the VIPs' addresses, the other in a bridge of the host. The
interface's kind says which bridge:

:flat: the bridge of the interface's name, which is the operator's and stays.
:vxlan: one of ours, with a VXLAN link on the interface (the underlay); its multicast group is 239. and the VNI's three bytes.
:vlan: one of ours, with a VLAN link on the interface.

Bridges of ours are shared by all devices of this host that are on the network, and go with the last one. Names are ``lb``, a
letter for what it is, and a hash of what it is for.
"""

from __future__ import annotations

import hashlib
import logging
import re
import socket
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from ipaddress import ip_address, ip_interface
from typing import Any

from lbaas_scheduler.errors import DriverError
from lbaas_scheduler.vendors.haproxy.namespace import Namespace, bridge_of, ip, link, ports

LOG = logging.getLogger(__name__)

ARP = 0x0806
"""EtherType."""

VXLAN_PORT = 4789
"""RFC 7348, section 5."""

_INTERFACE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,14}")
_BRIDGE, _OUTSIDE, _INSIDE = "lbb", "lbo", "lbi"
_OURS = re.compile(_BRIDGE + "[0-9a-f]{12}")
KINDS = ("flat", "vlan", "vxlan")


@dataclass(frozen=True, slots=True)
class Network:
    """A network as one device is attached to it. ``number``: the VLAN id or VNI on the wire, 0 for a flat one."""

    network_id: str
    interface: str
    kind: str
    number: int = 0
    gateway: str = ""

    @classmethod
    def of(cls, wiring: Mapping[str, Any]) -> Network:
        """From a deployment's wiring.

        :raises DriverError: it does not say what is needed.
        """
        if not wiring:
            raise DriverError("The device is in a network namespace, and has no registered interface to reach the VIP's network.")
        kind, interface = wiring.get("kind"), wiring.get("interface")
        if kind not in KINDS or not isinstance(interface, str) or not is_interface(interface):
            raise DriverError("The interface that the VIP's network is wired to has no usable name or kind.")
        numbers = {"flat": 0, "vlan": wiring.get("segment"), "vxlan": wiring.get("vni")}
        number, most = numbers[kind], {"flat": 0, "vlan": 4094, "vxlan": 2**24 - 1}[kind]
        if isinstance(number, bool) or not isinstance(number, int) or not min(1, most) <= number <= most:
            raise DriverError(f"The VIP's network has no number that a {kind} interface could tell it by.")
        return cls(str(wiring.get("network_id", "")), interface, kind, number, _gateway(wiring.get("gateway_ip")))

    @property
    def bridge(self) -> str:
        return self.interface if self.kind == "flat" else f"{_BRIDGE}{self._wire}"

    @property
    def uplink(self) -> str:
        """What connects a bridge of ours to the interface; "" for a flat network."""
        return _uplink_of(self.bridge)

    @property
    def _wire(self) -> str:
        return _hash(self.kind, self.interface, str(self.number))

    def attach(self, namespace: Namespace) -> None:
        """:raises DriverError: the host lacks the interface, or the kernel what it takes."""
        self._make_bridge()
        outer, inner = self._ends(namespace)
        if link(outer) is not None and not namespace.has(inner):
            _delete(outer)  # of a namespace of the same name that is on its way out
        if link(outer) is None:
            ip("link", "add", "name", outer, "type", "veth", "peer", "name", inner, "netns", namespace.name)
        ip("link", "set", "dev", outer, "master", self.bridge, "up")
        namespace.ip("link", "set", "dev", inner, "up")

    def detach(self, namespace: Namespace) -> None:
        """And remove the bridge, if it is ours and no other device is on it."""
        outer, _ = self._ends(namespace)
        if link(outer) is not None:
            ip("link", "delete", "dev", outer)  # the other end goes with it
        _remove_unused(self.bridge)

    def addresses(self, namespace: Namespace) -> set[str]:
        """Those that the device has here, as ADDRESS/LENGTH; none where it is not attached."""
        outer, inner = self._ends(namespace)
        if not namespace.exists or not {outer, self.uplink} - {""} <= ports(self.bridge):
            return set()
        try:
            return namespace.addresses(inner)
        except DriverError:  # the other end is elsewhere
            return set()

    def set_addresses(self, namespace: Namespace, wanted: set[str], rank: int) -> None:
        """Let the device have exactly these addresses here, as ADDRESS/LENGTH.

        :param rank: of this network's gateway among the device's: 0 is the one that counts.
        """
        _, inner = self._ends(namespace)
        for address in sorted(namespace.addresses(inner) - wanted):
            namespace.ip("address", "delete", address, "dev", inner)
        for address in sorted(wanted - namespace.addresses(inner)):
            # Without the check for duplicates an IPv6 address can be listened on at once.
            words = ["nodad"] if ":" in address else []
            namespace.ip("address", "replace", address, "dev", inner, *words)
        if self.gateway and wanted:
            family = "-6" if ":" in self.gateway else "-4"
            via = ("default", "via", self.gateway, "dev", inner, "metric", str(100 + rank))
            namespace.ip(family, "route", "replace", *via)

    def announce(self, namespace: Namespace, addresses: Iterable[str]) -> None:
        """Tell neighbours that the device has these addresses here: they may remember another device's."""
        _, inner = self._ends(namespace)
        for address in addresses:
            namespace.run(partial(_announce, inner, address))

    def _make_bridge(self) -> None:
        if self.kind == "flat":
            if link(self.bridge) is None:
                text = "The device's host lacks the bridge that the VIP's network is on."
                raise DriverError(text, operator_message=f"{text} There is no link {self.bridge}; interfaces names it.")
            return
        if link(self.bridge) is None:
            ip("link", "add", "name", self.bridge, "type", "bridge")
        if link(self.uplink) is None:
            ip("link", "add", *self._uplink_words())
        ip("link", "set", "dev", self.uplink, "master", self.bridge, "up")
        ip("link", "set", "dev", self.bridge, "up")

    def _uplink_words(self) -> list[str]:
        if self.kind == "vlan":
            return ["link", self.interface, "name", self.uplink, "type", "vlan", "id", str(self.number)]
        group = ".".join(map(str, (239, *self.number.to_bytes(3, "big"))))
        words = ["type", "vxlan", "id", str(self.number), "dev", self.interface, "group", group, "dstport", str(VXLAN_PORT)]
        return ["name", self.uplink, *words]

    def _ends(self, namespace: Namespace) -> tuple[str, str]:
        """Names of the pair: outside, inside."""
        mark = _hash(namespace.name, self.network_id)
        return f"{_OUTSIDE}{mark}", f"{_INSIDE}{mark}"


def detach_all(namespace: Namespace) -> None:
    """Remove all of our links into a namespace, and the bridges that nobody needs then; for where nobody knows its networks."""
    for inner in namespace.links(_INSIDE):
        outer = _OUTSIDE + inner[len(_INSIDE) :]
        bridge = bridge_of(outer)
        if link(outer) is not None:
            ip("link", "delete", "dev", outer)
        _remove_unused(bridge)


def _remove_unused(bridge: str) -> None:
    """A bridge of ours that connects no device any more goes, with its uplink; others are the operator's."""
    uplink = _uplink_of(bridge)
    if uplink and not ports(bridge) - {uplink}:
        for name in (uplink, bridge):
            if link(name) is not None:
                ip("link", "delete", "dev", name)


def _uplink_of(bridge: str) -> str:
    return f"lbu{bridge[len(_BRIDGE) :]}" if _OURS.fullmatch(bridge) else ""


def _delete(name: str) -> None:
    try:
        ip("link", "delete", "dev", name)
    except DriverError:
        if link(name) is not None:
            raise


def _announce(name: str, address: str) -> None:
    try:
        with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as link_:
            link_.bind((name, 0))
            mac: bytes = link_.getsockname()[4]
            if ":" in address:
                _advertise(name, mac, ip_interface(address).ip.packed)
            else:
                _call_out(link_, mac, ip_interface(address).ip.packed)
    except OSError as error:
        LOG.warning("Neighbours of %s are not told, and find out by themselves: %s", address, error)


def _call_out(link_: socket.socket, mac: bytes, numbers: bytes) -> None:
    """For IPv4 (RFC 5227, section 3)."""
    head = b"\xff" * 6 + mac + ARP.to_bytes(2, "big")
    link_.send(head + bytes((0, 1, 8, 0, 6, 4, 0, 1)) + mac + numbers + bytes(6) + numbers)


def _advertise(name: str, mac: bytes, numbers: bytes) -> None:
    """For IPv6 (RFC 4861, section 7.2.6)."""
    with socket.socket(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_ICMPV6) as link_:
        index = socket.if_nametoindex(name)
        link_.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_HOPS, 255)
        link_.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_IF, index)
        # Type 136, with the flag that says to replace what is known; its option is our hardware address.
        told = bytes((136, 0, 0, 0, 0x20, 0, 0, 0)) + numbers + bytes((2, 1)) + mac
        link_.sendto(told, ("ff02::1", 0, 0, index))


def is_interface(name: str) -> bool:
    """Whether a link may be called so."""
    return _INTERFACE.fullmatch(name) is not None


def _gateway(text: Any) -> str:
    if not text:
        return ""
    try:
        return str(ip_address(text))
    except ValueError:
        raise DriverError("The gateway of the VIP's subnet is not an IP address.") from None


def _hash(*words: str) -> str:
    return hashlib.sha256("/".join(words).encode()).hexdigest()[:12]
