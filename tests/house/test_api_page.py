"""The page of the REST API has every operation, with an example that the server would take."""

from __future__ import annotations

import jsonschema
import pytest

from lbaas_scheduler.api import policies
from lbaas_scheduler.api.policies import base
from lbaas_scheduler.api.routes import ROUTES
from tools import apipage

OPERATIONS = [(path, method, operation) for path, methods in ROUTES.items() for method, operation in methods.items()]
TEXT = apipage.text()


def test_each_operation_has_its_section_with_who_may_and_a_command() -> None:
    sections = TEXT.split("\n~~~")
    assert len(sections) == len(OPERATIONS) + 1
    for path, method, operation in OPERATIONS:
        title = f"\n{method} {path}\n{'~' * len(f'{method} {path}')}\n"
        assert title in TEXT, title
        section = TEXT.partition(title)[2].partition("\n~~~")[0]
        assert (f"(``{operation.rule}``)" if operation.rule else apipage.EVERYBODY) in section
        assert "    curl -s " in section


def test_each_default_role_has_its_words() -> None:
    asked = {operation.rule for _, _, operation in OPERATIONS if operation.rule}
    checks = {rule.check_str for rule in policies.list_rules() if rule.name in asked}
    assert checks <= {base.ADMIN, base.MEMBER, base.READER} == apipage.WHO.keys()


@pytest.mark.parametrize(("path", "method", "operation"), OPERATIONS, ids=[f"{method} {path}" for path, method, _ in OPERATIONS])
def test_the_example_of_a_body_fits_its_schema(path, method, operation) -> None:
    body = apipage.example(operation)
    assert (body is None) == (operation.takes is None)
    if body is not None:
        jsonschema.validate(body[operation.envelope], operation.takes)
        assert body[operation.envelope] or not operation.takes["properties"], f"{method} {path} shows an empty body"
