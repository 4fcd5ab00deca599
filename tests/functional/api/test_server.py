"""The HTTP server inside, and the application for others."""

from __future__ import annotations

import http.client
import json
import logging
import os
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from wsgiref.simple_server import WSGIRequestHandler, make_server

import pytest

from lbaas_scheduler.api.server import RestServer
from lbaas_scheduler.errors import ConfigurationError
from tests.functional.api.house import House
from tests.functional.api.serving import served

POOLS = "/v2.0/lb/pools"


def ask(url: str, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=30)
    connection.request(method, path, None if body is None else json.dumps(body), headers)
    answer = connection.getresponse()
    text = answer.read()
    connection.close()
    return answer.status, json.loads(text) if text else None


def test_a_load_balancer_lives_its_whole_life_over_http_without_any_header(house: House) -> None:
    with served(house) as url:
        body = {"pool": {"subnet_id": house.subnet["id"], "protocol": "HTTP", "lb_method": "ROUND_ROBIN"}}
        status, answer = ask(url, "POST", f"{POOLS}.json", body)
        assert status == 201
        pool = answer["pool"]
        assert pool["tenant_id"] == "admin"
        status, answer = ask(url, "POST", "/v2.0/lb/vips", {"vip": house.vip_body(pool, protocol_port="80")})
        assert status == 201
        path = f"/v2.0/lb/vips/{answer['vip']['id']}"
        assert ask(url, "GET", path)[1]["vip"]["status"] == "ACTIVE"
        assert ask(url, "PUT", path, {"vip": {"name": "new"}})[1]["vip"]["name"] == "new"
        assert ask(url, "DELETE", path) == (204, None)
        assert ask(url, "GET", path)[0] == 404
        assert ask(url, "DELETE", f"{POOLS}/{pool['id']}") == (204, None)


def test_headers_say_who_calls_where_there_is_no_authentication(house: House) -> None:
    house.pool()
    with served(house) as url:
        assert len(ask(url, "GET", POOLS)[1]["pools"]) == 1
        assert ask(url, "GET", POOLS, **{"X-Project-Id": "bert"})[1] == {"pools": []}
        assert ask(url, "GET", "/v2.0/agents", **{"X-Project-Id": "bert"})[0] == 403
        assert ask(url, "GET", "/v2.0/agents", **{"X-Project-Id": "bert", "X-Roles": "admin"})[0] == 200


def test_a_body_in_chunks_is_bounded_as_any_other(house: House) -> None:
    with served(house) as url:
        connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=30)
        pieces = (b'{"pool": {"name": "', *[b"x" * 65_536] * 5, b'"}}')
        connection.request("POST", POOLS, iter(pieces), {"Content-Type": "application/json"}, encode_chunked=True)
        assert connection.getresponse().status == 413
        connection.close()


def test_the_server_says_that_nobody_is_asked_who_he_is(house: House, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING), served(house) as url:
        assert url.startswith("http://127.0.0.1:")
    assert [record.getMessage() for record in caplog.records if "is an administrator" in record.getMessage()]
    assert "OTHER MACHINES" not in caplog.text

    house.conf.set_override("bind_host", "0.0.0.0", "api")  # noqa: S104
    with caplog.at_level(logging.WARNING), served(house):
        pass
    assert "OTHER MACHINES" in caplog.text


def test_a_port_that_is_taken_is_named(house: House) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        house.conf.set_override("bind_port", port, "api")
        with pytest.raises(ConfigurationError, match=f"bind_port {port}.*in use"):
            RestServer(house.conf, house.app).start()


class Quiet(WSGIRequestHandler):
    def log_message(self, *_arguments: Any) -> None:
        """Nobody reads it."""


def test_any_wsgi_server_serves_the_application(house: House) -> None:
    with make_server("127.0.0.1", 0, house.app, handler_class=Quiet) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        host, port = server.server_address[:2]
        assert ask(f"http://{host}:{port}", "GET", "/")[0] == 200
        body = {"pool": {"subnet_id": house.subnet["id"], "protocol": "HTTP", "lb_method": "ROUND_ROBIN"}}
        assert ask(f"http://{host}:{port}", "POST", POOLS, body)[0] == 201
        server.shutdown()
        thread.join()


WSGI = """
import json, sys
from wsgiref.util import setup_testing_defaults
from lbaas_scheduler.wsgi import application
environ = {"PATH_INFO": sys.argv[1]}
setup_testing_defaults(environ)
print(b"".join(application(environ, lambda status, headers: print(status))).decode())
"""


def wsgi(tmp_path: Path, configuration: str, path: str = "/v2.0/service-types") -> subprocess.CompletedProcess[str]:
    file = tmp_path / "scheduler.conf"
    file.write_text(configuration)
    environment = {**os.environ, "LBAAS_SCHEDULER_CONFIG_FILES": str(file)}
    command = [sys.executable, "-c", WSGI, path]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=120)


def test_the_module_for_wsgi_servers_reads_the_configuration(tmp_path: Path, sqlite_tables_url: str) -> None:
    common = f"[DEFAULT]\ntransport_url = fake://\n[database]\nconnection = {sqlite_tables_url}\n"
    run = wsgi(tmp_path, f"{common}[api]\nauth_strategy = noauth\n")
    assert "200 OK" in run.stdout, run.stderr
    assert "is an administrator" in run.stdout
    assert '"name": "default"' in run.stdout


def test_without_keystone_or_a_word_about_it_the_application_does_not_start(tmp_path: Path, sqlite_tables_url: str) -> None:
    run = wsgi(tmp_path, f"[DEFAULT]\ntransport_url = fake://\n[database]\nconnection = {sqlite_tables_url}\n")
    assert run.returncode == 1
    assert "set [api] auth_strategy to noauth" in run.stderr
