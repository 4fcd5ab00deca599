"""The REST API as commands use it: documents in, documents out, and errors as :class:`~.problems.Problem`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import parse_qs, urlsplit

from keystoneauth1 import exceptions
from keystoneauth1.adapter import Adapter

from lbaas_scheduler.cli.problems import Problem, Refused

Document = dict[str, Any]
Query = Mapping[str, Any]

_HINTS: Mapping[int, str] = {
    401: "Log in anew: check OS_CLOUD or the other OS_* variables, or issue a new token.",
    403: "Use the credentials of somebody who may, an administrator's for instance.",
    413: "Send less at once.",
}
"""What to do about a status, where the server cannot know it."""


class Client:
    """:param adapter: knows where the server is, and proves who calls."""

    def __init__(self, adapter: Adapter) -> None:
        self._adapter = adapter

    def get(self, path: str, query: Query | None = None) -> Document:
        """:raises Refused: the server answered with an error.

        :raises Problem: there is no answer, or none of this API.
        """
        return self._call("GET", path, query=query)

    def post(self, path: str, body: Document | None = None, query: Query | None = None) -> Document:
        return self._call("POST", path, body, query)

    def put(self, path: str, body: Document, query: Query | None = None) -> Document:
        return self._call("PUT", path, body, query)

    def delete(self, path: str, query: Query | None = None) -> Document:
        """:returns: nothing, of most objects."""
        return self._call("DELETE", path, query=query)

    def all(self, path: str, collection: str, query: Query | None = None) -> list[Document]:
        """All pages of a list."""
        return list(self._pages(path, collection, dict(query or {})))

    def _pages(self, path: str, collection: str, query: dict[str, Any]) -> Iterator[Document]:
        while True:
            page = self.get(path, query)
            yield from page[collection]
            links: Sequence[Document] = page.get(f"{collection}_links", ())
            following = next((link["href"] for link in links if link["rel"] == "next"), None)
            if following is None:
                return
            # Only the marker: a server behind a proxy may name itself otherwise than we reach it.
            query["marker"] = parse_qs(urlsplit(following).query)["marker"][0]

    def _call(self, method: str, path: str, body: Document | None = None, query: Query | None = None) -> Document:
        try:
            answer = self._adapter.request(path, method, json=body, params=query, raise_exc=False)
        except exceptions.ConnectFailure as error:
            what = str(error).partition(": HTTP")[0]
            raise Problem(f"{what}. Is the server running? Where it is, --endpoint (LBAAS_ENDPOINT) says.") from error
        except exceptions.EndpointNotFound as error:
            raise Problem(
                f"The catalogue has no endpoint for it: {error}. Name its service with --os-service-type, or give --endpoint."
            ) from error
        except exceptions.ClientException as error:
            raise Problem(f"Authentication failed: {error}. Check OS_CLOUD or the other OS_* variables.") from error
        if answer.status_code >= 300:
            raise Refused(answer.status_code, _message(answer.status_code, answer.text))
        return _document(answer.text) if answer.text else {}


def _document(text: str) -> Document:
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise Problem("What answers there is not this API; check --endpoint (LBAAS_ENDPOINT).")
    return found


def _message(status: int, text: str) -> str:
    try:
        message = str(json.loads(text)["NeutronError"]["message"])
    except (ValueError, KeyError, TypeError):
        message = f"The server answered with HTTP {status} and no word that this command understands; check --endpoint."
    return f"{message} {_HINTS.get(status, '')}"
