"""Requests to etcd's JSON gateway: endpoints that fail are passed over, tokens renewed, and a request is repeated a bounded
number of times. etcd3gw speaks the protocol; its lock and watch helpers are not used (a lock that was not acquired looks like
one that was; a watch hangs for ever once etcd was restarted).
"""

from __future__ import annotations

import base64
import json
import logging
import random
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import requests
from etcd3gw.client import Etcd3Client
from etcd3gw.exceptions import (
    ConnectionFailedError,
    ConnectionTimeoutError,
    Etcd3Exception,
    InternalServerError,
    PreconditionFailedError,
)

from lbaas_scheduler.errors import ConfigurationError, StoreUnavailable

LOG = logging.getLogger(__name__)

TRIES = 8
FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 0.05, 1.0

PASSING = (ConnectionFailedError, ConnectionTimeoutError, InternalServerError, PreconditionFailedError, requests.RequestException)
"""Errors that another try, or another member, may cure."""

UNAUTHENTICATED = (
    "invalid auth token",
    "auth: token",
    "user name is empty",
    "authorization token",
    "revision of auth store is old",
)
API_PATH = "/v3/"
"""Since etcd 3.4."""


@dataclass(frozen=True, slots=True)
class Access:
    """How to get at a cluster.

    :ivar endpoints: ``http://host:port`` or ``https://host:port``, in the order in which they are tried.
    :ivar ca_cert: file with the certificates of who signed the servers'; "" = the system's.
    :ivar cert, key: files with our own certificate and its key; "" = none.
    :ivar user, password: for etcd's own authentication; "" = off.
    """

    endpoints: tuple[str, ...]
    ca_cert: str = ""
    cert: str = ""
    key: str = ""
    user: str = ""
    password: str = field(default="", repr=False)
    timeout_seconds: float = 5.0

    def __post_init__(self) -> None:
        for endpoint in self.endpoints:
            parts = urlsplit(endpoint)
            if parts.scheme not in ("http", "https") or not parts.hostname:
                raise ConfigurationError(
                    reason=f"etcd endpoint '{endpoint}' is no URL; give http://host:port or https://host:port"
                )
        if not self.endpoints:
            raise ConfigurationError(reason="no etcd endpoint is given; give http://host:port or https://host:port")


