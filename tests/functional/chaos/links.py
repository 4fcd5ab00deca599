"""Connections between a process and a service, which can be broken in several ways."""

from __future__ import annotations

import re
import socket
import struct
import threading
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum

from tests.rig.ports import free_port

COMMIT = re.compile(rb"COMMIT|/kv/txn")
"""What a client sends to make changes final: SQL's word, and the path of etcd's transactions."""

RESET_AT_CLOSE = struct.pack("ii", 1, 0)
"""Of SO_LINGER."""


class Mode(StrEnum):
    """What becomes of what is sent."""

    OPEN = "open"
    CUT = "cut"
    """Connections are reset, new ones as well."""
    SILENT = "silent"
    """Everything is accepted, nothing is passed on: a black hole."""
    SLOW = "slow"
    """Every piece waits, in each direction."""
    LOSES_COMMITS = "loses commits"
    """A connection is reset instead of passing on a commit."""
    LOSES_ANSWERS = "loses answers"
    """A commit is passed on, and the connection is reset in place of its answer."""


@dataclass
class _Pair:
    """A client's connection, and ours to the service on its behalf."""

    near: socket.socket
    far: socket.socket
    doomed: bool = False
    ended: int = 0
    """How many of the two directions."""

    def reset(self) -> None:
        """So that both sides get an error, and not the end of a stream."""
        for end in (self.near, self.far):
            with suppress(OSError):
                end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_AT_CLOSE)
            with suppress(OSError):
                end.shutdown(socket.SHUT_RD)  # wakes up who reads it, and tells the other side nothing
            end.close()

    def close(self) -> None:
        self.near.close()
        self.far.close()


class Link:
    """A port of the loopback that leads to another one.

    :ivar port: where clients connect.
    :ivar broken: how many connections a change of :attr:`mode`, or the mode, has broken.
    """

    SLOW_SECONDS = 0.15

    def __init__(self, name: str, target: int) -> None:
        self.name = name
        self.port = free_port()
        self.broken = 0
        self._target = target
        self._mode = Mode.OPEN
        self._changed = threading.Condition()
        self._pairs: list[_Pair] = []
        self._listener = socket.create_server(("127.0.0.1", self.port), backlog=128)
        threading.Thread(target=self._accept, name=f"link {name}", daemon=True).start()

    @property
    def open(self) -> int:
        """How many connections go through it now."""
        return len(self._pairs)

    @property
    def mode(self) -> Mode:
        return self._mode

    @mode.setter
    def mode(self, mode: Mode) -> None:
        with self._changed:
            self._mode = mode
            self._changed.notify_all()
            pairs = list(self._pairs) if mode is Mode.CUT else []
        for pair in pairs:
            self._break(pair)

    def close(self) -> None:
        self.mode = Mode.CUT
        # Closing alone would not wake up who waits in accept.
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                threading.Thread(target=self._connect, args=(near,), name=f"link {self.name}", daemon=True).start()

    def _connect(self, near: socket.socket) -> None:
        far = socket.socket()
        pair = _Pair(near, far)
        with self._changed:
            self._pairs.append(pair)
        try:
            self._wait_while_silent()
            if self._mode is Mode.CUT:
                raise ConnectionResetError
            far.connect(("127.0.0.1", self._target))
        except OSError:
            self._break(pair)
            return
        threading.Thread(target=self._pump, args=(pair, far, near), name=f"link {self.name}", daemon=True).start()
        self._pump(pair, near, far)

    def _pump(self, pair: _Pair, source: socket.socket, sink: socket.socket) -> None:
        try:
            while data := source.recv(65536):
                self._wait_while_silent()
                if self._mode is Mode.SLOW:
                    with self._changed:
                        self._changed.wait_for(lambda: self._mode is not Mode.SLOW, self.SLOW_SECONDS)
                if self._is_lost(pair, data, up=source is pair.near):
                    raise ConnectionResetError
                sink.sendall(data)
            self._end(pair, sink)
        except OSError:
            self._break(pair)

    def _end(self, pair: _Pair, sink: socket.socket) -> None:
        with self._changed:
            if pair not in self._pairs:
                return  # was reset
        sink.shutdown(socket.SHUT_WR)
        pair.ended += 1
        if pair.ended == 2 and self._forget(pair):
            pair.close()

    def _is_lost(self, pair: _Pair, data: bytes, *, up: bool) -> bool:
        if not up:
            return pair.doomed
        commits = COMMIT.search(data) is not None
        pair.doomed = commits and self._mode is Mode.LOSES_ANSWERS
        return commits and self._mode is Mode.LOSES_COMMITS

    def _wait_while_silent(self) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._mode is not Mode.SILENT)

    def _break(self, pair: _Pair) -> None:
        if self._forget(pair):
            self.broken += 1
            pair.reset()

    def _forget(self, pair: _Pair) -> bool:
        with self._changed:
            if pair not in self._pairs:
                return False
            self._pairs.remove(pair)
            return True
