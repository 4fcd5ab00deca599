"""A Keystone that speaks as much of its version 3 as keystonemiddleware asks for: passwords for tokens, and what tokens say."""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

PASSWORD = "open sesame"
SERVICE_USER = "lbaas-scheduler"

Document = dict[str, Any]


@dataclass
class Token:
    user: str
    roles: tuple[str, ...]
    project: str | None
    expires_at: datetime
    id: str = field(default_factory=lambda: uuid.uuid4().hex)
    revoked: bool = False

    def document(self, url: str) -> Document:
        scope = {} if self.project is None else {"project": {**_named(self.project), "domain": _named("default")}}
        interfaces = [{"interface": kind, "url": url, "region": "one", "id": kind} for kind in ("public", "internal", "admin")]
        return {
            "token": {
                "methods": ["password"],
                "user": {**_named(self.user), "domain": _named("default")},
                "roles": [_named(role) for role in self.roles],
                "catalog": [{"type": "identity", "name": "keystone", "id": "k", "endpoints": interfaces}],
                "issued_at": _text(self.expires_at - timedelta(hours=1)),
                "expires_at": _text(self.expires_at),
                "audit_ids": [self.id[:16]],
                **scope,
            }
        }


class Keystone:
    """Listens on a port of its own from the start until :meth:`stop`. ``asked``: the requests, method and path."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self._tokens: dict[str, Token] = {}
        keystone = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                keystone.get(self)

            def do_POST(self) -> None:
                keystone.post(self)

            def log_message(self, *_words: Any) -> None:
                """Nobody reads it."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}/v3"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def issue(self, user: str, *roles: str, project: str | None = "anne", minutes: float = 60) -> Token:
        token = Token(user, roles, project, datetime.now(UTC) + timedelta(minutes=minutes))
        self._tokens[token.id] = token
        return token

    def get(self, request: BaseHTTPRequestHandler) -> None:
        path, query = self._note(request)
        if path in ("/", "/v3", "/v3/"):
            _answer(request, 200 if path != "/" else 300, self._versions(path))
        elif path != "/v3/auth/tokens":
            _answer(request, 404, _error(404, "There is no such path."))
        elif self._valid(request.headers.get("X-Auth-Token")) is None:
            _answer(request, 401, _error(401, "Who asks?"))
        else:
            expired_too = query.get("allow_expired") == ["1"]
            found = self._valid(request.headers.get("X-Subject-Token"), expired_too)
            _answer(request, *((404, _error(404, "No such token.")) if found is None else (200, found.document(self.url))))

    def post(self, request: BaseHTTPRequestHandler) -> None:
        path, _ = self._note(request)
        body = json.loads(request.rfile.read(int(request.headers["Content-Length"])))
        user = body.get("auth", {}).get("identity", {}).get("password", {}).get("user", {})
        if path != "/v3/auth/tokens" or (user.get("name"), user.get("password")) != (SERVICE_USER, PASSWORD):
            _answer(request, 401, _error(401, "The password is wrong."))
            return
        token = self.issue(SERVICE_USER, "service", project="service")
        _answer(request, 201, token.document(self.url), {"X-Subject-Token": token.id})

    def _note(self, request: BaseHTTPRequestHandler) -> tuple[str, Mapping[str, list[str]]]:
        parts = urlsplit(request.path)
        self.asked.append(f"{request.command} {parts.path}")
        return parts.path, parse_qs(parts.query)

    def _valid(self, token_id: str | None, expired_too: bool = False) -> Token | None:
        """As Keystone has it: a token that is expired or revoked cannot be found."""
        found = self._tokens.get(token_id or "")
        if found is None or found.revoked:
            return None
        return found if expired_too or found.expires_at > datetime.now(UTC) else None

    def _versions(self, path: str) -> Document:
        version = {"id": "v3.14", "status": "stable", "links": [{"rel": "self", "href": f"{self.url}/"}], "media-types": []}
        return {"versions": {"values": [version]}} if path == "/" else {"version": version}


def _answer(request: BaseHTTPRequestHandler, status: int, document: Document, headers: Mapping[str, str] | None = None) -> None:
    data = json.dumps(document).encode()
    request.send_response(status)
    for name, value in {"Content-Type": "application/json", "Content-Length": str(len(data)), **(headers or {})}.items():
        request.send_header(name, value)
    request.end_headers()
    request.wfile.write(data)


def _named(name: str) -> Document:
    return {"id": name, "name": name}


def _error(code: int, message: str) -> Document:
    return {"error": {"code": code, "title": "Error", "message": message}}


def _text(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
