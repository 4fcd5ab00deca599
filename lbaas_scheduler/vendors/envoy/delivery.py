"""How a change reaches a running Envoy, and how we know that it did.

New clusters first, then listeners, then old clusters go: a listener never lacks its cluster. Envoy tells, in its statistics,
which version of a file it has taken over, and in its configuration dump what it refused.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from lbaas_scheduler.errors import DriverError
from lbaas_scheduler.sdk.listening import Endpoint, listening
from lbaas_scheduler.vendors.envoy.admin import Admin
from lbaas_scheduler.vendors.envoy.folder import Folder, digest
from lbaas_scheduler.vendors.envoy.resources import Json, Resources

_POLL_SECONDS = 0.01
FIRST_CHECK_SECONDS = 10.0
"""How long we wait for the first health checks of a changed cluster. Beyond that Envoy finishes the change by itself, and
serves the state before it until then: a member that does not answer must not make its VIP fail."""
_MANAGER = {"cds": "cluster_manager", "lds": "listener_manager"}
_FAILED = {"name", "error_state"}
_REFUSED = "The device's Envoy refused the configuration."
_REASON_LENGTH = 300


@dataclass(frozen=True, slots=True)
class Delivery:
    """Changes what one running Envoy serves."""

    folder: Folder
    admin: Admin
    timeout: float
    open_here: Callable[[], set[Endpoint]]
    """Where this Envoy accepts connections."""

    def served(self, wanted: Mapping[str, Resources]) -> bool:
        """Whether Envoy serves exactly this already, and its files say so."""
        return all(self._has(name, _listed(wanted, name)) for name in _MANAGER)

    def changed(self, wanted: Mapping[str, Resources]) -> set[str]:
        """Ids of those that the files that Envoy watches do not have like this: somebody else wrote them."""
        stored = {name: self.folder.read_watched(name) for name in _MANAGER}
        lists = {name: _listed(wanted, name) for name in _MANAGER}
        return {key for key in wanted if any(stored[name].get(key) != lists[name].get(key) for name in _MANAGER)}

    def deliver(self, wanted: Mapping[str, Resources]) -> dict[str, str]:
        """Make Envoy serve exactly ``wanted``.

        :returns: id → reason for each VIP that Envoy refused; the others are served.
        :raises DriverError: Envoy does not answer, or does not take the change over in time.
        """
        before, clusters = self.folder.read_watched("cds"), _listed(wanted, "cds")
        changed = [name for name, cluster in clusters.items() if before.get(name) != cluster]
        # A new cluster serves nobody before each of its members was checked once. Without checks it serves at once; the
        # second version replaces it as soon as the checks are done, which is at once where all members answer.
        unchecked = {name: _without_checks(clusters[name]) for name in changed if name not in before}
        refused = self._load("cds", {**before, **unchecked}) | self._load("cds", {**before, **clusters})
        open_before = self._open_listeners()
        refused |= self._load("lds", _listed(wanted, "lds"))
        self._await_first_checks(changed)
        self._await_closed(open_before)
        return refused | self._load("cds", clusters)

    def _load(self, name: str, resources: Mapping[str, Json]) -> dict[str, str]:
        """Write a watched file and wait until Envoy has taken it over, or has refused something in it."""
        version = digest(resources.values())
        if self._has(name, resources):
            return {}
        before, rejected = self.folder.read_watched(name), self._count(name, "update_rejected")
        # Somebody may have given another content the same version: then it is the taking over that counts.
        taken = self._count(name, "update_success") if self._version(name) == version else -1
        self.folder.write_watched(name, resources.values())
        deadline = time.monotonic() + self.timeout
        while self._version(name) != version or self._count(name, "update_success") == taken:
            if self._count(name, "update_rejected") > rejected:
                changed = [key for key, value in resources.items() if before.get(key) != value]
                return self._refused(name, version, changed)
            if time.monotonic() >= deadline:
                text = f"{self.folder.watched(name)} was not taken over within {self.timeout} s"
                raise DriverError("The device's Envoy did not take the change over in time.", operator_message=text)
            time.sleep(_POLL_SECONDS)
        return {}

    def _refused(self, name: str, version: str, changed: Collection[str]) -> dict[str, str]:
        """Who was refused. Envoy takes the good resources of a file over, unless it cannot read the file as a whole."""
        if name == "lds":
            states = self.admin.dump("dynamic_listeners", "name", "error_state.details")
            errors = {item["name"]: item["error_state"]["details"] for item in states if item.keys() >= _FAILED}
            return {key: text[:_REASON_LENGTH] for key, text in errors.items()} or dict.fromkeys(changed, _REFUSED)
        taken = {
            item["cluster"]["name"]
            for state in ("dynamic_active_clusters", "dynamic_warming_clusters")
            for item in self.admin.dump(state, "version_info", "cluster.name")
            if item.get("version_info") == version
        }
        return {key: _REFUSED for key in changed if key not in taken}

    def _await_first_checks(self, changed: Collection[str]) -> None:
        deadline = time.monotonic() + FIRST_CHECK_SECONDS
        while changed and time.monotonic() < deadline:
            warming = self.admin.dump("dynamic_warming_clusters", "cluster.name")
            if not {item["cluster"]["name"] for item in warming} & set(changed):
                return
            time.sleep(_POLL_SECONDS)

    def _open_listeners(self) -> dict[str, Endpoint]:
        """Where Envoy accepts connections, by VIP. From Envoy and not from the file, which may hold what it refused."""
        return {item["name"]: _endpoint(item["local_address"]) for item in self.admin.listeners()}

    def _await_closed(self, before: Mapping[str, Endpoint]) -> None:
        """Wait until what is no longer open refuses connections: the worker threads close it a moment later.

        Another device of the host may listen there by now.
        """
        gone = set(before.values()) - set(self._open_listeners().values())
        deadline = time.monotonic() + self.timeout
        while gone & listening() and gone & self.open_here():
            if time.monotonic() >= deadline:
                text = f"{self.folder.path}: still listening: {sorted(gone & self.open_here())}"
                raise DriverError("The device's Envoy did not close a VIP.", operator_message=text)
            time.sleep(_POLL_SECONDS)

    def _version(self, name: str) -> str:
        text = f"{_MANAGER[name]}.{name}.version_text"
        return str(self.admin.stats(rf"^{_MANAGER[name]}\.{name}\.version_text$").get(text, ""))

    def _has(self, name: str, resources: Mapping[str, Json]) -> bool:
        return self._version(name) == digest(resources.values()) and self.folder.read_watched(name) == resources

    def _count(self, name: str, what: str) -> int:
        stat = f"{_MANAGER[name]}.{name}.{what}"
        return int(self.admin.stats(rf"^{_MANAGER[name]}\.{name}\.{what}$").get(stat, 0))


def _listed(wanted: Mapping[str, Resources], name: str) -> dict[str, Json]:
    """The clusters or listeners of ``wanted`` by name, in the order of the names: the same content is the same version."""
    items = {key: value.cluster if name == "cds" else value.listener for key, value in sorted(wanted.items())}
    return {key: item for key, item in items.items() if item is not None}


def _without_checks(cluster: Json) -> Json:
    return {key: value for key, value in cluster.items() if key != "health_checks"}


def _endpoint(address: Json) -> Endpoint:
    return address["socket_address"]["address"], address["socket_address"]["port_value"]
