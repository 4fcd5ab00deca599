"""etc/policy.yaml.sample is what `make genconfig` writes, and the policy covers the API."""

from __future__ import annotations

import yaml
from oslo_policy import policy

from lbaas_scheduler.api import policies
from lbaas_scheduler.api.policies import base
from lbaas_scheduler.api.routes import ROUTES
from tools import genpolicy

RULES = {rule.name: rule for rule in policies.list_rules()}
ROLES = {rule.name for rule in base.RULES}
ASKED = {
    (operation.rule, method, path)
    for path, methods in ROUTES.items()
    for method, operation in methods.items()
    if operation.rule is not None
}


def test_the_sample_is_current():
    assert genpolicy.SAMPLE.read_text() == genpolicy.generate(), "run `make genconfig`"


def test_the_sample_changes_nothing_as_it_is_and_everything_in_it_is_valid_without_comment_signs():
    text = genpolicy.SAMPLE.read_text()
    assert yaml.safe_load(text) is None
    rules = yaml.safe_load("\n".join(line[1:] for line in text.splitlines() if line.startswith('#"')))
    assert rules == {rule.name: rule.check_str for rule in RULES.values()}


def test_each_operation_asks_for_a_rule_that_there_is():
    assert {rule for rule, _, _ in ASKED} <= RULES.keys()


def test_each_rule_says_exactly_where_it_is_asked():
    said = {
        (rule.name, operation["method"], operation["path"])
        for rule in RULES.values()
        if isinstance(rule, policy.DocumentedRuleDefault)
        for operation in rule.operations
    }
    assert said == ASKED


def test_each_rule_is_asked_or_is_a_role():
    assert RULES.keys() - ROLES == {rule for rule, _, _ in ASKED}


def test_only_what_tells_nothing_of_anybody_is_for_everybody():
    public = {path for path, methods in ROUTES.items() for operation in methods.values() if operation.rule is None}
    assert public == {
        "/",
        "/v2.0",
        "/openapi.json",
        "/healthcheck",
        "/healthcheck/live",
        "/metrics",
        "/fleet",  # an empty page: what it shows it asks for, with the token of whoever looks at it
        "/v2.0/extensions",
        "/v2.0/extensions/{id}",
    }