class EtcdClient:
    """Thread-safe: each thread has a connection of its own, which is faster than sharing one.

    :param tries: of a request, each at the next member.
    """

    def __init__(self, access: Access, tries: int = TRIES) -> None:
        self._access = access
        self._tries = tries
        self._local = threading.local()
        self._current = 0
        self._token = ""
        self._lock = threading.Lock()

    def post(self, path: str, payload: dict[str, Any]) -> tuple[dict[str, Any], bool]:
        """Send a request, repeatedly if need be.

        :returns: the answer, and whether an earlier try may have been carried out although its answer was lost.
        :raises StoreUnavailable: no member answered.
        """
        body = json.dumps(payload)
        last: Exception | None = None
        for turn in range(self._tries):
            if turn:
                pause = min(LONGEST_PAUSE_SECONDS, FIRST_PAUSE_SECONDS * 2**turn)
                time.sleep(pause * random.uniform(0.5, 1))  # noqa: S311  # spreads retries, guards nothing
            place = self._current
            client = self._client(place)
            try:
                return client.post(client.get_url(path), data=body), last is not None
            except PASSING as error:
                last = error
                self._pass_over(place)
            except Etcd3Exception as error:
                if not _is_about_tokens(error) or not self._access.user:
                    raise
                last = last or None
                self._renew(client)
        # Not in the error: whoever places a VIP reads that, and where etcd is and how it is reached is not for him.
        LOG.warning("No member of etcd answers at %s: %s", ", ".join(self._access.endpoints), _text(last))
        raise StoreUnavailable(dependency="etcd", reason="no member answers") from last

    def stream(self, payload: dict[str, Any], idle_seconds: float) -> Iterator[dict[str, Any]]:
        """A watch's answers, until nothing came for ``idle_seconds`` or the connection broke. Whoever wants more opens it
        again."""
        place = self._current
        client = self._client(place)
        timeouts = (self._access.timeout_seconds, idle_seconds)
        try:
            with client.session.post(client.get_url("/watch"), json=payload, stream=True, timeout=timeouts) as response:
                if response.status_code != requests.codes["ok"]:
                    raise Etcd3Exception(response.text, response.reason)
                for line in response.iter_lines(chunk_size=65_536):
                    if line.strip():
                        yield json.loads(line)
        except requests.ReadTimeout:
            return
        except requests.ConnectionError as error:
            # urllib3 reports a read time-out in the middle of a stream so.
            if "Read timed out" in str(error):
                return
            self._pass_over(place)
            raise StoreUnavailable(dependency="etcd", reason=_text(error)) from error
        except requests.RequestException as error:
            self._pass_over(place)
            raise StoreUnavailable(dependency="etcd", reason=_text(error)) from error
        except Etcd3Exception as error:
            if self._access.user and _is_about_tokens(error):
                self._renew(client)
                return
            raise StoreUnavailable(dependency="etcd", reason=_text(error)) from error

    def close(self) -> None:
        """Of this thread; the others' connections end with their threads."""
        for client in getattr(self._local, "clients", {}).values():
            client.session.close()
        self._local.clients = {}

    def _client(self, place: int) -> Etcd3Client:
        clients: dict[int, Etcd3Client] = self._local.__dict__.setdefault("clients", {})
        if place not in clients:
            clients[place] = self._connect(self._access.endpoints[place])
        client = clients[place]
        if self._access.user:
            if not self._token:
                self._renew(client)
            client.session.headers["Authorization"] = self._token
        return client

    def _connect(self, endpoint: str) -> Etcd3Client:
        parts = urlsplit(endpoint)
        access = self._access
        session = requests.Session()
        # Not through a proxy that the environment names for the web.
        session.trust_env = False
        if access.ca_cert:
            session.verify = access.ca_cert
        if access.cert:
            session.cert = (access.cert, access.key)
        return Etcd3Client(
            host=parts.hostname or "",
            port=parts.port or 2379,
            protocol=parts.scheme,
            timeout=access.timeout_seconds,
            api_path=API_PATH,
            session=session,
        )

    def _pass_over(self, place: int) -> None:
        with self._lock:
            if self._current == place:
                self._current = (place + 1) % len(self._access.endpoints)

    def _renew(self, client: Etcd3Client) -> None:
        """A token for the user; the server forgets them on a restart, and after some minutes without use."""
        client.session.headers.pop("Authorization", None)
        account = {"name": self._access.user, "password": self._access.password}
        try:
            answer = client.post(client.get_url("/auth/authenticate"), json=account)
        except PASSING:
            # The request itself will fail in the same way, and be repeated.
            return
        except Etcd3Exception as error:
            reason = f"etcd refuses user '{self._access.user}': {_text(error)}; check [allocator] etcd_user and etcd_password"
            raise ConfigurationError(reason=reason) from error
        self._token = answer["token"]


def encode(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def decode(text: str) -> str:
    return base64.b64decode(text).decode()


def chunks(items: Sequence[Any], size: int) -> Iterator[Sequence[Any]]:
    return (items[start : start + size] for start in range(0, len(items), size))


def _is_about_tokens(error: Etcd3Exception) -> bool:
    text = _text(error)
    return any(words in text for words in UNAUTHENTICATED)


def _text(error: Exception | None) -> str:
    detail = getattr(error, "detail_text", None)
    return str(detail or error or type(error).__name__).strip()[:300]


def text_of(error: Etcd3Exception) -> str:
    """What etcd said."""
    return _text(error)
