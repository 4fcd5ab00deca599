"""Tenants who create, change and delete, and an operator who moves and evacuates. What they do is drawn from the seed."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

from tests.functional.chaos.client import Answer, Http
from tests.functional.chaos.ledger import MAYBE, THERE, Entry, Ledger

LB = "/v2.0/lb"
PAUSE = (0.02, 0.3)
POOLS, MEMBERS, MONITORS = 7, 4, 2
METHODS = ("ROUND_ROBIN", "LEAST_CONNECTIONS", "SOURCE_IP")


class Worker:
    """A thread that does one thing after another until it is told to end."""

    def __init__(self, http: Http, seed: str, name: str) -> None:
        self.name = name
        self.chance = random.Random(f"{seed}/{name}")
        self.done: Counter[str] = Counter()
        self.failed = ""
        self._http = http
        self._project = ""
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def finish(self) -> None:
        """Let it end what it has begun."""
        self._over.set()
        self._thread.join(200)
        assert not self._thread.is_alive(), f"{self.name} does not end"
        assert not self.failed, f"{self.name}: {self.failed}"

    def actions(self) -> list[tuple[int, Callable[[], None]]]:
        """Weight and what to do."""
        raise NotImplementedError

    def ask(self, method: str, path: str, body: Any = None) -> Answer:
        return self._http.patiently(self.chance, method, path, body, self._project)

    def _run(self) -> None:
        weights, actions = zip(*self.actions(), strict=True)
        try:
            while not self._over.is_set():
                action = self.chance.choices(actions, weights)[0]
                action()
                self.done[action.__name__] += 1
                self._over.wait(self.chance.uniform(*PAUSE))
        except Exception as error:
            self.failed = f"{type(error).__name__}: {error}"


class Tenant(Worker):
    """Owns what it creates; :attr:`ledger` has what it was told of that."""

    def __init__(self, http: Http, seed: str, name: str, subnet_id: str) -> None:
        super().__init__(http, seed, name)
        self.ledger = Ledger()
        self._project = name
        self._subnet_id = subnet_id
        self._number = 0
        self._abandoned: set[str] = set()
        """Pools that may have a VIP that nobody told us of."""

    def actions(self) -> list[tuple[int, Callable[[], None]]]:
        return [
            (4, self.create_pool),
            (8, self.create_vip),
            (5, self.add_member),
            (1, self.create_monitor),
            (3, self.associate_monitor),
            (6, self.change_vip),
            (4, self.change_pool),
            (6, self.change_member),
            (2, self.change_monitor),
            (2, self.delete_member),
            (4, self.delete_vip),
            (2, self.delete_pool),
            (1, self.dissociate_monitor),
        ]

    def create_pool(self) -> None:
        if len([pool for pool in self.ledger.living("pool") if pool.id not in self._abandoned]) >= POOLS:
            return
        body = {"name": self._name(), "protocol": "HTTP", "lb_method": self.chance.choice(METHODS)}
        self._create("pool", body | {"subnet_id": self._subnet_id}, remembered=body)

    def create_vip(self) -> None:
        pools = [pool for pool in self.ledger.living("pool") if not self._has_vip(pool.id)]
        if not pools:
            return
        pool = self.chance.choice(pools)
        body = {"name": self._name(), "protocol": "HTTP", "protocol_port": 80, "pool_id": pool.id, "connection_limit": -1}
        # The answer about it, and not the pool, tells whether there is one: of a creation without an answer nothing is known.
        if not self._create("vip", body | {"subnet_id": self._subnet_id}, remembered=body, parent=pool.id):
            self._abandoned.add(pool.id)

    def add_member(self) -> None:
        if pool := self._any("pool"):
            if sum(entry.noun == "member" and entry.state == THERE for entry in self.ledger.children(pool.id)) >= MEMBERS:
                return
            self._number += 1
            address = f"10.30.{self._number // 200}.{self._number % 200 + 1}"
            body = {"pool_id": pool.id, "address": address, "protocol_port": 8080, "weight": self.chance.randint(1, 256)}
            self._create("member", body, remembered=body, parent=pool.id)

    def create_monitor(self) -> None:
        if len(self.ledger.living("health_monitor")) < MONITORS:
            body = {"type": "TCP", "delay": self.chance.randint(5, 9), "timeout": 3, "max_retries": 2}
            self._create("health_monitor", body, remembered=body)

    def associate_monitor(self) -> None:
        pool, monitor = self._any("pool"), self._any("health_monitor")
        if pool is None or monitor is None:
            return
        body = {"health_monitor": {"id": monitor.id}}
        answer = self.ask("POST", f"{LB}/pools/{pool.id}/health_monitors", body)
        self._bind(pool, monitor, answer, wanted=True)

    def dissociate_monitor(self) -> None:
        pool, monitor = self._any("pool"), self._any("health_monitor")
        if pool is not None and monitor is not None:
            answer = self.ask("DELETE", f"{LB}/pools/{pool.id}/health_monitors/{monitor.id}")
            self._bind(pool, monitor, answer, wanted=False)

    def change_vip(self) -> None:
        self._change(self._any("vip"), {"connection_limit": self.chance.randint(1, 999), "name": self._name()})

    def change_pool(self) -> None:
        self._change(self._any("pool"), {"lb_method": self.chance.choice(METHODS)})

    def change_member(self) -> None:
        self._change(self._any("member"), {"weight": self.chance.randint(1, 256)})

    def change_monitor(self) -> None:
        self._change(self._any("health_monitor"), {"delay": self.chance.randint(5, 9)})

    def delete_member(self) -> None:
        self._delete(self._any("member"))

    def delete_vip(self) -> None:
        self._delete(self._any("vip"))

    def delete_pool(self) -> None:
        pools = [pool for pool in self.ledger.living("pool") if not self._has_vip(pool.id)]
        if pools:
            self._delete(self.chance.choice(pools))

    def _name(self) -> str:
        self._number += 1
        return f"{self.name}-{self._number}"

    def _any(self, noun: str) -> Entry | None:
        found = self.ledger.living(noun)
        return self.chance.choice(found) if found else None

    def _has_vip(self, pool_id: str) -> bool:
        """Whether it has one, or may have."""
        vips = [entry for entry in self.ledger.children(pool_id) if entry.noun == "vip"]
        return pool_id in self._abandoned or any(vip.state in (THERE, MAYBE) for vip in vips)

    def _create(self, noun: str, body: dict[str, Any], remembered: dict[str, Any], parent: str = "") -> bool:
        """Whether its outcome is known."""
        answer = self.ask("POST", f"{LB}/{noun}s", {noun: body})
        if answer.ok:
            self.ledger.add(noun, answer.body[noun]["id"], remembered, parent)
        return answer.ok or (answer.known and not answer.doubtful)

    def _change(self, entry: Entry | None, values: dict[str, Any]) -> None:
        if entry is None:
            return
        answer = self.ask("PUT", f"{LB}/{entry.noun}s/{entry.id}", {entry.noun: values})
        if answer.ok or not answer.known or answer.doubtful:
            entry.changed(values, known=answer.ok)

    def _delete(self, entry: Entry | None) -> None:
        if entry is None:
            return
        answer = self.ask("DELETE", f"{LB}/{entry.noun}s/{entry.id}")
        if answer.known and not answer.ok and not answer.doubtful:
            return  # refused
        for each in (entry, *(self.ledger.children(entry.id) if entry.noun == "pool" else ())):
            each.deleted(known=answer.ok)

    def _bind(self, pool: Entry, monitor: Entry, answer: Answer, *, wanted: bool) -> None:
        if answer.ok or not answer.known or answer.doubtful:
            pool.values.setdefault(f"monitor {monitor.id}", [False])
            pool.changed({f"monitor {monitor.id}": wanted}, known=answer.ok)


class Operator(Worker):
    """Moves VIPs, evacuates devices and changes its mind."""

    def actions(self) -> list[tuple[int, Callable[[], None]]]:
        return [(6, self.move), (2, self.evacuate), (3, self.cancel), (2, self.enable), (1, self.rebalance)]

    def move(self) -> None:
        vips, devices = self._ids("lb/vips"), self._ids("devices")
        if vips and devices:
            body = {"device_id": self.chance.choice([None, *devices])}
            self.ask("POST", f"{LB}/vips/{self.chance.choice(vips)}/move", {"move": body})

    def evacuate(self) -> None:
        devices = self.ask("GET", "/v2.0/devices?admin_state=enabled&fields=id")
        if devices.ok and len(devices.body["devices"]) > 3:
            self.ask("POST", f"/v2.0/devices/{self.chance.choice(devices.body['devices'])['id']}/evacuate")

    def cancel(self) -> None:
        if devices := self._ids("devices", "?admin_state=draining&fields=id"):
            self.ask("DELETE", f"/v2.0/devices/{self.chance.choice(devices)}/evacuation")

    def enable(self) -> None:
        if devices := self._ids("devices", "?admin_state=draining&fields=id"):
            self._enable(self.chance.choice(devices))

    def rebalance(self) -> None:
        self.ask("POST", "/v2.0/placements/rebalance", {"rebalance": {}})

    def tidy_up(self, seconds: float = 90) -> None:
        """Let every device take VIPs again."""
        deadline = time.monotonic() + seconds
        while devices := self._ids("devices", "?admin_state=draining&fields=id"):
            assert time.monotonic() < deadline, f"devices {devices} cannot be enabled"
            for device_id in devices:
                self._enable(device_id)

    def _enable(self, device_id: str) -> None:
        self.ask("DELETE", f"/v2.0/devices/{device_id}/evacuation")
        self.ask("PUT", f"/v2.0/devices/{device_id}", {"device": {"admin_state": "enabled"}})

    def _ids(self, collection: str, query: str = "?fields=id") -> list[str]:
        answer = self.ask("GET", f"/v2.0/{collection}{query}")
        return sorted(row["id"] for row in answer.body[collection.rpartition("/")[2]]) if answer.ok else []
