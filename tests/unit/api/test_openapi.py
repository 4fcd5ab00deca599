"""The document describes every operation, and refers to nothing that is not there."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest

from lbaas_scheduler.api import openapi
from lbaas_scheduler.api.routes import ROUTES

DOCUMENT = openapi.document(ROUTES)
OPERATIONS = {(path, method): operation for path, methods in DOCUMENT["paths"].items() for method, operation in methods.items()}


def test_each_operation_of_the_table_is_described_once() -> None:
    assert OPERATIONS.keys() == {(path, method.lower()) for path, methods in ROUTES.items() for method in methods}
    ids = [operation["operationId"] for operation in OPERATIONS.values()]
    assert len(set(ids)) == len(ids)


def test_each_reference_and_link_leads_somewhere() -> None:
    ids = {operation["operationId"] for operation in OPERATIONS.values()}
    for key, value in _walk(DOCUMENT):
        if key == "$ref":
            *_, kind, name = value.split("/")
            assert name in DOCUMENT["components"][kind], value
        if key == "operationId":
            assert value in ids


@pytest.mark.parametrize("name", sorted(DOCUMENT["components"]["schemas"]))
def test_each_schema_is_valid(name: str) -> None:
    jsonschema.Draft202012Validator.check_schema(DOCUMENT["components"]["schemas"][name])


def test_the_document_is_json_and_says_who_needs_a_token() -> None:
    json.dumps(DOCUMENT)
    assert not [operation for operation in OPERATIONS.values() if "security" in operation]
    protected = openapi.document(ROUTES, keystone=True)
    for path, methods in ROUTES.items():
        for method, operation in methods.items():
            needs = "security" in protected["paths"][path][method.lower()]
            assert needs == (operation.rule is not None), (method, path)


def _walk(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield key, item
            yield from _walk(item)
    elif isinstance(value, list):
        for item in value:
            yield from _walk(item)
